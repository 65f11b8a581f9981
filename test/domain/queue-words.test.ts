/** How queues and loops are said to stand: in words, by the times and places that are known. */
import { describe, expect, it } from 'vitest'
import { stuckAfterMs } from '../../domain/patience.ts'
import {
  agedWords,
  commandsWords,
  countWords,
  heldOf,
  kindTitle,
  loopStanding,
  loopWords,
  queueSentence,
  queueStanding,
} from '../../domain/queue-words.ts'
import type { HeldLeases } from '../../domain/queue.ts'
import { loopNames } from '../../machines/supervisor.ts'
import { nowMs, ago, queue, held, places, loop } from './seen-queues.ts'

const all = (leases: readonly HeldLeases[], ...silent: readonly string[]) => ({ leases, silent: new Set(silent) })

describe('a queue', () => {
  it.each([
    ['nothing', queue(null), [], null, 'ok', 'Nothing is due'],
    ['what is taken at once', queue(stuckAfterMs - 1), [], places(0), 'quiet', 'Being taken'],
    ['what its holder takes at once', queue(stuckAfterMs - 1), [held()], null, 'quiet', 'Being taken'],
    ['what nobody is there to take', queue(stuckAfterMs - 1), [held({ kind: 'push' })], null, 'quiet', 'Not taken yet'],
    ['what only the dead held', queue(stuckAfterMs - 1), [held({ expired: 2 })], null, 'quiet', 'Not taken yet'],
    ['nobody', queue(stuckAfterMs), [], null, 'warn', 'Stuck: nobody works on it'],
    ['nobody of its kind', queue(stuckAfterMs), [held({ kind: 'push' })], null, 'warn', 'Stuck: nobody works on it'],
    ['room here', queue(stuckAfterMs), [held()], places(8), 'warn', 'Waits for room: 8 of 8 places are taken'],
    ['room that others have', queue(stuckAfterMs), [], places(8), 'warn', 'Waits for room: 8 of 8 places are taken'],
    ['nobody, with room', queue(stuckAfterMs), [], places(7), 'warn', 'Stuck: nobody works on it'],
    [
      'whom nobody knows',
      queue(stuckAfterMs),
      [held()],
      null,
      'warn',
      'for room, or for an agent that has all its places taken',
    ],
    [
      'who ended a moment ago and is still heard of, with room',
      queue(stuckAfterMs),
      [held()],
      places(4),
      'warn',
      'Waits: though 4 of 8 places are free: for an agent that has all it may have, or a worker that ended or is slow',
    ],
    ['a dead worker', queue(stuckAfterMs), [held({ expired: 2 })], places(7), 'warn', 'Stuck: 2 leases ran out'],
    [
      'room, as what a dead worker held does',
      queue(stuckAfterMs),
      [held({ owner: 'dead', held: 1, expired: 1 })],
      places(8),
      'warn',
      'Waits for room: 8 of 8 places are taken, and 1 lease ran out meanwhile',
    ],
    [
      'what a dead worker’s work waits for, too',
      queue(stuckAfterMs),
      [held(), held({ owner: 'dead', expired: 2 })],
      places(4),
      'warn',
      'or a worker that ended or is slow, and 2 leases ran out meanwhile',
    ],
  ] as const)('waits for %s', (_, of, leases, room, tone, words) => {
    const standing = queueStanding(of, all(leases), room, nowMs)
    expect(standing.tone).toBe(tone)
    expect(standing.words).toContain(words)
  })

  it('is said to wait for the agent that hangs, where one has all its places taken', () => {
    const waits = (atAgent: number, taken = 5) => {
      const shared = { taken, limit: 32, perAgent: 4 }
      const busiest = { name: 'Ledger Agent', held: atAgent }
      return queueStanding({ ...queue(stuckAfterMs), busiest }, all([held()]), shared, nowMs).words
    }
    expect(waits(4)).toBe('Waits: for an agent that has all its places taken, as \u2068Ledger Agent\u2069 has')
    expect(waits(3)).not.toContain('Ledger Agent')
    // It may have a third of what is free, where that is less.
    expect(waits(3, 24)).toContain('Ledger Agent')
  })

  it.each([
    ['nothing that waits', queue(null), 'A worker is silent and holds 2'],
    ['a moment’s wait', queue(stuckAfterMs - 1), 'A worker is silent and holds 2'],
    ['a long wait', queue(stuckAfterMs), 'Stuck: nobody works on it. A worker is silent and holds 2'],
  ] as const)('is not said to be under way where who holds it is silent, with %s', (_, of, words) => {
    const holders = all([held(), held({ kind: 'push' })], 'host/1/ab')
    expect(queueStanding(of, holders, null, nowMs)).toEqual({ tone: 'warn', words })
    expect(heldOf('command', holders)).toEqual({ underWay: 0, unheard: 2 })
  })

  it('is told of by what is not heard of, beside what is under way', () => {
    const holders = all([held(), held({ owner: 'b' }), held({ owner: 'c', held: 5, expired: 1 })], 'b', 'c')
    expect(queueStanding(queue(null), holders, null, nowMs).words).toBe('2 workers are silent and hold 6')
    expect(heldOf('command', holders)).toEqual({ underWay: 2, unheard: 6 })
    // What ran out is told as that.
    expect(queueStanding(queue(null), all([held({ expired: 2 })], 'host/1/ab'), null, nowMs).words).toBe(
      'Nothing is due',
    )
  })

  it('is named in words where nothing else says which it is', () => {
    expect(queueSentence(queue(stuckAfterMs - 1), all([]), null, nowMs)).toBeNull()
    expect(queueSentence(queue(stuckAfterMs), all([]), null, nowMs)).toBe(
      'Delivering messages is stuck: nobody works on it',
    )
    expect(
      queueSentence(
        { ...queue(stuckAfterMs), kind: 'subscription' },
        all([held({ kind: 'subscription' })]),
        places(8),
        nowMs,
      ),
    ).toBe('Following tasks waits for room: 8 of 8 places are taken')
    expect(kindTitle('of another release')).toBe('of another release')
  })

  it('is told beside what is pending so that the two agree: what is not due is at work, or has its time', () => {
    const format = { count: String, duration: (ms: number) => `${ms / 1000} s` }
    const told = (pending: number, due: number, ageMs: number | null) =>
      commandsWords(
        { pending, dispatching: 2, oldestPendingAt: ageMs === null ? null : ago(ageMs) },
        due,
        nowMs,
        format,
      )
    expect(told(5, 0, 12_400)).toBe(
      'Commands: 5 pending, the oldest for 12 s (none of it is due: a worker holds it, or its next try has a time); 2 begun, no answer yet.',
    )
    expect(told(5, 3, 12_400)).toBe('Commands: 5 pending, the oldest for 12 s; 2 begun, no answer yet.')
    expect(told(0, 0, null)).toBe('Commands: 0 pending; 2 begun, no answer yet.')
    // What was accepted since the numbers were read is not older than nothing.
    for (const ageMs of [-20, 0, 999]) expect(told(1, 1, ageMs)).toContain('the oldest for less than 1 s;')
    expect(agedWords(1_000, format.duration)).toBe('1 s')
  })

  it('is counted up to where counting stopped', () => {
    expect([999, 1000, 1001].map((n) => countWords(n, 1000, String))).toEqual(['999', '1000', '1000+'])
  })
})

