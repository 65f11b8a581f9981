/** How processes and the whole system are said to stand: the worst of what is known, and nothing of what is not. */
import { describe, expect, it } from 'vitest'
import { slowAnswerMs, stuckAfterMs } from '../../domain/patience.ts'
import type { HeldLeases, LoopView, SupervisorAnswer, ToldProcess } from '../../domain/queue.ts'
import {
  needingStanding,
  placesOf,
  processStanding,
  replacedOwners,
  shortOwner,
  systemStanding,
  workingProcess,
  type Missing,
  type QueuesNews,
  type SeenQueues,
} from '../../domain/system-words.ts'
import { nowMs, ago, queue, held, places, loop } from './seen-queues.ts'

/** As they were when they were read, which is now where it is not said. */
const read = (seen: Omit<SeenQueues, 'at'>, at = ago(0)): QueuesNews => ({ known: { at, ...seen } })

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

describe('the whole', () => {
  const running = { running: { command: 'up' } }
  const idle = { kinds: [], leases: [] }
  const unseen = (needing: Readonly<Record<string, number>>) => ({
    kinds: Object.entries(needing).map(([kind, unseen]) => ({ ...queue(null), kind, attention: unseen, unseen })),
    leases: [],
  })
  it.each([
    ['starting', idle, 'quiet', 'Starting'],
    ['draining', idle, 'warn', 'Draining: this process stops'],
    ['broken', idle, 'bad', 'Gave up: this process ends'],
    [running, idle, 'ok', 'Everything runs, nothing is due'],
    [running, { kinds: [queue(1000)], leases: [] }, 'ok', 'Everything runs, 3 due'],
    [running, { kinds: [queue(stuckAfterMs)], leases: [] }, 'warn', 'Delivering messages is stuck: nobody works on it'],
    [
      running,
      { kinds: [queue(stuckAfterMs), { ...queue(stuckAfterMs), kind: 'push' }], leases: [] },
      'warn',
      'Waiting too long: delivering messages, registering for push',
    ],
    [running, unseen({ subscription: 1 }), 'warn', '1 task is not followed'],
    [
      running,
      unseen({ subscription: 1001, reconciliation: 2 }),
      'warn',
      '1000+ tasks are not followed, an agent cannot be read',
    ],
    [running, unseen({ reconciliation: 2 }), 'warn', 'An agent cannot be read'],
    // A message that needs a person keeps nothing from running.
    [running, { kinds: [{ ...queue(null), attention: 2 }], leases: [] }, 'ok', 'Everything runs, nothing is due'],
    [
      running,
      { ...unseen({ subscription: 1 }), kinds: [queue(stuckAfterMs), ...unseen({ subscription: 1 }).kinds] },
      'warn',
      'Delivering messages is stuck: nobody works on it',
    ],
  ] as const)('%#', (value, queues, tone, words) => {
    const told = { kinds: [...queues.kinds], leases: [...queues.leases], processes: [] }
    expect(systemStanding(supervisor(value), read(told), nowMs)).toEqual({ tone, words })
  })

  it('is as bad as its worst loop, before anything that only waits', () => {
    const loops = [loop(), loop({ name: 'push', state: 'restarting' })]
    const stuck = read({ kinds: [queue(stuckAfterMs)], leases: [], processes: [] })
    const away = loop({ lastOutage: { at: ago(1000), pauseMs: 250 } })
    // Who has read what is stuck has heard the database answer.
    expect(systemStanding(supervisor(running, [away, away]), stuck, nowMs)).toEqual({
      tone: 'warn',
      words: '2 loops waited for the database just now',
    })
    expect(systemStanding(supervisor(running, [away, away, loop({ state: 'off' })]), stuck, nowMs).tone).toBe('bad')
    const full = loop({ name: 'housekeeping', lastOutage: { at: ago(1000), pauseMs: 250, cause: 'artifacts' } })
    expect(systemStanding(supervisor(running, [full]), stuck, nowMs)).toEqual({
      tone: 'warn',
      words: 'The housekeeping loop waits for the files’ directory',
    })
    expect(systemStanding(supervisor(running, loops), stuck, nowMs)).toEqual({
      tone: 'warn',
      words: 'The push loop failed and starts again',
    })
  })
})

