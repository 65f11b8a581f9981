/**
 * What a subscription must not miss, an answer that comes while the stream's end still tells of the question, and what a
 * finished task made; and how it bears trouble: how long it waits, what it says of it, when it gives up, and what wakes it.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { initialTransition, transition, type EventObject } from 'xstate'
import { subscriptionMachine, type FollowOutcome } from '../../machines/subscription.ts'

type Event = Parameters<typeof transition<typeof subscriptionMachine>>[2]

const done = (work: 'follow' | 'read' | 'close', output: FollowOutcome): EventObject & { output: FollowOutcome } => ({
  type: `xstate.done.actor.${work}`,
  output,
})
const follow = (kind: 'waiting' | 'finished' | 'unseen' | 'yielded' | 'unsupported'): EventObject =>
  done('follow', { kind })
const silent = done('follow', { kind: 'broken', reason: 'Agent network request failed.', heard: false })
const heard = done('follow', { kind: 'broken', reason: 'The event is not JSON.', heard: true })
const nothingNew = done('follow', { kind: 'ended', news: false })
const news = done('follow', { kind: 'ended', news: true })
const again: EventObject = { type: 'xstate.after.backoff.subscription.backingOff' }
const fromAway: EventObject = { type: 'xstate.after.absence.subscription.away' }

type State = ReturnType<typeof initialTransition<typeof subscriptionMachine>>[0]

/** Where a walk ends, the facts it told, and how long it was told to wait, in ms. */
function walk(from: State, events: readonly EventObject[]) {
  let state = from
  const facts: string[] = []
  const waits: number[] = []
  for (const event of events) {
    const [next, actions] = transition(subscriptionMachine, state, event as Event)
    state = next
    for (const { type, params } of actions as {
      type: string
      params?: { event?: { type: string }; delay?: number }
    }[]) {
      if (type === 'xstate.emit') facts.push(String(params?.event?.type))
      if (type === 'xstate.raise') waits.push(Number(params?.delay))
    }
  }
  return { state, facts, waits }
}

const [first] = initialTransition(subscriptionMachine)
const after = (...events: readonly EventObject[]): State => walk(first, events).state
/** So many attempts, all with the same end. */
const attempts = (end: EventObject, n: number): EventObject[] =>
  Array.from({ length: n }, (_, i) => (i === 0 ? [end] : [again, end])).flat()

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

  it('rests at once where somebody wrote before there was a question', () => {
    const written: EventObject = { type: 'rearmed', isUnasked: true } as EventObject
    const state = after(written, follow('waiting'))
    expect(state.value).toBe('resting')
    expect(after(follow('waiting'), written).context.answered).toBe(false)
    expect(after({ type: 'rearmed' }, written).context).toMatchObject({ answered: true, rearmed: true })
  })

  it('keeps no answer of one stream for the next', () => {
    expect(after({ type: 'rearmed' }, heard).context).toMatchObject({ answered: true, rearmed: false })
  })

  it('is woken from rest by an answer, and by nothing else', () => {
    expect(after(follow('waiting'), { type: 'rearmed' }).value).toBe('following')
  })
})

