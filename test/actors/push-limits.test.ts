/** Counting deliveries: exact under concurrency and across replicas, cheap in a flood, anew in each window; and bodies bounded together. */
import { request as ask, type ClientRequest } from 'node:http'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RateCounter } from '../../actors/rate-counter.ts'
import { openDatabase } from '../../persistence/database.ts'
import { forgetWindows, takePlaces } from '../../persistence/rate-limits.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { callsOnly, credentialFor, deliver, pathOf, pushConsole, pushStateOf, toldTo } from '../support/push.ts'

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
  await Promise.all([other.close(), close()])
  // The database is gone, and nobody misses it: for the rest of the minute the answer is known.
  expect(await Promise.all(counters.map((counter) => counter.take()))).toEqual([false, false])
})

test('bodies are bounded together: who comes when too much is held is told to come later', async () => {
  const house = await pushConsole('postgresql')
  const peer = await startRawPeer({ card: callsOnly })
  const { localId } = await house.api.send(await house.api.register(peer.cardUrl), { text: 'hold' })
  await expect.poll(() => pushStateOf(house, localId)).toBe('registered')
  const { id } = toldTo(peer)
  const headers = { authorization: `Bearer ${credentialFor(id)}`, 'content-type': 'application/json' }
  const held: ClientRequest[] = []
  for (let i = 0; i < 5; i++) {
    const slow = ask(house.url + pathOf(id), { method: 'POST', headers })
    // It is cut off in the end, which is what this one wants.
    slow.on('error', () => undefined)
    slow.write(Buffer.alloc(12.5 * 1024 * 1024, 0x20))
    held.push(slow)
  }
  const large = Buffer.alloc(2 * 1024 * 1024, 0x20)
  const statusOf = async (body: unknown): Promise<number> => (await deliver(house, id, body)).status
  await expect.poll(() => statusOf(large), { timeout: 10_000 }).toBe(503)
  for (const slow of held) slow.destroy()
  await expect.poll(() => statusOf(large), { timeout: 10_000 }).toBe(400)
  expect(house.log.errors()).toEqual([])
  await house.close()
  await peer.close()
})
