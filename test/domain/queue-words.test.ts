/** How queues, loops and the whole system are said to stand: in words, by the times and places that are known. */
import { describe, expect, it } from 'vitest'
import { stuckAfterMs } from '../../domain/explanation.ts'
import type { HeldLeases, KindQueue, LoopView, SupervisorAnswer } from '../../domain/queue.ts'
import { countWords, loopStanding, loopWords, queueStanding, systemStanding } from '../../domain/queue-words.ts'
import { loopNames } from '../../machines/supervisor.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')
const ago = (ms: number): string => new Date(nowMs - ms).toISOString()

const queue = (dueMs: number | null): KindQueue => ({
  kind: 'command',
  due: dueMs === null ? 0 : 3,
  oldestDueAt: dueMs === null ? null : ago(dueMs),
  attention: 0,
})
const held = (more: Partial<HeldLeases> = {}): HeldLeases => ({
  owner: 'host/1/ab',
  kind: 'command',
  held: 2,
  expired: 0,
  oldestSince: ago(1000),
  nextEndAt: ago(-10_000),
  ...more,
})
const places = (taken: number) => ({ taken, limit: 8, perAgent: 4 })
const loop = (more: Partial<LoopView> = {}): LoopView => ({
  name: 'command',
  state: 'up',
  restarts: 0,
  lastFailure: null,
  lastOutage: null,
  places: places(0),
  ...more,
})
const supervisor = (
  value: SupervisorAnswer['supervisor']['value'],
  loops: LoopView[] = [loop()],
): SupervisorAnswer => ({
  supervisor: { value, machineVersion: '1', restarts: 0, lastFailure: null },
  process: {
    owner: 'host/1/ab',
    works: true,
    loops,
    parser: { threads: 1, underWay: 0, queued: 0, bytesUnderWay: 0, tasksLost: 0 },
    database: { profile: 'pglite', inUse: 0, idle: 1, waiting: 0 },
  },
})

describe('a queue', () => {
  it.each([
    ['nothing', queue(null), [], null, 'ok', 'Nothing waits'],
    ['what is taken at once', queue(stuckAfterMs - 1), [], null, 'quiet', 'Being taken'],
    ['nobody', queue(stuckAfterMs), [], null, 'warn', 'Stuck: nobody works on it'],
    ['nobody of its kind', queue(stuckAfterMs), [held({ kind: 'push' })], null, 'warn', 'Stuck: nobody works on it'],
    ['room here', queue(stuckAfterMs), [held()], places(8), 'warn', 'Waits for room: 8 of 8 places are taken'],
    ['an agent', queue(stuckAfterMs), [held()], places(4), 'warn', 'has all its places taken'],
    ['a dead worker', queue(stuckAfterMs), [held({ expired: 1 })], places(8), 'warn', 'Stuck: 1 lease ran out'],
  ] as const)('waits for %s', (_, of, leases, room, tone, words) => {
    const standing = queueStanding(of, leases, room, nowMs)
    expect(standing.tone).toBe(tone)
    expect(standing.words).toContain(words)
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
  ] as const)('%#', (of, tone, words) => {
    expect(loopStanding(of, nowMs)).toEqual({ tone, words })
  })

  it('says what it is for, each of ours', () => {
    expect(loopNames.filter((name) => loopWords(name) === '')).toEqual([])
  })
})

describe('the whole', () => {
  const running = { running: { command: 'up' } }
  it.each([
    ['starting', undefined, 'quiet', 'Starting'],
    ['draining', undefined, 'warn', 'Draining: this process stops'],
    ['broken', undefined, 'bad', 'Gave up: this process ends'],
    [running, undefined, 'ok', 'Everything runs, nothing waits'],
    [running, { kinds: [queue(1000)], leases: [] }, 'ok', 'Everything runs, 3 due'],
    [running, { kinds: [queue(stuckAfterMs)], leases: [] }, 'warn', 'command: stuck: nobody works on it'],
    [
      running,
      { kinds: [queue(stuckAfterMs), { ...queue(stuckAfterMs), kind: 'push' }], leases: [] },
      'warn',
      'Waiting too long: command, push',
    ],
  ] as const)('%#', (value, queues, tone, words) => {
    const told = queues && { kinds: [...queues.kinds], leases: [...queues.leases], processes: [] }
    expect(systemStanding(supervisor(value), told, nowMs)).toEqual({ tone, words })
  })

  it('is as bad as its worst loop, before anything that only waits', () => {
    const loops = [loop(), loop({ name: 'push', state: 'restarting' })]
    const stuck = { kinds: [queue(stuckAfterMs)], leases: [], processes: [] }
    const away = loop({ lastOutage: { at: ago(1000), pauseMs: 250 } })
    expect(systemStanding(supervisor(running, [away, away]), stuck, nowMs).words).toBe(
      '2 loops: waiting for the database',
    )
    expect(systemStanding(supervisor(running, [away, away, loop({ state: 'off' })]), stuck, nowMs).tone).toBe('bad')
    expect(systemStanding(supervisor(running, loops), stuck, nowMs)).toEqual({
      tone: 'warn',
      words: 'push: failed, starting again',
    })
  })
})
