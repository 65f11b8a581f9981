/**
 * What is said of a transaction whose COMMIT nobody acknowledged: nothing but `unknown` while it may still be committed, however new
 * it is, for what is called aborted is done again.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fateOf } from '../../persistence/actors.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const Begun = z.object({ xid: z.string(), number: z.coerce.number() })
const insertFact = `insert into fact (organization_id, kind, subject_id, data, at, batch_id)
  values ($1::uuid, 'test', 'it', '{}', now(), $1::uuid) returning pg_current_xact_id()::text as xid, number`

describe('an unacknowledged commit on postgresql', () => {
  let fresh: FreshDatabase
  let client: pg.Client
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
    client = new pg.Client({ connectionString: fresh.profile.url })
    await client.connect()
  })
  afterAll(async () => {
    await client.end()
    await fresh.close()
  })

  it.each([
    ['commit', 'committed'],
    ['rollback', 'aborted'],
  ])('is unknown while it lives, though it is the newest of all; after its %s it is %s', async (end, fate) => {
    const batchId = randomUUID()
    await client.query('begin')
    const { rows } = await client.query(insertFact, [batchId])
    const { xid, number } = Begun.parse(rows[0])
    const evidence = { batchId, xid, number, entry: null, moved: null }
    expect(await fateOf(fresh.db.pool, evidence)).toBe('unknown')
    await client.query(end)
    expect(await fateOf(fresh.db.pool, evidence)).toBe(fate)
  })
})

describe.each(bothDatabases)('a transaction id on %s', (kind) => {
  it('that the server has still to give out, for it crashed before the record was on disk, is of nobody who lives', async () => {
    const { db, close } = await freshDatabase(kind)
    const newest = await db.pool.oneFirst(
      sql.type(z.object({ xid: z.string() }))`select pg_current_xact_id()::text as xid`,
    )
    const xid = String(BigInt(newest) + 1_000_000n)
    const evidence = { batchId: randomUUID(), xid, number: 1, entry: null, moved: null }
    expect(await fateOf(db.pool, evidence)).toBe('aborted')
    await close()
  })
})
