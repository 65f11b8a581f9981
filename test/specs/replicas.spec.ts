/**
 * A web replica whose database does not keep up: what cannot be answered in time is answered 503 in time, waits do not pile
 * up, and when the database is quick again so is everything else.
 */
import { sql } from 'slonik'
import { expect, test } from 'vitest'
import { instruments } from '../../actors/system.ts'
import { vitalsOf } from '../../actors/vitals.ts'
import { openDatabase } from '../../persistence/database.ts'
import { startConsole } from '../support/console.ts'
import { freshDatabase } from '../support/databases.ts'

/** Five seconds are waited for a connection; the rest is this machine's. */
const answeredWithinMs = 15_000
const requests = 100

test('with every connection in use a request is answered 503 within seconds, and 200 again afterwards', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
  const maxConnections = 2
  const db = await openDatabase({ ...fresh.profile, maxConnections })
  const house = await startConsole({ database: db, system: { works: false } })
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const holders = Array.from({ length: maxConnections }, () => {
    const { promise: begun, resolve: began } = Promise.withResolvers<void>()
    const held = db.pool.transaction(async (tx) => {
      await tx.query(sql.unsafe`select 1`)
      began()
      await released
    })
    return { begun, held }
  })
  await Promise.all(holders.map(({ begun }) => begun))

  const before = performance.now()
  const asking = Promise.all(Array.from({ length: requests }, () => house.api.get('/api/tasks')))
  // What the page and the scraper tell.
  const vitals = () => vitalsOf(house.system, db, instruments)
  await expect.poll(() => vitals().database.waiting).toBeGreaterThanOrEqual(requests)
  expect(vitals().database).toMatchObject({ inUse: maxConnections, idle: 0 })
  const replies = await asking
  expect(performance.now() - before).toBeLessThan(answeredWithinMs)
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([503]))
  expect(replies[0]?.headers.get('retry-after')).toBe('1')
  // Nobody is left waiting for what nobody asks any more: only loops of this process do, each once.
  expect(vitals().database.waiting).toBeLessThanOrEqual(vitals().loops.filter(({ state }) => state === 'up').length)

  release()
  await Promise.all(holders.map(({ held }) => held))
  expect((await house.api.get('/api/tasks')).status).toBe(200)
  await expect.poll(() => vitals().database.waiting).toBe(0)
  expect(house.log.errors()).toEqual([])
  await house.close()
  await db.close()
  await fresh.close()
})
