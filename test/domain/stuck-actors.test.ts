/** What is said of an actor that nobody moves, though somebody should: whose worker is silent, whose try is due, whose agent cannot be read. */
import { describe, expect, it } from 'vitest'
import { explainActor } from '../../domain/actor-explanation.ts'
import { silentAfterMs, stuckAfterMs } from '../../domain/patience.ts'
import { unreachedWords } from '../../domain/agent-troubles.ts'
import type { StateValue } from '../../domain/chart.ts'
import { dueGraceMs } from '../../domain/unread-agent.ts'
import { actorIn, at, nowMs, seen } from './seen-actors.ts'

describe('work whose worker is not heard of any more', () => {
  const work = { id: 'deliver', startedAt: at(-40_000) }
  const lease = { owner: 'host/12/ab', until: at(20_000) }
  const told = (holderSeenAt: string | null, nowMore = 0) =>
    explainActor(seen(actorIn('command', 'dispatching', { work, lease }), { holderSeenAt }), nowMs + nowMore)

  it('is told before its lease ends, and not as if all went well', () => {
    const [first, ...more] = told(at(-silentAfterMs))
    expect(first).toMatchObject({ tone: 'warn', title: 'Its worker is silent', remedies: ['see-queues'] })
    expect(first?.sentences[0]).toContain('host/12/ab holds "deliver" and does not tell of itself any more')
    expect(first?.sentences.join(' ')).toContain('nothing is sent again')
    expect(first?.known.slice(1)).toEqual([
      { words: 'It was last heard of', at: at(-silentAfterMs) },
      { words: 'The lease ends', at: lease.until },
    ])
    expect(more).toEqual([])
  })

  it.each([
    ['heard of a moment ago', at(1 - silentAfterMs), 0],
    ['never heard of, as where there is only one', null, 0],
    ['heard of when this was seen, however long ago that is', at(-1000), 19_000],
  ] as const)('is as it was where it is %s', (_, holderSeenAt, more) => {
    expect(told(holderSeenAt, more).map(({ title }) => title)).toEqual(['Being delivered'])
  })
})

describe('work that has a place and that nobody takes', () => {
  const due = { id: 'follow', startedAt: null }

  it('promises no moment that has passed: who holds places may have ended, and is heard of for a while longer', () => {
    const words = (dueForMs: number): string | undefined => {
      const taken = [{ owner: 'a/1', taken: 2, ofLane: 1 }]
      const wait = { dueAt: at(-dueForMs), ahead: 0, taken, places: 8, perAgent: 4, requestSince: null }
      return explainActor(
        seen(actorIn('subscription', 'following', { work: due }), { wait }),
        nowMs,
      )[0]?.sentences.join(' ')
    }
    expect(words(1_900)).toMatch(/taken by a\/1, 1 of them for the same agent\. It begins within a second\.$/)
    expect(words(2_000)).toContain(
      'There is room for it, and nobody has taken it up: a process may have ended without a word, which shows 15 seconds after it was last heard of',
    )
    expect(words(2_000)).not.toContain('within a second')
  })
})

describe('a try that is due', () => {
  const failing = { context: { failures: 3, reason: 'HTTP 503' } }
  const overdue = (kind: string, value: StateValue, ms: number) =>
    explainActor(seen(actorIn(kind, value, { ...failing, timers: [{ id: 't', dueAt: at(-ms) }] })), nowMs)

  it.each([
    ['subscription', 'backingOff'],
    ['subscription', 'away'],
    ['subscription', { polling: 'pausing' }],
    ['subscription', { polling: 'away' }],
    ['reconciliation', 'backingOff'],
  ] as const)('and that nobody takes is no next try, and promises nothing: %s %j', (kind, value) => {
    const next = (ms: number) => JSON.stringify(overdue(kind, value, ms))
    expect(next(dueGraceMs)).toMatch(/The next (?:try|look)/)
    expect(next(dueGraceMs + 1)).not.toMatch(/The next|Meanwhile/)
    expect(overdue(kind, value, stuckAfterMs).map(({ title }) => title)).not.toContain('Waits for a worker')
    const [first] = overdue(kind, value, stuckAfterMs + 1)
    expect(first).toMatchObject({ tone: 'warn', title: 'Waits for a worker' })
    expect(first?.known).toEqual([{ words: 'Due', at: at(-stuckAfterMs - 1) }])
  })

  it.each([
    ['nobody', 'Waits for a worker', 'none runs'],
    ['full', 'Waits for a place', 'all their places for it are taken'],
    ['free', 'Waits for a worker or a place', 'some run, and not all their places are taken'],
  ] as const)('is told to everybody with which of both it waits for: %s', (untaken, title, words) => {
    const timers = [{ id: 't', dueAt: at(-stuckAfterMs - 1) }]
    const work = { id: 'follow', startedAt: null }
    const lease = { owner: 'host/12/ab', until: at(-60_000) }
    const first = (actor: ReturnType<typeof actorIn>) => explainActor(seen(actor, { untaken }), nowMs)[0]
    for (const each of [
      first(actorIn('subscription', 'away', { ...failing, timers })),
      first(actorIn('subscription', 'following', { work })),
    ]) {
      expect(each?.title).toBe(title)
      expect(each?.sentences.join(' ')).toContain(`no worker has taken it up: ${words}`)
    }
    // What is not begun is not said to be tried, under any of its titles.
    const failingWork = actorIn('subscription', 'following', { ...failing, work })
    const all = JSON.stringify(explainActor(seen(failingWork, { untaken }), nowMs))
    expect(all).toContain('It is due to be tried again, and has not been begun.')
    expect(all).not.toMatch(/right now/)
    expect(all.includes('Meanwhile')).toBe(untaken !== 'nobody')
    // Whose holder is gone is told with it.
    const over = first(actorIn('subscription', 'following', { work: { ...work, startedAt: at(-90_000) }, lease }))
    const now = { nobody: 'none does now', full: 'all their places are taken now', free: 'if none does' }
    expect(over?.sentences.join(' ')).toContain(now[untaken])
  })

  it('is told with whose places are taken to whoever may know it', () => {
    const wait = { dueAt: at(-60_000), ahead: 0, taken: [], places: 8, perAgent: 4, requestSince: null }
    const actor = actorIn('subscription', 'away', { ...failing, timers: [{ id: 't', dueAt: wait.dueAt }] })
    const titles = explainActor(seen(actor, { wait }), nowMs).map(({ title }) => title)
    expect(titles).toEqual(['Waits for a worker', 'The agent cannot be read'])
  })
})

