/** How queues, loops and the whole system are said to stand: in words, by the times and places that are known. */
import { describe, expect, it } from 'vitest'
import { stuckAfterMs } from '../../domain/actor-explanation.ts'
import type { HeldLeases, KindQueue, LoopView, SupervisorAnswer, ToldProcess } from '../../domain/queue.ts'
import {
  countWords,
  loopStanding,
  loopWords,
  placesOf,
  processStanding,
  queueStanding,
  systemStanding,
} from '../../domain/queue-words.ts'
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

describe('several processes', () => {
  const running = { running: { command: 'up' } }
  const web = (() => {
    const own = supervisor(running, [loop({ state: 'left', places: null })])
    return { ...own, process: { ...own.process, owner: 'web', works: false } }
  })()
  const worker = (more: Partial<ToldProcess> = {}, loops = [loop({ places: places(3) })]): ToldProcess => ({
    owner: 'worker',
    seenAt: ago(1_000),
    told: supervisor(running, loops),
    ...more,
  })
  const those = (...processes: ToldProcess[]) => ({ kinds: [], leases: [] as HeldLeases[], processes })
  const alone: ToldProcess = { owner: 'web', seenAt: ago(0), told: web }

  it.each([
    [worker(), 'ok', 'Works'],
    [alone, 'ok', 'Serves, and leaves the work to others'],
    [worker({ seenAt: ago(14_999) }), 'ok', 'Works'],
    [
      worker({ seenAt: ago(15_000) }),
      'warn',
      'Silent for 15 s: it ended without a word, or does not reach the database',
    ],
    [worker({ told: null }), 'quiet', 'Lives; it is of another release'],
    [worker({ told: supervisor('draining') }), 'warn', 'Draining: this process stops'],
    [worker({}, [loop({ state: 'restarting' })]), 'warn', 'command: failed, starting again'],
  ] as const)('each stand by what they told: %#', (process, tone, words) => {
    expect(processStanding(process, nowMs)).toEqual({ tone, words })
  })

  const holding = (lease: HeldLeases) => ({ ...those(alone), leases: [lease] })
  const missing = 'No worker runs: what was accepted waits until one does'
  it.each([
    ['none', those(alone), 'bad', missing],
    ['one that is silent', those(alone, worker({ seenAt: ago(15_000) })), 'bad', missing],
    ['one that drains', those(alone, worker({ told: supervisor('draining') })), 'bad', missing],
    ['one more web', those(alone, { ...alone, owner: 'web 2' }), 'bad', missing],
    ['one that starts', those(alone, worker({ told: supervisor('starting') })), 'ok', 'Everything runs, nothing waits'],
    ['one of another release', those(worker({ told: null })), 'ok', 'Everything runs, nothing waits'],
    ['one that is known by its leases', holding(held()), 'ok', 'Everything runs, nothing waits'],
    ['one whose leases ran out', holding(held({ expired: 2 })), 'bad', missing],
    ['one in trouble', those(worker({}, [loop({ state: 'off' })])), 'bad', 'worker: command: not running'],
    ['what is not known', undefined, 'ok', 'Everything runs, nothing waits'],
  ] as const)('a web that leaves the work to others, with %s', (_, queues, tone, words) => {
    expect(systemStanding(web, queues, nowMs)).toEqual({ tone, words })
  })

  it('have their places together, those that live', () => {
    const two = worker({ owner: 'worker 2' })
    const dead = worker({ owner: 'dead', seenAt: ago(20_000) })
    expect(placesOf(web, [worker(), two, dead], 'command', nowMs)).toEqual({ taken: 6, limit: 16 })
    expect(placesOf(web, [], 'command', nowMs)).toBeNull()
    const full = worker({}, [loop({ places: places(8) })])
    const late = { kinds: [queue(stuckAfterMs)], leases: [held({ owner: 'worker' })], processes: [full] }
    expect(systemStanding(web, late, nowMs).words).toBe('command: waits for room: 8 of 8 places are taken')
  })
})
