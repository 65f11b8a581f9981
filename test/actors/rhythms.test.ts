/**
 * The rhythm of every background loop, as the specification's table has it [console-http-api.md: "Background loops",
 * "Limits"]: each number below is that table's, held against what a real system runs by. What a machine waits is asked of the
 * machine. Owns no number of ours that the specification does not name (how often a scope is looked at, lanes, turns).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { initialTransition, transition, type AnyStateMachine, type EventObject } from 'xstate'
import { pollMsOf } from '../../actors/freshness.ts'
import { Leases } from '../../actors/loop/lease.ts'
import { rateLimits } from '../../actors/rate-counter.ts'
import { patienceMs } from '../../http/watch.ts'
import { startConsole, type TestConsole } from '../support/console.ts'

const seconds = (count: number): number => count * 1000

/** How long a machine asks to be left alone on its way through these events, in ms. */
function waits(machine: AnyStateMachine, events: readonly EventObject[]): number[] {
  let [state] = initialTransition(machine)
  const asked: number[] = []
  for (const event of events) {
    const [next, actions] = transition(machine, state, event)
    state = next
    for (const { type, params } of actions as { type: string; params?: { delay?: number } }[])
      if (type === 'xstate.raise' && params?.delay !== undefined) asked.push(params.delay)
  }
  return asked
}
const done = (work: string, output: object): EventObject =>
  ({ type: `xstate.done.actor.${work}`, output }) as EventObject
const rings = (timer: string): EventObject => ({ type: `xstate.after.${timer}` })
/** So many times the one, and the other between two of them. */
const times = (count: number, end: EventObject, again: EventObject): EventObject[] =>
  Array.from({ length: count }, (_, n) => (n === 0 ? [end] : [again, end])).flat()

let house: TestConsole
beforeAll(async () => {
  house = await startConsole({ database: 'pglite', uiDirectory: null })
})
afterAll(() => house.close())
const kind = (name: string) => {
  const found = house.system.kinds[name]
  if (!found) throw new Error(`There is no kind ${name}.`)
  return found
}

describe('the rhythm of the background loops, by the specification', () => {
  it('command dispatch: poll 250 ms, up to 10 commands per pass; lease 60 s', () => {
    expect(kind('command')).toMatchObject({ pollMs: 250, claimLimit: 10, leaseMs: seconds(60) })
  })

  it('command dispatch: discovery is tried up to 3 times, 1 s then 2 s apart', () => {
    const tries = times(5, done('discover', { kind: 'missed' }), rings('backoff.command.pending.waiting'))
    expect(waits(kind('command').machine, tries)).toEqual([seconds(1), seconds(2)])
  })

  it('subscriptions: up to 8 concurrent streams per worker process; lease 15 s', () => {
    expect(kind('subscription')).toMatchObject({ concurrency: 8, leaseMs: seconds(15) })
  })

  it('subscriptions: reconnect with backoff 1 s doubling to 30 s', () => {
    const ended = done('follow', { kind: 'ended', news: false })
    const again = rings('backoff.subscription.backingOff')
    const backoff = [1, 2, 4, 8, 16, 30, 30, 30].map(seconds)
    expect(waits(kind('subscription').machine, times(8, ended, again))).toEqual(backoff)
  })

  it('push: idle poll 500 ms; lease 15 s', () => {
    expect(kind('push')).toMatchObject({ pollMs: 500, leaseMs: seconds(15) })
  })

  it('reconciliation: 2 concurrent readers; lease 15 s', () => {
    expect(kind('reconciliation')).toMatchObject({ concurrency: 2, leaseMs: seconds(15) })
  })

  it('reconciliation: get about every 15 s per task, list about every 60 s per scope', () => {
    const wanted = { type: 'wanted', agentId: 'an agent', tenant: '' } as EventObject
    const again = rings('checkPause.reconciliation.pausing')
    const passes = times(4, done('check', { kind: 'busy' }), again)
    const { machine } = kind('reconciliation')
    // The fourth pass goes over into the list, after which the first wait of the next minute begins.
    const round = [...passes, done('list', { kind: 'listed' })]
    expect(waits(machine, [wanted, ...passes])).toEqual([15, 15, 15].map(seconds))
    expect(waits(machine, [wanted, ...round]).reduce((sum, ms) => sum + ms, 0)).toBe(seconds(60))
    expect(waits(machine, [wanted, ...round, again, ...round])).toHaveLength(8)
  })

  it('reconciliation: failure backoff 1 s to 60 s', () => {
    const wanted = { type: 'wanted', agentId: 'an agent', tenant: '' } as EventObject
    const failed = done('check', { kind: 'failed', reason: 'silent', after: null, progressed: false })
    const unlisted = done('list', { kind: 'failed', reason: 'silent' })
    const again = rings('backoff.reconciliation.backingOff')
    // Every fourth time the list is tried, too.
    const minute = [failed, again, failed, again, failed, again, failed, unlisted, again]
    const asked = waits(kind('reconciliation').machine, [wanted, ...minute, ...minute])
    expect(asked).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map(seconds))
  })

  it('freshness: poll 250 ms; web replicas poll a token every 500 ms', () => {
    expect({ worker: pollMsOf(true), replica: pollMsOf(false) }).toEqual({ worker: 250, replica: 500 })
  })

  it('leases are renewed about three times per lease, whatever their length', async () => {
    const lengths = Object.values(house.system.kinds).map(({ leaseMs }) => leaseMs)
    for (const leaseMs of new Set(lengths)) {
      let now = 0
      const leases = new Leases()
      // Nobody's row: the first renewal that is asked for finds that it went to somebody else.
      const ref = { kind: 'command', id: crypto.randomUUID() }
      const parts = { ref, token: crypto.randomUUID(), work: 'deliver', lane: null, isDoubted: false }
      const lease = leases.hold({ ...parts, leaseMs, trustedFrom: 0 })
      now = leaseMs / 3 - 1
      await leases.renewDue(house.db, () => now)
      expect(lease.abort.signal.aborted, `${leaseMs} ms, before a third`).toBe(false)
      now = leaseMs / 3
      await leases.renewDue(house.db, () => now)
      expect(lease.abort.signal.aborted, `${leaseMs} ms, at a third`).toBe(true)
    }
  })

  it('a blocking send waits 50 s', () => {
    expect(patienceMs).toBe(seconds(50))
  })

  it('places in a window of 60 s: 900 to read, 120 to operate, 60 to administer; 240 sign-ins; 1200 pushes, 120 a registration', () => {
    const people = { read: 900, operate: 120, administer: 60 }
    expect(rateLimits).toEqual({ ...people, login: 240, callback: 240, push: 1200, registration: 120 })
  })

  // That it closes after 55 s is test/specs/limits.spec.ts, which waits for it anyway.
  it('`/api/tasks/events`: `resync` after 15 s silence', async () => {
    const signals = await house.api.stream('/api/tasks/events')
    expect(await signals.next()).toEqual({ event: 'ready', data: {} })
    const silentSince = performance.now()
    expect(await signals.next()).toEqual({ event: 'resync', data: {} })
    const silence = performance.now() - silentSince
    signals.cancel()
    // What is between the clocks of two sockets, and what a busy machine adds.
    expect(silence).toBeGreaterThan(seconds(15) - 500)
    expect(silence).toBeLessThan(seconds(15) + 3000)
  })
})
