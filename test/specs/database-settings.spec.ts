/**
 * A database whose owner set it otherwise than we assume, by `alter database … set …`: another style of dates, another isolation, other
 * spellings of values. A console on it starts, delivers and tells the right times; directly and behind a pooler.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import pg from 'pg'
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

test.each([
  ['are a list', '-c datestyle=German -c work_mem=5MB', '5MB'],
  ['are empty', '', '4MB'],
  ['are said twice, the last one counts', '-c work_mem=6MB&options=-c work_mem=5MB', '5MB'],
  ['are read as node-postgres does', '-c%20work_mem=5MB', '5MB'],
])('settings in the URL of a database go beside ours: they %s', async (_, options, memory) => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('An embedded database has no URL.')
  const name = new URL(fresh.profile.url).pathname.slice(1)
  await fresh.db.raw((client) =>
    client.query(`alter database ${name} set datestyle = 'German'; alter database ${name} set work_mem = '4MB'`),
  )
  const db = await openDatabase({ kind: 'postgresql', url: `${fresh.profile.url}?options=${options}` })
  const read = sql.unsafe`select ${instant}::timestamptz as at, current_setting('work_mem') as memory`
  expect(await db.pool.one(read)).toEqual({ at: instant, memory })
  expect(await db.fly((tx) => tx.one(read))).toEqual({ at: instant, memory })
  await db.close()
  await fresh.close()
})

/** Before the server, which asks nobody here: asks for the password of each connection, and keeps it. */
async function startAsking(target: URL) {
  const passwords = new Set<string>()
  const askForIt = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => socket.destroy()))
    socket.once('data', (opening: Buffer) => {
      socket.write(askForIt)
      socket.once('data', (said: Buffer) => {
        passwords.add(said.subarray(5, -1).toString())
        const upstream = connect(Number(target.port), target.hostname).on('error', () => socket.destroy())
        sockets.push(upstream)
        upstream.write(opening)
        socket.pipe(upstream).pipe(socket)
      })
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, passwords, close }
}

test('a password that is no proper part of a URL stays what it is beside settings', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('An embedded database has no URL.')
  const target = new URL(fresh.profile.url)
  const asking = await startAsking(target)
  const url = `postgres://${target.username}:50%w@${asking.host}${target.pathname}?options=-c work_mem=5MB`
  const db = await openDatabase({ kind: 'postgresql', url })
  const memory = sql.unsafe`select current_setting('work_mem') as memory`
  expect(await db.pool.oneFirst(memory)).toBe('5MB')
  expect(await db.fly((tx) => tx.one(memory))).toEqual({ memory: '5MB' })
  expect([...asking.passwords]).toEqual(['50%w'])
  await db.close()
  asking.close()
  await fresh.close()
})

test('what somebody sets behind a pooler while we run changes nothing of ours', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('An embedded database has no URL.')
  const { profile } = fresh
  const pooler = await startPooler(profile.url, 1)
  const db = await openDatabase({ kind: 'postgresql', url: pooler.url })
  expect(await db.pool.transaction((tx) => tx.one(asked))).toEqual(answer)
  await fresh.db.raw(async (client) => {
    for (const setting of theirs)
      await client.query(`alter database ${new URL(profile.url).pathname.slice(1)} set ${setting}`)
  })
  // The pooler takes another server in place of one whose client went in a transaction.
  const leaving = new pg.Client({ connectionString: pooler.url })
  await leaving.connect()
  await leaving.query('begin')
  await leaving.end()
  expect(await db.pool.transaction((tx) => tx.one(asked))).toEqual(answer)
  expect(await db.fly((tx) => tx.one(asked))).toEqual(answer)
  await db.close()
  await pooler.close()
  await fresh.close()
})