describe('a database whose answers are waited for', () => {
  const running = { running: { command: 'up' } }
  const answering = (answerMs: number, more: { waiting?: number; loops?: LoopView[] } = {}): SupervisorAnswer => {
    const { supervisor: machine, process } = supervisor(running, more.loops)
    const { database } = process
    return {
      supervisor: machine,
      process: { ...process, database: { ...database, waiting: more.waiting ?? 0, answerMs } },
    }
  }
  const slow = { tone: 'warn', words: 'Answers of the database take 2.1 s' }
  const standing = (answer: SupervisorAnswer, dueMs: number | null = null, processes: ToldProcess[] = []) =>
    systemStanding(answer, read({ kinds: [queue(dueMs)], leases: [], processes }), nowMs)

  it('is told of, in the place of what waits for it, and not of a moment', () => {
    expect(standing(answering(2_100))).toEqual(slow)
    expect(standing(answering(2_100), stuckAfterMs)).toEqual(slow)
    expect(standing(answering(slowAnswerMs - 1)).words).toBe('Everything runs, nothing is due')
    // Who has no connection to ask with waits as long for a database that is well.
    expect(standing(answering(2_100, { waiting: 5 })).words).toBe(`${slow.words}, 5 waiting for a connection`)
    // Where a loop was failed by it, that is the worse.
    const away = loop({ lastOutage: { at: ago(1000), pauseMs: 250 } })
    expect(standing(answering(2_100, { loops: [away] })).words).toBe(
      'The command loop waited for the database just now',
    )
  })

  it('is told of beside a worker that is silent, and where another process waits', () => {
    const other = (told: SupervisorAnswer, seenMs: number): ToldProcess => ({
      owner: 'host/2/cd',
      firstSeenAt: ago(3_600_000),
      seenAt: ago(seenMs),
      holds: true,
      told,
    })
    expect(standing(answering(2_100), null, [other(answering(3), 20_000)]).words).toBe(
      '1 of 2 workers is silent; answers of the database take 2.1 s',
    )
    expect(standing(answering(3), null, [other(answering(2_100), 1_000)])).toEqual(slow)
    expect(processStanding(other(answering(2_100), 1_000), nowMs, false)).toEqual(slow)
  })

  it('is told of although, or because, what waits could not be read in time', () => {
    const late = { missing: { why: 'late', since: '12:00' } } as const
    expect(systemStanding(answering(2_100), late, nowMs)).toEqual(slow)
    const silent = { missing: { why: 'console', since: '12:00' } } as const
    expect(systemStanding(answering(2_100), silent, nowMs).words).toContain('The console does not answer')
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
    firstSeenAt: ago(3_600_000),
    seenAt: ago(1_000),
    holds: false,
    told: supervisor(running, loops),
    ...more,
  })
  const those = (...processes: ToldProcess[]) => ({ kinds: [], leases: [] as HeldLeases[], processes })
  const alone: ToldProcess = { ...worker(), owner: 'web', seenAt: ago(0), told: web }

  const lost = 'it ended without a word, or does not reach the database'
  it.each([
    [worker(), 'ok', 'Works'],
    [alone, 'ok', 'Serves, and leaves the work to others'],
    [worker({ seenAt: ago(14_999) }), 'ok', 'Works'],
    [worker({ seenAt: ago(15_000) }), 'warn', `Silent for 15 s: ${lost}`],
    [worker({ seenAt: ago(433_000) }), 'warn', `Silent for 7 min: ${lost}`],
    [
      worker({ seenAt: ago(20_000), told: supervisor('draining') }),
      'quiet',
      'Silent for 20 s: it ended while it drained',
    ],
    [worker({ told: null }), 'quiet', 'Lives; it is of another release'],
    [worker({ told: supervisor('draining') }), 'warn', 'Draining: this process stops'],
    [worker({}, [loop({ state: 'restarting' })]), 'warn', 'The command loop failed and starts again'],
  ] as const)('each stand by what they told: %#', (process, tone, words) => {
    expect(processStanding(process, nowMs, false)).toEqual({ tone, words })
  })

  it('that none works is worse than an outage that is over, and not worse than a loop that does not run', () => {
    const { supervisor: own, process } = web
    const serving = (...loops: LoopView[]) => ({ supervisor: own, process: { ...process, loops } })
    const away = loop({ name: 'freshness', places: null, lastOutage: { at: ago(20_000), pauseMs: 250 } })
    const words = (...loops: LoopView[]) => systemStanding(serving(...loops), read(those(alone)), nowMs).words
    expect(words(away)).toBe(missing)
    expect(words(away, loop({ name: 'housekeeping', state: 'off' }))).toBe('The housekeeping loop does not run')
    expect(processStanding(worker({}, [away]), nowMs, false).words).toBe(
      'The freshness loop waited for the database just now',
    )
  })

  const holding = (lease: HeldLeases) => ({ ...those(alone), leases: [lease] })
  const missing = 'No worker runs: what was accepted waits until one does'
  it.each([
    ['none', those(alone), 'bad', missing],
    ['one that is silent', those(alone, worker({ seenAt: ago(15_000) })), 'bad', missing],
    ['one that drains', those(alone, worker({ told: supervisor('draining') })), 'bad', missing],
    ['one more web', those(alone, { ...alone, owner: 'web 2' }), 'bad', missing],
    [
      'one that starts',
      those(alone, worker({ told: supervisor('starting') })),
      'ok',
      'Everything runs, nothing is due',
    ],
    ['one of another release', those(worker({ told: null })), 'ok', 'Everything runs, nothing is due'],
    ['one that is known by its leases', holding(held()), 'ok', 'Everything runs, nothing is due'],
    ['one whose leases ran out', holding(held({ expired: 2 })), 'bad', missing],
    ['one in trouble', those(worker({}, [loop({ state: 'off' })])), 'bad', 'worker: the command loop does not run'],
  ] as const)('a web that leaves the work to others, with %s', (_, queues, tone, words) => {
    expect(systemStanding(web, read(queues), nowMs)).toEqual({ tone, words })
  })

  it('are not silent because the answer that tells of them is old', () => {
    const told = { kinds: [queue(stuckAfterMs)], leases: [], processes: [alone, worker({ seenAt: ago(16_000) })] }
    expect(systemStanding(web, read(told, ago(12_000)), nowMs)).toEqual({ tone: 'ok', words: 'Everything runs, 3 due' })
  })

  const second = worker({ owner: 'worker 2' })
  const silent = worker({ seenAt: ago(80_000) })
  const drained = worker({ seenAt: ago(80_000), told: supervisor('draining') })
  const silentWeb: ToldProcess = { ...alone, owner: 'web 2', seenAt: ago(80_000) }
  it.each([
    ['one of two', [second, silent], 'warn', '1 of 2 workers is silent'],
    ['two of three', [second, silent, { ...silent, owner: 'worker 3' }], 'warn', '2 of 3 workers are silent'],
    ['one that said that it drains', [second, drained], 'ok', 'Everything runs, nothing is due'],
    ['a web', [second, silentWeb], 'warn', '1 of 3 processes is silent'],
  ] as const)('are missed when they end without a word: %s', (_, processes, tone, words) => {
    expect(systemStanding(web, read(those(alone, ...processes)), nowMs)).toEqual({ tone, words })
  })

  describe('that ended without a word', () => {
    const cameAgo = (owner: string, ms: number, works = true): ToldProcess => {
      const told = supervisor(running)
      return worker({ owner, firstSeenAt: ago(ms), told: { ...told, process: { ...told.process, owner, works } } })
    }
    const gone = (owner: string, ms: number, works = true): ToldProcess => ({
      ...cameAgo(owner, 3_600_000, works),
      seenAt: ago(ms),
    })
    const all = 'Everything runs, nothing is due'
    const standing = (...processes: ToldProcess[]) => systemStanding(web, read(those(alone, ...processes)), nowMs)

    it.each([
      ['replaced at once', [cameAgo('new', 75_000), gone('old', 80_000)], 'ok', all],
      ['by the first word after the last', [cameAgo('new', 80_000), gone('old', 80_000)], 'ok', all],
      [
        'by none that came before it',
        [cameAgo('new', 80_001), gone('old', 80_000)],
        'warn',
        '1 of 2 workers is silent',
      ],
      ['beside one that was there before', [second, gone('old', 80_000)], 'warn', '1 of 2 workers is silent'],
      [
        'two by one',
        [cameAgo('new', 60_000), gone('old', 80_000), gone('older', 90_000)],
        'warn',
        '1 of 2 workers is silent',
      ],
      [
        'two by two, each by one that came later',
        [cameAgo('new', 85_000), cameAgo('newer', 60_000), gone('old', 70_000), gone('older', 90_000)],
        'ok',
        all,
      ],
      [
        'by one that only serves',
        [second, cameAgo('new', 60_000, false), gone('old', 80_000)],
        'warn',
        '1 of 2 workers is silent',
      ],
      [
        'by one that is silent too',
        [second, gone('new', 20_000), gone('old', 80_000)],
        'warn',
        '2 of 3 workers are silent',
      ],
      [
        'each by the next, in a loop of crashes',
        [cameAgo('third', 20_000), { ...gone('second', 40_000), firstSeenAt: ago(60_000) }, gone('first', 80_000)],
        'ok',
        all,
      ],
      [
        'the first by one that is missed itself',
        [second, { ...gone('next', 40_000), firstSeenAt: ago(60_000) }, gone('first', 80_000)],
        'warn',
        '1 of 2 workers is silent',
      ],
      [
        'not by itself, though it was heard of once',
        [second, { ...gone('once', 40_000), firstSeenAt: ago(40_000) }],
        'warn',
        '1 of 2 workers is silent',
      ],
      ['a web, by a web', [second, cameAgo('new', 60_000, false), gone('old', 80_000, false)], 'ok', all],
    ] as const)('are missed unless they were replaced: %s', (_, processes, tone, words) => {
      expect(standing(...processes)).toEqual({ tone, words })
    })

    it('are missed as long as they hold anything, replaced or not', () => {
      const [came, old] = [cameAgo('new', 60_000), gone('old', 80_000)]
      // Of another organization, too: nothing of it is among the leases here.
      expect(standing(came, { ...old, holds: true }).words).toBe('1 of 2 workers is silent')
      expect([...replacedOwners([came, { ...old, holds: true }], nowMs)]).toEqual([])
      expect([...replacedOwners([{ ...came, holds: true }, old], nowMs)]).toEqual(['old'])
    })

    it('are replaced by the one that answers, if the others heard of it after them', () => {
      const old = gone('old', 80_000, false)
      const answering = (ms: number) => ({ ...alone, firstSeenAt: ago(ms) })
      const words = (...processes: ToldProcess[]) =>
        systemStanding(web, read(those(second, old, ...processes)), nowMs).words
      expect(words(answering(70_000))).toBe(all)
      expect(words(answering(90_000))).toBe('1 of 3 processes is silent')
      expect(words()).toBe('1 of 3 processes is silent')
    })

    it('say calmly that they were replaced', () => {
      expect(processStanding(gone('old', 80_000), nowMs, true)).toEqual({
        tone: 'quiet',
        words: 'Silent for 1 min: it ended, holds nothing, and another was started since',
      })
    })
  })

  it('that are silent are told with what waits, for that is often why', () => {
    const kinds = [queue(stuckAfterMs)]
    const leases = [held({ owner: 'worker', expired: 2 })]
    const told = { ...those(second, silent), kinds, leases }
    expect(systemStanding(web, read(told), nowMs).words).toBe(
      '1 of 2 workers is silent; delivering messages is stuck: 2 leases ran out and nobody took over',
    )
    // Its leases have not run out yet, and still nobody works.
    const gone = { ...those(silent), leases: [held({ owner: 'worker' })] }
    expect(systemStanding(web, read(gone), nowMs).words).toBe(missing)
  })

  it('of which one works is shown first where the one that answers does not', () => {
    expect(workingProcess(web, [alone, silent, second], nowMs)).toBe('worker 2')
    expect(workingProcess(web, [alone, silent], nowMs)).toBe('web')
    expect(workingProcess(supervisor(running), [second], nowMs)).toBe('host/1/ab')
  })

  it('are called by the end of a long name', () => {
    expect(shortOwner('host/1/ab')).toBe('host/1/ab')
    expect(shortOwner('signalbox-worker-7d9f8b6c5-x2x4q/1/ab12cd34')).toBe('…f8b6c5-x2x4q/1/ab12cd34')
  })

  it('have their places together, those that live', () => {
    const two = worker({ owner: 'worker 2' })
    const dead = worker({ owner: 'dead', seenAt: ago(20_000) })
    expect(placesOf(web, [worker(), two, dead], 'command', nowMs)).toEqual({ taken: 6, limit: 16, perAgent: 8 })
    expect(placesOf(web, [], 'command', nowMs)).toBeNull()
    const full = worker({}, [loop({ places: places(8) })])
    const late = { kinds: [queue(stuckAfterMs)], leases: [held({ owner: 'worker' })], processes: [full] }
    expect(systemStanding(web, read(late), nowMs).words).toBe(
      'Delivering messages waits for room: 8 of 8 places are taken',
    )
  })
})

