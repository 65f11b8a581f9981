/** Counting deliveries: exact under concurrency and across replicas, cheap in a flood, anew in each window; and bodies bounded together. */
import { PassThrough, Readable } from 'node:stream'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Gathering, gatheringLimits, type Answers } from '../../actors/gathering.ts'
import { DatabaseBusy } from '../../persistence/admission.ts'
import { RateCounter, rateLimits } from '../../actors/rate-counter.ts'
import { Bodies } from '../../http/push-bodies.ts'
import { openDatabase } from '../../persistence/database.ts'
import { forgetWindows, takePlaces } from '../../persistence/rate-limits.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const monotonic = (): number => performance.now()

describe.each(bothDatabases)('windows on %s', (database) => {
  let fresh: FreshDatabase
  beforeAll(async () => void (fresh = await freshDatabase(database)))
  afterAll(() => fresh.close())
  /** A window that is not over while the test runs. */
  const begin = (bucket: string, taken: number, ahead = '1 minute') =>
    fresh.db.pool.query(sql.unsafe`
      insert into rate_window (bucket, starts_at, taken) values (${bucket}, now() + ${ahead}::interval, ${taken})`)
  const buckets = () => fresh.db.pool.anyFirst(sql.unsafe`select bucket from rate_window order by bucket`)

  test('a hundred callers at once get exactly the places there are', async () => {
    await begin('push', 0)
    const counter = new RateCounter(fresh.db, { ...rateLimits, push: 30 }, monotonic)
    const granted = await Promise.all(Array.from({ length: 100 }, () => counter.take('push')))
    expect(granted.filter((is) => is)).toHaveLength(30)
  })

  test('single and gathered callers take from one count, of several buckets in one statement', async () => {
    await begin('mixed', 7)
    await begin('beside', 0)
    const take = (wanted: number) =>
      takePlaces(fresh.db.pool, [
        { bucket: 'mixed', wanted, limit: 10 },
        { bucket: 'beside', wanted: 1, limit: 2 },
      ])
    expect(await take(1)).toMatchObject([{ granted: 1 }, { granted: 1 }])
    expect(await take(5)).toMatchObject([{ granted: 2 }, { granted: 1 }])
    expect(await take(5)).toMatchObject([{ granted: 0 }, { granted: 0 }])
  })

  test('who comes at once is counted together, each by their own limit', async () => {
    const [read, operate, administer] = [30, 20, 10]
    const kinds = ['read', 'operate', 'administer'] as const
    for (const kind of kinds) for (const person of ['ada', 'ben']) await begin(`${kind}/${person}`, 0)
    const counter = new RateCounter(fresh.db, { ...rateLimits, read, operate, administer }, monotonic)
    const grantedTo = async (kind: (typeof kinds)[number], person: string) => {
      const granted = await Promise.all(Array.from({ length: 35 }, () => counter.take(kind, person)))
      return granted.filter((is) => is).length
    }
    const asked = kinds.flatMap((kind) => ['ada', 'ben'].map((person) => grantedTo(kind, person)))
    expect(await Promise.all(asked)).toEqual([30, 30, 20, 20, 10, 10])
  })

  test('the next window begins empty, at the minute, and a bucket that nobody asks for is forgotten', async () => {
    await begin('old', 1000, '-1 minute')
    await begin('older', 1000, '-1 hour')
    // As if the clock had been set back by an hour.
    await begin('ahead', 1000, '1 hour')
    const [ahead, places] = await takePlaces(fresh.db.pool, [
      { bucket: 'ahead', wanted: 1, limit: 2 },
      { bucket: 'old', wanted: 1, limit: 2 },
    ])
    expect([ahead?.granted, places?.granted]).toEqual([1, 1])
    expect(places?.leftMs).toBeGreaterThan(0)
    expect(places?.leftMs).toBeLessThanOrEqual(60_000)
    await forgetWindows(fresh.db.pool)
    expect(await buckets()).toContain('old')
    expect(await buckets()).not.toContain('older')
  })
})