describe('a subscription in trouble', () => {
  it('waits 1 s, doubled to 30 s, while the agent gives any sign of life, and stays with that', () => {
    for (const end of [heard, nothingNew])
      expect(walk(first, attempts(end, 12)).waits).toEqual([1, 2, 4, 8, 16, ...Array(7).fill(30)].map((s) => s * 1000))
  })

  it('starts again at 1 s after a stream that worked, or made room', () => {
    for (const good of [news, follow('yielded')])
      expect(walk(first, [...attempts(heard, 5), again, good, again, heard]).waits.slice(-2)).toEqual([1000, 1000])
  })

  it('calls an agent away after ten attempts without a sign of life, says so once, and tries it every 30 s as before', () => {
    const { state, waits } = walk(first, attempts(silent, 10))
    expect(state.value).toBe('away')
    expect(state.hasTag('attention')).toBe(true)
    expect(waits.slice(-2)).toEqual([30_000, 30_000])
    const later = walk(state, Array.from({ length: 6 }, () => [fromAway, silent]).flat())
    expect(later.waits).toEqual(Array(6).fill(30_000))
    expect(later.facts).toEqual([])
    expect(walk(later.state, [fromAway, heard]).waits).toEqual([30_000])
  })

  it('reads an agent that does not stream by the same rules', () => {
    const read = (output: FollowOutcome): EventObject[] => [
      { type: 'xstate.after.readPause.subscription.polling.pausing' },
      done('read', output),
    ]
    const dead = read({ kind: 'broken', reason: 'Agent network request failed.', heard: false })
    const { state, facts } = walk(first, [follow('unsupported'), ...Array.from({ length: 10 }, () => dead).flat()])
    expect(state.value).toEqual({ polling: 'away' })
    expect(facts).toEqual(['subscription.failing', 'subscription.failing'])
    expect(walk(state, [{ type: 'heard' }]).state.value).toEqual({ polling: 'reading' })
  })

  it('tries the stream again when a person answered, wherever it reads, and reads on where there is still none', () => {
    const due: EventObject = { type: 'xstate.after.readPause.subscription.polling.pausing' }
    const dead = [due, done('read', { kind: 'broken', reason: 'Agent network request failed.', heard: false })]
    for (const events of [[], [due], Array.from({ length: 10 }, () => dead).flat()]) {
      const { value, context } = after(follow('unsupported'), ...events, { type: 'rearmed' })
      expect({ value, context }).toMatchObject({
        value: 'following',
        context: { answered: true, failures: 0, reads: 0 },
      })
    }
    const { state, waits } = walk(after(follow('unsupported'), { type: 'rearmed' }), [follow('unsupported')])
    expect([state.value, state.context.answered, waits]).toEqual([{ polling: 'pausing' }, true, [1000]])
  })

  it('is back as soon as somebody heard the agent, or a person answered', () => {
    for (const type of ['heard', 'rearmed']) {
      const { value, context } = walk(first, [...attempts(silent, 10), { type }]).state
      expect({ value, context }).toMatchObject({ value: 'following', context: { failures: 0, reason: null } })
    }
  })

  it('tells a reason once, not every time; tells when it lasts, and when it is over', () => {
    const { facts, state } = walk(first, [...attempts(silent, 9), again, silent, fromAway, silent])
    expect(facts).toEqual(['subscription.failing', 'subscription.failing'])
    expect(state.context.reason).toBe('Agent network request failed.')
    expect(walk(state, [fromAway, news]).facts).toEqual(['subscription.recovered'])
  })

  it('gives up what can never be read, says so, and tries again when a person answers', () => {
    const reason = 'Agent response exceeds the safety limit.'
    const { state, facts } = walk(first, [done('follow', { kind: 'unreadable', reason })])
    expect(state.value).toBe('stopped')
    expect(state.context.reason).toBe(reason)
    expect(state.hasTag('attention')).toBe(true)
    expect(facts).toEqual(['subscription.stopped'])
    expect(walk(state, [{ type: 'heard' }]).state.value).toBe('stopped')
    expect(walk(state, [{ type: 'rearmed' }])).toMatchObject({
      state: { value: 'following' },
      facts: ['subscription.started'],
    })
  })
})

