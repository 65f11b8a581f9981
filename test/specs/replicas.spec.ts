/**
 * A web replica whose database does not keep up: what cannot be answered in time is answered 503 in time, waits do not pile
 * up, and when the database is quick again so is everything else.
 */
import { sql } from 'slonik'
import { expect, test } from 'vitest'
import { openDatabase } from '../../persistence/database.ts'
import { startConsole } from '../support/console.ts'
import { freshDatabase } from '../support/databases.ts'

/** Five seconds are waited for a connection; the rest is this machine's. */
const answeredWithinMs = 15_000

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
  const replies = await Promise.all(Array.from({ length: 100 }, () => house.api.get('/api/tasks')))
  expect(performance.now() - before).toBeLessThan(answeredWithinMs)
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([503]))
  expect(replies[0]?.headers.get('retry-after')).toBe('1')
  // Nobody is left waiting for what nobody asks any more.
  expect(db.pool.state().waitingClients).toBe(0)

  release()
  await Promise.all(holders.map(({ held }) => held))
  expect((await house.api.get('/api/tasks')).status).toBe(200)
  expect(house.log.errors()).toEqual([])
  await house.close()
  await db.close()
  await fresh.close()
})
