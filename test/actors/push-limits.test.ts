/** Counting deliveries: exact under concurrency and across replicas, cheap in a flood, anew in each window; and bodies bounded together. */
import { PassThrough, Readable } from 'node:stream'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RateCounter } from '../../actors/rate-counter.ts'
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
  const begin = (bucket: string, taken: number, ahead = '1 hour') =>
    fresh.db.pool.query(sql.unsafe`
      insert into rate_window (bucket, starts_at, taken) values (${bucket}, now() + ${ahead}::interval, ${taken})`)
  const buckets = () => fresh.db.pool.anyFirst(sql.unsafe`select bucket from rate_window order by bucket`)

  test('a hundred callers at once get exactly the places there are', async () => {
    await begin('flood', 0)
    const counter = new RateCounter(fresh.db, { bucket: 'flood', limit: 30, monotonic })
    const granted = await Promise.all(Array.from({ length: 100 }, () => counter.take()))
    expect(granted.filter((is) => is)).toHaveLength(30)
  })

  test('single and gathered callers take from one count, and a full window is not written to any more', async () => {
    await begin('mixed', 7)
    expect(await takePlaces(fresh.db.pool, 'mixed', 1, 10)).toMatchObject({ granted: 1 })
    expect(await takePlaces(fresh.db.pool, 'mixed', 5, 10)).toMatchObject({ granted: 2 })
    expect(await takePlaces(fresh.db.pool, 'mixed', 5, 10)).toMatchObject({ granted: 0 })
    const taken = await fresh.db.pool.oneFirst(sql.unsafe`select taken from rate_window where bucket = 'mixed'`)
    expect(taken).toBe(13)
  })

  test('the next window begins empty, at the minute, and a bucket that nobody asks for is forgotten', async () => {
    await begin('old', 1000, '-1 minute')
    await begin('older', 1000, '-1 hour')
    const { granted, leftMs } = await takePlaces(fresh.db.pool, 'old', 1, 2)
    expect(granted).toBe(1)
    expect(leftMs).toBeGreaterThan(0)
    expect(leftMs).toBeLessThanOrEqual(60_000)
    await forgetWindows(fresh.db.pool)
    expect(await buckets()).toContain('old')
    expect(await buckets()).not.toContain('older')
  })
})

test('replicas together grant no more than one alone, and once the window is full they do not even ask', async () => {
  const { db, profile, close } = await freshDatabase('postgresql')
  await db.pool.query(sql.unsafe`
    insert into rate_window (bucket, starts_at, taken) values ('push', now() + interval '1 hour', 0)`)
  const other = await openDatabase(profile)
  const counters = [db, other].map((each) => new RateCounter(each, { bucket: 'push', limit: 250, monotonic }))
  const granted = await Promise.all(
    Array.from({ length: 40 }, (_, i) => i).flatMap(() =>
      counters.flatMap((c) => [c.take(), c.take(), c.take(), c.take()]),
    ),
  )
  expect(granted.filter((is) => is)).toHaveLength(250)
  expect(await Promise.all(counters.map((counter) => counter.take()))).toEqual([false, false])
  await Promise.all([other.close(), close()])
  // The database is gone, and nobody misses it: for the rest of the minute the answer is known.
  expect(await Promise.all(counters.map((counter) => counter.take()))).toEqual([false, false])
})

test('bodies are bounded, each and together: who comes when too much is held is told to come later', async () => {
  const bodies = new Bodies({ eachBytes: 100, togetherBytes: 250 })
  const refusal = (code: string) => ({ name: 'Refusal', code })
  const used: number[] = []
  const whole = (bytes: number, until: Promise<void> = Promise.resolve()): Promise<void> =>
    bodies.read(Readable.from([Buffer.alloc(bytes / 2), Buffer.alloc(bytes / 2)]), async (body) => {
      used.push(body.length)
      await until
    })
  const { promise, resolve } = Promise.withResolvers<void>()
  await expect(whole(102)).rejects.toMatchObject(refusal('body.size'))
  // One whose delivery is under way counts, and so does one whose sender takes its time.
  const held = [whole(100, promise), whole(100, promise)]
  const slow = new PassThrough()
  const late = bodies.read(slow, () => Promise.resolve())
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