describe('a subscription whose task has ended', () => {
  const unseen = done('close', { kind: 'unseen' })
  const ring: EventObject = { type: 'xstate.after.backoff.subscription.closing.pausing' }
  const told = (isPartial: boolean) => ({ type: 'settled', isPartial }) as EventObject

  it('ends with it where it saw the whole', () => {
    expect(after(follow('finished')).value).toBe('finished')
    expect(walk(after(follow('unseen')), [ring, done('close', { kind: 'finished' })]).state.value).toBe('finished')
  })

  it('looks eight times more where it did not, 1 s, doubled to 30 s, apart, and ends all the same, saying so', () => {
    const failed = { type: 'xstate.error.actor.close', error: 'a defect' } as EventObject
    for (const look of [unseen, failed]) {
      const { state, waits, facts } = walk(first, [
        follow('unseen'),
        ...Array.from({ length: 8 }, () => [ring, look]).flat(),
      ])
      expect({ state: state.value, waits, facts }).toEqual({
        state: 'finished',
        waits: [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000],
        facts: ['subscription.failing', 'subscription.finished'],
      })
    }
  })

  it('ends at once where somebody saw the end, and looks at once where only the end was told', () => {
    const places = [[], [follow('waiting')], [follow('unsupported')], attempts(silent, 10)]
    for (const events of places) {
      expect(after(...events, told(false)).value).toBe('finished')
      expect(after(...events, told(true)).value).toEqual({ closing: 'trying' })
      const { state, waits } = walk(after(...events, told(true)), [
        unseen,
        ...Array.from({ length: 7 }, () => [ring, unseen]).flat(),
      ])
      expect([state.value, waits]).toEqual(['finished', [2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]])
    }
  })

  it('says so where the whole can never be seen, and why', () => {
    const vain = { kind: 'finished', missing: 'The agent was removed.' } as const
    for (const events of [[follow('finished')], [told(true), done('close', { kind: 'finished' })]])
      expect(walk(first, events).facts).toEqual(['subscription.finished'])
    for (const events of [[done('follow', vain)], [told(true), done('close', vain)]]) {
      const { facts, state } = walk(first, events)
      expect(facts).toEqual(['subscription.failing', 'subscription.finished'])
      expect(state.context.missing).toBe('The finished task could not be read as a whole. The agent was removed.')
    }
    const partly = done('follow', { kind: 'finished', leftOut: 'An event was left out.' })
    const { facts, state } = walk(first, [partly])
    expect([facts, state.context.missing]).toEqual([
      ['subscription.failing', 'subscription.finished'],
      'An event was left out.',
    ])
    const goesOn = after(
      follow('waiting'),
      { type: 'rearmed' },
      done('follow', { kind: 'ended', news: true, leftOut: 'Left out.' }),
    )
    expect([goesOn.value, goesOn.context.reason, goesOn.context.failures]).toEqual(['backingOff', null, 0])
    // It is said when the task is over, whichever round met it.
    const anew: EventObject = { type: 'xstate.after.backoff.subscription.backingOff' }
    for (const events of [
      [anew, follow('finished')],
      [anew, follow('unseen'), ring, done('close', { kind: 'finished' })],
    ]) {
      const { facts: later, state: over } = walk(goesOn, events)
      expect([later, over.context.missing]).toEqual([['subscription.failing', 'subscription.finished'], 'Left out.'])
    }
  })

  it('follows again what goes on by itself or is seen again, and not what is too large to be read', () => {
    const heard = (isAtWork: boolean): EventObject => ({ type: 'heard', ...(isAtWork && { isAtWork }) })
    expect(after(follow('waiting'), heard(false)).value).toBe('resting')
    expect(after(follow('waiting'), heard(true)).value).toBe('following')
    const gone = after(done('follow', { kind: 'gone', reason: 'The agent was removed.' }))
    // Pushes of an agent that does not know its own task would have it asked for as often as they come.
    expect(walk(gone, [heard(true)]).state.value).toBe('stopped')
    const again = walk(gone, [{ type: 'found' }])
    expect([again.state.value, again.state.context.reason, again.facts]).toEqual([
      'following',
      null,
      ['subscription.started'],
    ])
    const large = done('follow', { kind: 'unreadable', reason: 'Too large.' })
    expect(after(large, { type: 'found' }).value).toBe('stopped')
    // A reply tries again, and what is gone by then may be seen again.
    const nowGone = walk(after(large), [{ type: 'rearmed' }, done('follow', { kind: 'gone', reason: 'Gone.' })]).state
    expect(walk(nowGone, [{ type: 'found' }]).state.value).toBe('following')
    const atWork = { type: 'found', isAtWork: true } as EventObject
    expect(after(follow('waiting'), atWork).value).toBe('following')
    expect(after(follow('waiting'), { type: 'found' }).value).toBe('resting')
  })

  it('looks again after an interruption, and hears of nothing else any more', () => {
    const looking = after(told(true))
    for (const type of ['interrupted', 'rearmed', 'heard', 'found'])
      expect(walk(looking, [{ type }]).state.value).toEqual({ closing: 'trying' })
  })
})

/** What the first release of version 1 stored, as its golden file had it; a row may still stand there. */
const stored: readonly { value: string | Record<string, string>; context: Partial<State['context']> }[] = [
  { value: 'following', context: { failures: 0, reads: 0, reason: null, answered: true, rearmed: true } },
  { value: 'backingOff', context: { failures: 6, reads: 0, reason: null, answered: false, rearmed: false } },
  { value: { polling: 'pausing' }, context: { failures: 0, reads: 4, reason: null, answered: false, rearmed: false } },
  { value: { polling: 'reading' }, context: { failures: 0, reads: 4, reason: null, answered: true, rearmed: false } },
  { value: 'resting', context: { failures: 0, reads: 0, reason: null, answered: false, rearmed: false } },
  { value: 'stopped', context: { failures: 0, reads: 0, reason: 'removed', answered: false, rearmed: false } },
]

describe('a row of the first release', () => {
  it.each(stored)('in $value goes on', ({ value, context }) => {
    const state = subscriptionMachine.resolveState({ value, context: context as State['context'] } as Parameters<
      typeof subscriptionMachine.resolveState
    >[0])
    expect(walk(state, [{ type: 'settled', isPartial: false } as EventObject]).state.status).toBe('done')
    expect(walk(state, [{ type: 'settled', isPartial: true } as EventObject]).state.value).toEqual({
      closing: 'trying',
    })
    expect(walk(state, [{ type: 'rearmed' }]).state.value).toBe('following')
  })

  it('stands in the golden file as it did', () => {
    const golden = JSON.parse(readFileSync(new URL('golden/subscription@1.json', import.meta.url), 'utf8')) as {
      state: unknown
      context: object
    }[]
    const states = golden.map(({ state }) => state)
    for (const { value } of stored) expect(states).toContainEqual(value)
    for (const { context } of golden)
      expect(Object.keys(context)).toEqual(['failures', 'reads', 'reason', 'answered', 'rearmed'])
  })
})