test('who asks in one turn or meanwhile is answered together, each in turn; a failure is told to all who wait, and to nobody after', async () => {
  interface Batch {
    readonly asked: readonly (readonly [string, number])[]
    readonly end: (how: 'well' | 'badly') => void
  }
  const batches: Batch[] = []
  const gathering = new Gathering<string, string>(
    (asked) => {
      const { promise, resolve, reject } = Promise.withResolvers<Answers<string>[]>()
      const answers = asked.map(
        ({ question }) =>
          (caller: number) =>
            `${question} ${caller}`,
      )
      const end = (how: 'well' | 'badly') => (how === 'well' ? resolve(answers) : reject(new Error('Away.')))
      batches.push({ asked: asked.map(({ question, callers }) => [question, callers]), end })
      return promise
    },
    gatheringLimits({ profile: 'pglite' }),
  )
  const ask = async (...questions: string[]) => {
    const answers = await Promise.allSettled(questions.map((each) => gathering.ask(each, each)))
    return answers.map((each) => (each.status === 'fulfilled' ? each.value : 'failed'))
  }
  const left = async (count: number): Promise<void> => {
    await expect.poll(() => batches.length).toBe(count)
  }
  const first = ask('a', 'c')
  await left(1)
  const meanwhile = ask('b', 'a', 'b')
  batches[0]?.end('well')
  expect(await first).toEqual(['a 0', 'c 0'])
  await left(2)
  batches[1]?.end('well')
  expect(await meanwhile).toEqual(['b 0', 'a 0', 'b 1'])
  const failing = ask('c')
  await left(3)
  const waiting = ask('d')
  batches[2]?.end('badly')
  expect([await failing, await waiting]).toEqual([['failed'], ['failed']])
  const anew = ask('c')
  await left(4)
  batches[3]?.end('well')
  expect(await anew).toEqual(['c 0'])
  expect(batches.map(({ asked }) => asked)).toEqual([
    [
      ['a', 1],
      ['c', 1],
    ],
    [
      ['b', 2],
      ['a', 1],
    ],
    [['c', 1]],
    [['c', 1]],
  ])
})

