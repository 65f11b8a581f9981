/**
 * A database whose owner set it otherwise than we assume, by `alter database … set …`: another style of dates, another isolation, other
 * spellings of values. A console on it starts, delivers and tells the right times; directly and behind a pooler.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { migrateDown, migrateUp, requireSchema, schemaStatus } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startPooler, type Pooler } from '../support/pooler.ts'

const theirs = [
  `datestyle = 'SQL, DMY'`,
  `default_transaction_isolation = 'serializable'`,
  `timezone = 'Asia/Kathmandu'`,
  `intervalstyle = 'iso_8601'`,
  `bytea_output = 'escape'`,
  `standard_conforming_strings = off`,
  `extra_float_digits = -15`,
  `array_nulls = off`,
]

/** The third of April: of a day and a month that can be taken for each other. */
const instant = '2026-04-03T05:06:07.089Z'
const bytes = Buffer.from('005cff', 'hex')
const asked = sql.unsafe`select ${instant}::timestamptz as at, ${String.raw`\x005cff`}::bytea as bytes, 0.1::float8 + 0.2::float8 as number,
  '{a,NULL}'::text[] as list`
const answer = { at: instant, bytes, number: 0.1 + 0.2, list: ['a', null] }
const isolation = sql.unsafe`select current_setting('transaction_isolation') as isolation`

describe.each(['directly', 'behind a pooler'])('a database with settings of its own, %s', (route) => {
  let fresh: FreshDatabase
  let pooler: Pooler | null = null
  let db: Database
  let web: TestConsole
  let peer: RawPeer
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    if (fresh.profile.kind !== 'postgresql') throw new Error('An embedded database has nobody who would set it.')
    const url = new URL(fresh.profile.url)
    await fresh.db.raw(async (client) => {
      for (const setting of theirs) await client.query(`alter database ${url.pathname.slice(1)} set ${setting}`)
    })
    if (route !== 'directly') pooler = await startPooler(url.href, 3)
    db = await openDatabase({ kind: 'postgresql', url: pooler?.url ?? url.href })
    peer = await startRawPeer()
    web = await startConsole({ database: db })
  })
  afterAll(async () => {
    await web.close()
    await db.close()
    await pooler?.close()
    await peer.close()
    await fresh.close()
  })

  test('a command is sent, finished and shown, with the times that it has', async () => {
    const from = new Date().toISOString()
    const agentId = await web.api.register(peer.cardUrl)
    const sent = await web.api.send(agentId, { text: 'ask' })
    const { status, createdAt } = await web.finished(sent.commandId)
    const { updatedAt } = await web.task(sent.localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    expect(status).toBe('succeeded')
    const until = new Date(Date.now() + 1).toISOString()
    const times = [from, createdAt, updatedAt, until]
    expect(times.toSorted()).toEqual(times)
    expect(web.log.errors()).toEqual([])
    expect(web.lines.filter(({ level }) => level !== 'info')).toEqual([])
  })

  test('values are read as they are written, by each way to the database', async () => {
    expect(await db.fly((tx) => tx.one(asked))).toEqual(answer)
    expect(await db.direct.any(asked)).toEqual([answer])
    expect(await db.pool.transaction((tx) => tx.one(asked))).toEqual(answer)
    // A statement of its own has of a pooler only what that keeps for its clients: how times are read, and texts.
    const alone = await db.pool.one(asked)
    if (pooler) expect(alone).toMatchObject({ at: instant, bytes })
    else expect(alone).toEqual(answer)
  })

  test('a transaction reads what others have committed, unless it asks for something else', async () => {
    const committed = { isolation: 'read committed' }
    expect(await db.fly((tx) => tx.one(isolation))).toEqual(committed)
    expect(await db.direct.any(isolation)).toEqual([committed])
    expect(await db.pool.transaction((tx) => tx.one(isolation))).toEqual(committed)
    const repeatable = db.pool.transaction(async (tx) => {
      await tx.query(sql.unsafe`set transaction isolation level repeatable read, read only`)
      return tx.one(isolation)
    })
    expect(await repeatable).toEqual({ isolation: 'repeatable read' })
  })

  test('migrations wait for each other and then read what is applied, once each', async () => {
    const [last] = migrations.slice(-1)
    expect(await db.raw((client) => migrateDown(client, migrations))).toEqual([last])
    const applied = await Promise.all([1, 2, 3].map(() => db.raw((client) => migrateUp(client, migrations))))
    expect(applied.flat()).toEqual([last])
    await db.raw((client) => requireSchema(client, migrations))
    const status = await db.raw((client) => schemaStatus(client, migrations))
    const age = Date.now() - Date.parse(status.applied.at(-1)?.appliedAt ?? '')
    expect(age).toBeGreaterThanOrEqual(-1)
    expect(age).toBeLessThan(60_000)
  })
})

test('settings in the URL of a database go beside ours', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('An embedded database has no URL.')
  const url = new URL(fresh.profile.url)
  url.searchParams.set('options', '-c datestyle=German -c work_mem=5MB')
  const db = await openDatabase({ kind: 'postgresql', url: url.href })
  const read = sql.unsafe`select ${instant}::timestamptz as at, current_setting('work_mem') as memory`
  expect(await db.pool.one(read)).toEqual({ at: instant, memory: '5MB' })
  expect(await db.fly((tx) => tx.one(read))).toEqual({ at: instant, memory: '5MB' })
  await db.close()
  await fresh.close()
})
