/** What is said of an agent that cannot be reached: since when, why, what it means, and nothing where all is well. */
import { describe, expect, it } from 'vitest'
import { fullWords, othersWords, unreachedWords, type AgentTroubles } from '../../domain/agent-troubles.ts'
import { inside, kindTitle } from '../../domain/queue-words.ts'

const at = (minute: number): string => `2026-11-23T09:0${minute}:00.000Z`
const well: AgentTroubles = {
  at: at(9),
  looks: { scopes: [], count: 0, isWhole: true },
  unfollowed: { tasks: [], count: 0, isWhole: true },
  others: { count: 0, isWhole: true, oldestAt: null },
  full: [],
  cardReadAt: at(1),
}
const look = { id: 'l', reason: 'Agent network request failed.', since: at(4), nextTryAt: at(9) }
const looksOf = (...scopes: AgentTroubles['looks']['scopes']) => ({ scopes, count: scopes.length, isWhole: true })
const task = { localId: 't', title: 'hold', reason: 'No answer', since: at(3), nextTryAt: at(9) }

describe('an agent', () => {
  it('that is well has nothing said of it', () => {
    expect(unreachedWords(well)).toBeNull()
    expect(othersWords(well)).toBeNull()
  })

  it('that cannot be read is told with why, since when and until when', () => {
    const unfollowed = { tasks: [task], count: 2, isWhole: true }
    const told = unreachedWords({ ...well, looks: looksOf(look), unfollowed })
    expect(told).toMatchObject({ tone: 'warn', title: 'The agent cannot be read' })
    expect(told?.sentences.slice(0, 2)).toEqual([
      'Following 2 tasks does not work.',
      'Reason: Agent network request failed.',
    ])
    expect(told?.sentences[2]).toContain('nothing is lost')
    // The first to fail tells since when.
    expect(told?.known).toEqual([
      { words: 'Since about', at: at(3) },
      { words: 'It last showed its card', at: at(1) },
      { words: 'The next look at its tasks', at: at(9) },
      { words: 'The next try to follow', at: at(9) },
    ])
  })

  it('is promised no try that nobody makes, once its times have passed', () => {
    const told = unreachedWords({ ...well, at: '2026-11-23T09:09:06.000Z', looks: looksOf(look) })
    expect(told?.known.at(-1)).toEqual({ words: 'Its tasks were to be looked at again', at: at(9) })
    expect(told?.sentences.join(' ')).toContain('no worker has taken it up')
    expect(JSON.stringify(told)).not.toMatch(/The next|Meanwhile/)
  })

  it.each([
    [null, 'none runs, or all their places are taken.'],
    ['nobody', 'none runs. It is taken up within moments of one that starts.'],
    ['full', 'all their places for it are taken. It is taken up when its turn comes.'],
    ['free', 'some run, and not all their places are taken.'],
  ] as const)(
    'whose tries nobody takes up is told why, as far as that is known, with the way to the queues: %s',
    (why, words) => {
      const late = '2026-11-23T09:09:06.000Z'
      const ofLooks = unreachedWords({ ...well, at: late, looks: { ...looksOf(look), untaken: why } })
      const unfollowed = { tasks: [task], count: 1, isWhole: true, untaken: why }
      for (const told of [ofLooks, unreachedWords({ ...well, at: late, unfollowed })]) {
        expect(told?.sentences.join(' ')).toContain(`no worker has taken it up: ${words}`)
        expect(told?.remedies).toEqual(['see-queues'])
      }
      expect(unreachedWords({ ...well, unfollowed })?.remedies).toEqual([])
    },
  )

  it.each([
    [1, true, 'Following 1 task does not work'],
    [3, true, 'Following 3 tasks does not work'],
    [1, false, 'Following 1+ tasks does not work'],
  ] as const)('of which only tasks fail is told by them: %d, whole: %s', (count, isWhole, title) => {
    const told = unreachedWords({ ...well, unfollowed: { tasks: [task], count, isWhole } })
    expect(told?.title).toBe(title)
    expect(told?.sentences[0]).toBe('Reason: No answer.')
  })

  it('is said to be tried now by leaving out when, and of no log by leaving out since when', () => {
    const told = unreachedWords({
      ...well,
      cardReadAt: null,
      looks: looksOf({ ...look, since: null, nextTryAt: null }),
    })
    expect(told?.known).toEqual([])
  })
})

it.each([
  [1, true, '1 send of others is not delivered yet', 'Accepted'],
  [2, true, '2 sends of others are not delivered yet', 'The oldest was accepted'],
  [1, false, '1+ sends of others are not delivered yet', 'The oldest was accepted'],
] as const)('others’ sends: %d, whole: %s', (count, isWhole, title, words) => {
  const told = othersWords({ ...well, others: { count, isWhole, oldestAt: at(2) } })
  expect(told).toMatchObject({ tone: 'quiet', title, known: [{ words, at: at(2) }] })
})

it.each([
  ['command', 1, 'All its places for delivering messages are taken', '1 waits for one, and begins as soon as', 'Due'],
  [
    'subscription',
    3,
    'All its places for following tasks are taken',
    '3 wait for one, and each begins as',
    'The oldest was due',
  ],
] as const)('its places, all taken: %s, %d', (kind, waiting, title, sentence, words) => {
  const told = fullWords({ kind, taken: 8, places: 8, waiting, oldestDueAt: at(2), requestSince: at(3) })
  expect(told).toMatchObject({ tone: 'warn', title })
  // As among the queues.
  expect(title).toContain(inside(kindTitle(kind)))
  expect(told.sentences.join(' ')).toContain(`8 of 8 places are taken. ${sentence}`)
  expect(told.known).toEqual([
    { words, at: at(2) },
    { words: 'The first place is free by about', at: at(4) },
  ])
})

it('places that others have, all taken', () => {
  const full = { kind: 'subscription', taken: 1, places: 16, waiting: 2, oldestDueAt: at(2), requestSince: null }
  expect(fullWords(full)).toMatchObject({
    title: 'No place is left for following tasks',
    sentences: [
      'It has 1 of 16 places, and others have the rest. 2 wait for one, and each begins when its turn comes.',
    ],
  })
})