describe('a loop', () => {
  const lastFailure = { message: 'TypeError', at: ago(1000) }
  it.each([
    [loop(), 'ok', 'Up'],
    [loop({ lastFailure }), 'quiet', 'Up again'],
    [loop({ state: 'restarting', lastFailure }), 'warn', 'Failed, starting again'],
    [loop({ state: 'left' }), 'quiet', 'Left to workers'],
    [loop({ state: 'off' }), 'bad', 'Not running'],
    [loop({ lastOutage: { at: ago(1000), pauseMs: 5000 } }), 'warn', 'Waiting for the database'],
    [loop({ lastOutage: { at: ago(60_000), pauseMs: 5000 } }), 'ok', 'Up'],
    // Hosts an hour ahead and an hour behind: how long ago it was is the same everywhere.
    [loop({ lastOutage: { at: ago(-3_600_000), agoMs: 60_000, pauseMs: 5000 } }), 'ok', 'Up'],
    [loop({ lastOutage: { at: ago(3_600_000), agoMs: 1000, pauseMs: 5000 } }), 'warn', 'Waiting for the database'],
    [
      loop({ lastOutage: { at: ago(1000), agoMs: 1000, pauseMs: 250, cause: 'artifacts' } }),
      'warn',
      'The files’ directory cannot be read or written',
    ],
  ] as const)('%#', (of, tone, words) => {
    expect(loopStanding(of, nowMs)).toEqual({ tone, words })
  })

  it('says what it is for, each of ours', () => {
    expect(loopNames.filter((name) => loopWords(name) === '')).toEqual([])
  })
})