test('PostgreSQL is asked twice at once: who comes while one is under way does not wait for it, and the third waits for either', async () => {
  const asked: string[][] = []
  const ends: (() => void)[] = []
  const gathering = new Gathering<string, string>(
    async (batch) => {
      asked.push(batch.map(({ question }) => question))
      await new Promise<void>((resolve) => ends.push(resolve))
      return batch.map(
        ({ question }) =>
          () =>
            question,
      )
    },
    gatheringLimits({ profile: 'postgresql' }),
  )
  const answers: Promise<string>[] = []
  for (const question of ['a', 'b', 'c', 'd']) {
    answers.push(gathering.ask(question, question))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(asked).toEqual([['a'], ['b']])
  ends[1]?.()
  expect(await answers[1]).toBe('b')
  await expect.poll(() => asked).toEqual([['a'], ['b'], ['c', 'd']])
  ends[2]?.()
  ends[0]?.()
  expect(await Promise.all(answers)).toEqual(['a', 'b', 'c', 'd'])
})

test('replicas together grant no more than one alone, and once the window is full they do not even ask', async () => {
  const { db, profile, close } = await freshDatabase('postgresql')
  await db.pool.query(sql.unsafe`
    insert into rate_window (bucket, starts_at, taken) values ('push', now() + interval '1 minute', 0)`)
  const other = await openDatabase(profile)
  const counters = [db, other].map((each) => new RateCounter(each, { ...rateLimits, push: 250 }, monotonic))
  const granted = await Promise.all(
    Array.from({ length: 40 }, (_, i) => i).flatMap(() =>
      counters.flatMap((counter) => Array.from({ length: 4 }, () => counter.take('push'))),
    ),
  )
  expect(granted.filter((is) => is)).toHaveLength(250)
  expect(await Promise.all(counters.map((counter) => counter.take('push')))).toEqual([false, false])
  await Promise.all([other.close(), close()])
  // The database is gone, and nobody misses it: for the rest of the minute the answer is known.
  expect(await Promise.all(counters.map((counter) => counter.take('push')))).toEqual([false, false])
})

test('bodies are bounded, each and together: who comes when too much is held is told to come later', async () => {
  const bodies = new Bodies({ eachBytes: 100, senderBytes: 250, togetherBytes: 250, withinMs: 60_000 })
  const refusal = (code: string) => ({ name: 'Refusal', code })
  const used: number[] = []
  const whole = (bytes: number, until: Promise<void> = Promise.resolve()): Promise<void> =>
    bodies.read('one', Readable.from([Buffer.alloc(bytes / 2), Buffer.alloc(bytes / 2)]), async (body) => {
      used.push(body.length)
      await until
    })
  const { promise, resolve } = Promise.withResolvers<void>()
  await expect(whole(102)).rejects.toMatchObject(refusal('body.size'))
  // One whose delivery is under way counts, and so does one whose sender takes its time.
  const held = [whole(100, promise), whole(100, promise)]
  const slow = new PassThrough()
  const late = bodies.read('one', slow, () => Promise.resolve())
  slow.write(Buffer.alloc(40))
  await expect.poll(() => slow.readableLength).toBe(0)
  await expect(whole(12)).rejects.toMatchObject(refusal('push.unavailable'))
  await whole(10)
  resolve()
  await Promise.all(held)
  slow.destroy(new Error('The sender hung up.'))
  await expect(late).rejects.toThrow('hung up')
  await Promise.all([whole(100), whole(100)])
  expect(used).toEqual([100, 100, 10, 100, 100])
})

test('one sender takes no more than its part, and what does not come in time gives its place back', async () => {
  const limits = { eachBytes: 100, senderBytes: 200, togetherBytes: 400 }
  const later = { name: 'Refusal', code: 'push.unavailable' }
  const done = (): Promise<void> => Promise.resolve()
  const bodies = new Bodies({ ...limits, withinMs: 60_000 })
  const stalled = [new PassThrough(), new PassThrough()]
  const waiting = stalled.map((body) => bodies.read('one', body, done))
  for (const body of stalled) body.write(Buffer.alloc(99))
  await expect.poll(() => stalled.map((body) => body.readableLength)).toEqual([0, 0])
  await expect(bodies.read('one', Readable.from([Buffer.alloc(3)]), done)).rejects.toMatchObject(later)
  await Promise.all([0, 1].map(() => bodies.read('other', Readable.from([Buffer.alloc(100)]), done)))
  for (const body of stalled) body.end()
  await Promise.all(waiting)

  const hasty = new Bodies({ ...limits, withinMs: 50 })
  const slow = new PassThrough()
  // However it comes: a byte now and then is no progress.
  const dripping = setInterval(() => slow.write(Buffer.alloc(1)), 5)
  await expect(hasty.read('one', slow, done)).rejects.toMatchObject(later)
  clearInterval(dripping)
  // It can still be answered, and nothing of it is held any more.
  expect(slow.destroyed).toBe(false)
  await Promise.all([0, 1].map(() => hasty.read('one', Readable.from([Buffer.alloc(100)]), done)))
})

test('who asks what hangs or waits behind it is turned away in time, and so is who finds too many waiting', async () => {
  const hanging = Promise.withResolvers<Answers<string>[]>()
  const asked: (readonly string[])[] = []
  const gathering = new Gathering<string, string>(
    (batch) => {
      asked.push(batch.map(({ question }) => question))
      return asked.length === 1
        ? hanging.promise
        : Promise.resolve(
            batch.map(
              ({ question }) =>
                () =>
                  question,
            ),
          )
    },
    { atOnce: 1, patienceMs: 300, waitingLimit: 2 },
  )
  const outcome = (question: string): Promise<unknown> =>
    gathering.ask(question, question).catch((error: unknown) => error)
  const first = outcome('hangs')
  await expect.poll(() => asked.length).toBe(1)
  const turnedAway = await Promise.all([first, outcome('a'), outcome('b'), outcome('c')])
  expect(turnedAway).toEqual(turnedAway.map(() => new DatabaseBusy()))
  // Nobody asks any more for those who were turned away, and the next are answered as ever.
  const next = gathering.ask('d', 'd')
  hanging.resolve([() => 'at last'])
  expect(await next).toBe('d')
  expect(asked).toEqual([['hangs'], ['d']])
})