describe('what is not known', () => {
  const running = { running: { command: 'up' } }
  const of = (why: Missing['why'], since: string | null = '12:03') => ({ missing: { why, since } })
  it.each([
    [of('unasked', null), 'quiet', 'Not known yet'],
    [of('late'), 'quiet', 'Not known since 12:03'],
    [of('database', null), 'warn', 'The database does not answer'],
    [of('database'), 'warn', 'The database does not answer; numbers as of 12:03'],
    [of('console'), 'warn', 'The console does not answer; numbers as of 12:03'],
    [of('refused', null), 'warn', 'What waits could not be read'],
  ] as const)('is not said to run: %#', (news, tone, words) => {
    expect(systemStanding(supervisor(running), news, nowMs)).toEqual({ tone, words })
    expect(needingStanding(news)).toBeNull()
  })

  it('does not hide what this process says of itself, but for what only waits for the database', () => {
    const waits = supervisor(running, [loop({ lastOutage: { at: ago(1000), pauseMs: 250 } })])
    const off = supervisor(running, [loop({ state: 'off' })])
    expect(systemStanding(waits, of('database'), nowMs).words).toBe('The database does not answer; numbers as of 12:03')
    expect(systemStanding(waits, of('unasked', null), nowMs).words).toBe('The command loop waits for the database')
    expect(systemStanding(off, of('database'), nowMs).tone).toBe('bad')
    expect(systemStanding(off, of('console'), nowMs).words).toBe('The console does not answer; numbers as of 12:03')
  })
})

describe('what needs attention', () => {
  it('is said beside how the machinery stands, and warns', () => {
    const known = (...attention: number[]) =>
      read({ kinds: attention.map((each) => ({ ...queue(null), attention: each })), leases: [], processes: [] })
    expect(needingStanding(known(0))).toBeNull()
    expect(needingStanding(known(0, 1))).toEqual({ tone: 'warn', words: '1 needs attention' })
    expect(needingStanding(known(4, 5))).toEqual({ tone: 'warn', words: '9 need attention' })
  })
})
