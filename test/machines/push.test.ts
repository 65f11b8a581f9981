/** The push machine: how often it tries, what it waits for, and what the end of a task does to it in each state. */
import { describe, expect, it } from 'vitest'
import { initialTransition, transition, type EventObject } from 'xstate'
import { pushMachine } from '../../machines/push.ts'

type Event = Parameters<typeof transition<typeof pushMachine>>[2]

const done = (work: string, kind: string): EventObject =>
  ({ type: `xstate.done.actor.${work}`, output: { kind, reason: `${kind} once more` } }) as EventObject
const backoff = (state: string): EventObject => ({ type: `xstate.after.backoff.push.${state}` })
const settled = { type: 'settled' }
const interrupted = { type: 'interrupted' }

/** The state after events, and the delays that were asked for on the way, milliseconds. */
function after(...events: readonly EventObject[]) {
  let [state] = initialTransition(pushMachine)
  const delays: unknown[] = []
  for (const event of events) {
    const [next, actions] = transition(pushMachine, state, event as Event)
    state = next
    for (const { type, params } of actions)
      if (type === 'xstate.raise') delays.push((params as { delay: number }).delay)
  }
  return { value: state.value, context: state.context, status: state.status, delays }
}

describe('a registration', () => {
  it('is tried eight times, 1 s doubled to 60 s apart, then left for a person to see', () => {
    const failing = Array.from({ length: 7 }, () => [done('register', 'missed'), backoff('waiting')]).flat()
    const { value, delays, context, status } = after(...failing, done('register', 'refused'))
    expect(value).toBe('stopped')
    expect(status).toBe('active')
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000])
    expect(context.reason).toBe('refused once more')
  })

  it('that was interrupted is made again, under the name that it has', () => {
    expect(after(interrupted).value).toBe('registering')
  })

  it('ends quietly with an agent that has no push', () => {
    expect(after(done('register', 'unsupported'))).toMatchObject({ value: 'unsupported', status: 'done' })
  })

  it('forgets its failures once it is made', () => {
    const { context } = after(done('register', 'missed'), backoff('waiting'), done('register', 'registered'))
    expect(context).toEqual({ failures: 0, reason: null, settled: false })
  })
})

describe('the end of the task', () => {
  it.each([
    ['the registration is under way and made', [settled, done('register', 'registered')]],
    ['the registration is under way and its answer is lost', [settled, done('register', 'missed')]],
    ['the registration is under way and its holder is lost', [settled, interrupted]],
    ['it waits to register again', [done('register', 'missed'), settled]],
    ['it was over before it was to be registered', [done('register', 'over')]],
    ['it is registered', [done('register', 'registered'), settled]],
  ])('takes the registration back when %s', (_, events) => {
    expect(after(...events).value).toEqual({ removing: 'trying' })
  })

  it('is told three times at most, 1 and 2 s apart', () => {
    const removing = [done('remove', 'missed'), backoff('removing.pausing')]
    const { status, delays } = after(
      settled,
      done('register', 'missed'),
      ...removing,
      ...removing,
      done('remove', 'missed'),
    )
    expect(status).toBe('done')
    expect(delays).toEqual([1000, 2000])
  })
})
