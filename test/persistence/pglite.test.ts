/** What only the embedded database does: turns on its one session, its own death, its directory and its log. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { IdleTransactionTimeoutError, sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase } from '../../persistence/database.ts'
import { startPglite } from '../../persistence/drivers/pglite.ts'
import { EmbeddedDatabaseLost, PgliteServer, PgliteSocket } from '../../persistence/drivers/pglite-server.ts'
import { EmbeddedDatabaseBusy, Session, Turns } from '../../persistence/drivers/pglite-session.ts'
import { migratedDump } from '../support/migrated-dump.ts'

describe('turns', () => {
  it('go in the order they were asked for', async () => {
    const turns = new Turns(1_000)
    const order: number[] = []
    await turns.take()
    const rest = [1, 2, 3].map(async (n) => {
      await turns.take()
      order.push(n)
      turns.pass()
    })
    turns.pass()
    await Promise.all(rest)
    expect(order).toEqual([1, 2, 3])
    await turns.take()
  })

  it('give up after the limit, and who gave up is skipped', async () => {
    const turns = new Turns(10)
    await turns.take()
    await expect(turns.take()).rejects.toThrow(EmbeddedDatabaseBusy)
    turns.pass()
    await turns.take()
  })
})

describe('a session', () => {
  it('undoes a transaction that idles, lets the next one in, and refuses to go on', async () => {
    const { server, client } = await startPglite({ template: await migratedDump() })
    const turns = new Turns(5_000)
    const limits = { idleMs: 20, betweenTurns: () => Promise.resolve() }
    const idle = new Session(client, turns, limits)
    const next = new Session(client, turns, limits)
    await idle.run((held) => held.query('begin'))
    await idle.run((held) => held.query('create table left_open (id int)'))
    const { rows } = await next.run((held) => held.query("select to_regclass('left_open') as found"))
    expect(rows).toEqual([{ found: null }])
    await expect(idle.run((held) => held.query('select 1'))).rejects.toThrow(IdleTransactionTimeoutError)
    await client.end()
    await server.close()
    expect(server.lost.aborted).toBe(false)
  })

  it('is left once, though it is ended while what idled in it is being undone', async () => {
    const { server, client } = await startPglite({ template: await migratedDump() })
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    let undone = 0
    const slow = new Proxy(client, {
      get(target, name) {
        if (name !== 'query') return Reflect.get(target, name, target) as unknown
        return async (text: string) => {
          if (text !== 'rollback') return target.query(text)
          undone += 1
          asked.resolve()
          await goOn.promise
          return target.query(text)
        }
      },
    })
    const turns = new Turns(5_000)
    const limits = { idleMs: 20, betweenTurns: () => Promise.resolve() }
    const idle = new Session(slow, turns, limits)
    const next = new Session(client, turns, { ...limits, idleMs: 5_000 })
    const last = new Session(client, turns, limits)
    await idle.run((held) => held.query('begin'))
    await asked.promise
    const begun = next.run((held) => held.query('begin; create table under_way (id int)'))
    const seen = last.run((held) => held.query("select to_regclass('under_way')::text as found"))
    // Slonik's way with a connection whose statement failed.
    await expect(idle.run((held) => held.query('select 1'))).rejects.toThrow(IdleTransactionTimeoutError)
    const ended = idle.end()
    goOn.resolve()
    await Promise.all([ended, begun])
    await next.run((held) => held.query('rollback'))
    expect((await seen).rows).toEqual([{ found: null }])
    expect(undone).toBe(1)
    await client.end()
    await server.close()
  })
})

describe('its thread', () => {
  it('is ended when a statement never returns: everything waiting is told, and everything after', async () => {
    const server = new PgliteServer({ template: await migratedDump() }, 2_000)
    await server.started
    const client = new pg.Client({
      user: 'postgres',
      database: 'postgres',
      ssl: false,
      stream: () => new PgliteSocket(server),
    })
    client.on('error', () => {})
    await client.connect()
    const forever = client.query('with recursive r as (select 1 as n union all select n from r) select count(*) from r')
    const failures = await Promise.allSettled([forever, client.query('select 1')])
    expect(failures.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(server.lost.reason).toBeInstanceOf(EmbeddedDatabaseLost)
    await expect(server.dump()).rejects.toThrow(EmbeddedDatabaseLost)
    await server.close()
  })

  it('ends where PostgreSQL would: in the middle of a commit that its log has no place for', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-pglite-'))
    try {
      const dataDir = join(folder, 'pglite')
      const { server, client } = await startPglite({ dataDir, template: await migratedDump() })
      await client.query('create table line (id int)')
      await client.query('insert into line values (1)')
      // As on a full disk: there is no next segment to write to.
      const log = join(dataDir, 'pg_wal')
      renameSync(log, `${log}-away`)
      await client.query('select pg_switch_wal()')
      await expect(client.query('insert into line values (2)')).rejects.toThrow(EmbeddedDatabaseLost)
      expect(server.lost.reason).toBeInstanceOf(EmbeddedDatabaseLost)
      expect(String(server.lost.reason.cause)).toMatch(/PANIC: .*pg_wal/)
      await server.close()
      renameSync(`${log}-away`, log)
      const again = await openDatabase({ kind: 'pglite', dataDir })
      expect(await again.pool.anyFirst(sql.unsafe`select id from line`)).toEqual([1])
      await again.close()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('that cannot start says why', async () => {
    await expect(openDatabase({ kind: 'pglite', template: new Uint8Array(1024) })).rejects.toThrow(
      'stopped unexpectedly',
    )
  })
})

describe('its directory', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'signalbox-pglite-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('is closed to others, keeps what was committed, and its log stays small', async () => {
    const directory = join(folder, 'pglite')
    const first = await openDatabase({ kind: 'pglite', dataDir: directory, template: await migratedDump() })
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    await first.raw((client) => client.query('create table line (id int, text text)'))
    // Text that can't be compressed, half as much again as the log may hold: it has to be cut on the way.
    for (let id = 0; id < 96; id += 1) {
      await first.pool.query(sql.unsafe`insert into line values (${id}, ${randomBytes(768 * 1024).toString('base64')})`)
    }
    const log = join(directory, 'pg_wal')
    const bytes = readdirSync(log).reduce((sum, name) => sum + statSync(join(log, name)).size, 0)
    expect(bytes).toBeLessThan(80 * 1024 * 1024)
    await first.close()
    const second = await openDatabase({ kind: 'pglite', dataDir: directory })
    expect(await second.pool.oneFirst(sql.unsafe`select count(*) from line`)).toBe(96)
    await second.close()
  })
})
