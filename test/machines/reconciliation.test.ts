/** What reconciling a scope decides: how long it waits, when it reads the list, what it tells, and that it can rest. */
import { describe, expect, it } from 'vitest'
import { initialTransition, transition, type EventObject } from 'xstate'
import { reconciliationMachine, type CheckOutcome } from '../../machines/reconciliation.ts'

type Event = Parameters<typeof transition<typeof reconciliationMachine>>[2]

const wanted = { type: 'wanted', agentId: 'an agent', tenant: 'north' } as EventObject
const check = (output: CheckOutcome): EventObject => ({ type: 'xstate.done.actor.check', output }) as EventObject
const list = (output: object): EventObject => ({ type: 'xstate.done.actor.list', output }) as EventObject
const rings = (timer: string): EventObject => ({ type: `xstate.after.${timer}` })
const busy = check({ kind: 'busy' })
const silent = check({ kind: 'failed', reason: 'silent', after: null, progressed: false })
const poisoned = check({ kind: 'failed', reason: 'one task', after: 'seventh', progressed: true })
const refused = check({ kind: 'failed', reason: 'refused', after: null, progressed: false })
const unlisted = list({ kind: 'failed', reason: 'silent' })
const again = rings('checkPause.reconciliation.pausing')
const backoff = rings('backoff.reconciliation.backingOff')

function run(...events: readonly EventObject[]) {
  let [state] = initialTransition(reconciliationMachine)
  const told: string[] = []
  const waits: number[] = []
  for (const event of events) {
    const [next, actions] = transition(reconciliationMachine, state, event as Event)
    state = next
    for (const action of actions as readonly { readonly type: string; readonly params: unknown }[]) {
      const params = action.params as { event?: { type: string }; delay?: number }
      if (action.type === 'xstate.emit' && params.event) told.push(params.event.type)
      if (action.type === 'xstate.raise' && params.delay !== undefined) waits.push(params.delay)
    }
  }
  return { value: state.value, context: state.context, told, waits }
}

describe('reconciling a scope', () => {
  it('rests without a timer until it is wanted, and again when nothing is unfinished', () => {
    expect(run()).toMatchObject({ value: 'resting', waits: [] })
    const rested = run(wanted, busy, again, check({ kind: 'idle' }))
    expect(rested).toMatchObject({ value: 'resting', waits: [15_000] })
    expect(rested.told).toEqual(['reconciliation.woken', 'reconciliation.rested'])
  })

  it('asks every 15 s, and reads the list after every fourth time', () => {
    const thrice = [busy, again, busy, again, busy, again]
    expect(run(wanted, ...thrice)).toMatchObject({ value: 'checking', waits: [15_000, 15_000, 15_000] })
    expect(run(wanted, ...thrice, busy).value).toBe('listing')
    const listed = [...thrice, busy, list({ kind: 'listed' }), again]
    expect(run(wanted, ...listed, ...thrice, busy).value).toBe('listing')
    expect(run(wanted, ...listed, ...thrice).value).toBe('checking')
  })

  it('waits 1 s, doubled to 60 s, says so at the second failure and once it is over', () => {
    // Every fourth time its list cannot be read either.
    const four = [silent, backoff, silent, backoff, silent, backoff, silent, unlisted, backoff]
    const eight = [...four, ...four]
    const { waits, told, context } = run(wanted, ...eight)
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect(told).toEqual(['reconciliation.woken', 'reconciliation.failing'])
    expect(context.reason).toBe('silent')
    const over = run(wanted, ...eight, busy)
    expect(over.told).toEqual(['reconciliation.woken', 'reconciliation.failing', 'reconciliation.recovered'])
    expect(over.context).toMatchObject({ failures: 0, reason: null })
  })

  it('goes on behind a task that cannot be read, and does not call that an agent that fails', () => {
    const twice = run(wanted, poisoned, backoff, poisoned)
    expect(twice).toMatchObject({
      value: 'backingOff',
      waits: [1000, 1000],
      context: { after: 'seventh', failures: 1 },
    })
    expect(twice.told).toEqual(['reconciliation.woken'])
  })

  it('reads the list every fourth time, whatever stands in the way of asking: some hang for a task, and list it', () => {
    const thrice = (failure: EventObject) => [failure, backoff, failure, backoff, failure, backoff]
    for (const failure of [refused, silent, poisoned])
      expect(run(wanted, ...thrice(failure), failure).value).toBe('listing')
  })

  it('waits no shorter for an agent of which the list cannot be read either', () => {
    const failing = [
      silent,
      backoff,
      silent,
      backoff,
      silent,
      backoff,
      silent,
      list({ kind: 'failed', reason: 'silent' }),
    ]
    const { value, waits, context } = run(wanted, ...failing)
    expect({ value, waits }).toEqual({ value: 'backingOff', waits: [1000, 2000, 4000, 8000] })
    expect(context).toMatchObject({ failures: 4, passes: 0, listReason: 'silent' })
  })

  it('has passed when all but one task was read: it waits its 15 s, and says why it could not be', () => {
    const passed = check({ kind: 'failed', reason: 'one task hangs', after: null, progressed: true })
    expect(run(wanted, passed)).toMatchObject({
      value: 'pausing',
      waits: [15_000],
      told: ['reconciliation.woken'],
      context: { failures: 0, passes: 1, reason: 'one task hangs' },
    })
    const fourTimes = [passed, again, passed, again, passed, again, passed]
    expect(run(wanted, ...fourTimes)).toMatchObject({ value: 'listing', told: ['reconciliation.woken'] })
  })

  it('reads the list by the clock where passes are long, and goes on with the pass behind it', () => {
    const more = check({ kind: 'more', after: 'hundredth', isListOld: true })
    expect(run(wanted, more).value).toBe('listing')
    const at = '2026-11-24T20:00:00.000Z'
    const on = run(wanted, more, list({ kind: 'listed', at }))
    const context = { after: 'hundredth', passes: 0, listedAt: at }
    expect(on).toMatchObject({ value: 'yielding', waits: [1000], context })
    expect(run(wanted, check({ kind: 'busy', isListOld: true })).value).toBe('listing')
  })

  it('says at the second failure that it fails, also where the list is read next', () => {
    const { value, told } = run(wanted, busy, again, busy, again, refused, backoff, refused)
    expect({ value, told }).toEqual({ value: 'listing', told: ['reconciliation.woken', 'reconciliation.failing'] })
  })

  it('keeps why the list failed without waiting longer for the tasks', () => {
    const listing = [busy, again, busy, again, busy, again, busy]
    const failed = run(wanted, ...listing, list({ kind: 'failed', reason: 'too large' }))
    expect(failed).toMatchObject({ value: 'pausing', context: { listReason: 'too large', failures: 0, passes: 0 } })
  })

  it('looks at once when it is wanted while it pauses, and not sooner while the agent fails', () => {
    expect(run(wanted, busy, wanted)).toMatchObject({ value: 'checking', waits: [15_000] })
    expect(run(wanted, silent, wanted)).toMatchObject({ value: 'backingOff', waits: [1000] })
    expect(run(wanted, busy, wanted, busy, again, busy, again, busy).value).toBe('listing')
  })

  it('leaves an agent that was removed alone', () => {
    const gone = run(wanted, check({ kind: 'gone', reason: 'The agent was removed.' }))
    expect(gone).toMatchObject({ value: 'resting', context: { reason: 'The agent was removed.' }, waits: [] })
  })
})