it('a task whose stream was told to be open is followed, whatever failed before', () => {
  const told = (open?: true) => {
    const context = { failures: 3, reason: 'HTTP 503', ...(open && { open }) }
    const work = { id: 'follow', startedAt: at(-1_000) }
    const lease = { owner: 'host/12/ab', until: at(10_000) }
    return explainActor(seen(actorIn('subscription', 'following', { context, work, lease })), nowMs).map(
      ({ tone }) => tone,
    )
  }
  expect([told(), told(true)]).toEqual([['warn'], ['quiet']])
})

describe('a send behind others to an agent that hangs', () => {
  const told = (ofLane: number) => {
    const taken = [{ owner: 'a/1', taken: 6, ofLane }]
    const wait = { dueAt: at(-20_000), ahead: 1, taken, places: 32, perAgent: 4, requestSince: at(-50_000) }
    return explainActor(seen(actorIn('command', { pending: 'discovering' }), { wait }), nowMs)[0]?.known.slice(1)
  }

  it('is told when the first of their places is free at the latest, where it waits for one', () => {
    expect(told(4)).toEqual([{ words: 'The first place of its agent is free by about', at: at(10_000) }])
    expect(told(3)).toEqual([])
    // It may have fewer than it has: one that ends is not enough.
    expect(told(5)).toEqual([])
  })
})

describe('an agent that cannot be read', () => {
  const reason = 'Agent network request failed.'
  const timers = [{ id: 't', dueAt: at(10_000) }]
  const actor = (kind: string, value: StateValue) => actorIn(kind, value, { context: { failures: 10, reason }, timers })
  const told = (kind: string, value: StateValue) =>
    explainActor(seen(actor(kind, value), { since: at(-60_000) }), nowMs)[0]

  it('is told alike on its own page, on its task’s and on its actors’', () => {
    const look = { id: 'l', reason, since: at(-60_000), nextTryAt: at(10_000) }
    const own = unreachedWords({
      at: at(0),
      looks: { scopes: [look], count: 1, isWhole: true },
      unfollowed: { tasks: [{ ...look, localId: 't', title: 'hold' }], count: 1, isWhole: true },
      others: { count: 0, isWhole: true, oldestAt: null },
      full: [],
      cardReadAt: null,
    })
    const ofActors = [told('reconciliation', 'backingOff'), told('subscription', 'away')]
    for (const each of ofActors) {
      expect(each?.title).toBe(own?.title)
      for (const known of each?.known ?? []) expect(own?.known).toContainEqual(known)
      expect(each?.known[0]).toEqual({ words: 'Since about', at: at(-60_000) })
    }
    expect(ofActors[1]?.sentences.at(-1)).toBe(own?.sentences.at(-1))
    expect(JSON.stringify([own, ...ofActors])).not.toMatch(/sign of life/)
  })

  it('is said to be asked in the rhythm in which it is', () => {
    const said = told('subscription', 'backingOff')?.sentences.join(' ')
    expect(said).toContain('about every 15 seconds, up to a minute apart while that fails too')
    // It reads by itself, so nobody else does.
    expect(told('subscription', { polling: 'pausing' })?.sentences.join(' ')).not.toContain('15 seconds')
  })
})

describe('a task that is followed in vain', () => {
  const context = { failures: 3, reason: 'HTTP 503' }

  it.each(['following', 'backingOff', { polling: 'pausing' }, { polling: 'reading' }] as const)(
    'is called alike on its own page and on its agent’s, in %j',
    (value) => {
      const task = { localId: 't', title: 'hold', reason: 'HTTP 503', since: at(-60_000), nextTryAt: at(10_000) }
      const ofAgent = unreachedWords({
        at: at(0),
        looks: { scopes: [], count: 0, isWhole: true },
        unfollowed: { tasks: [task], count: 1, isWhole: true },
        others: { count: 0, isWhole: true, oldestAt: null },
        full: [],
        cardReadAt: null,
      })
      const own = explainActor(seen(actorIn('subscription', value, { context })), nowMs)[0]
      expect(own?.title).toBe('Following does not work')
      expect(ofAgent?.title).toBe('Following 1 task does not work')
    },
  )
})
