/** What a subscription must not miss: an answer that comes while the stream's end still tells of the question. */
import { describe, expect, it } from 'vitest'
import { initialTransition, transition, type EventObject } from 'xstate'
import { subscriptionMachine } from '../../machines/subscription.ts'

type Event = Parameters<typeof transition<typeof subscriptionMachine>>[2]

const follow = (kind: string): EventObject & { output: { kind: string } } => ({
  type: 'xstate.done.actor.follow',
  output: { kind },
})

function after(...events: readonly EventObject[]) {
  let [state] = initialTransition(subscriptionMachine)
  for (const event of events) [state] = transition(subscriptionMachine, state, event as Event)
  return state
}

describe('a subscription', () => {
  it('rests while the agent waits', () => {
    expect(after(follow('waiting')).value).toBe('resting')
  })

  it('follows again when a person answered before it heard of the question', () => {
    const state = after({ type: 'rearmed' }, follow('waiting'))
    expect(state.value).toBe('following')
    expect(state.context).toMatchObject({ answered: true, rearmed: false })
  })

  it('rests after that, if the agent asks again', () => {
    expect(after({ type: 'rearmed' }, follow('waiting'), follow('waiting')).value).toBe('resting')
  })

  it('is woken from rest by an answer, and by nothing else', () => {
    expect(after(follow('waiting'), { type: 'rearmed' }).value).toBe('following')
  })
})
