/** What only PostgreSQL does: row locks between connections, time limits, lost connections, wake-ups between processes. */
import { once } from 'node:events'
import pg from 'pg'
import { sql, StatementTimeoutError } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { isConnectionFailure } from '../../persistence/drivers/sqlstate.ts'
import { migrateUp } from '../../persistence/migrate.ts'
import { isDatabaseAway, isDatabaseOutage, isOutage } from '../../persistence/outage.ts'
import { freshDatabase, pgUrl, type FreshDatabase } from '../support/databases.ts'
import { Wire } from '../support/wire.ts'

describe('postgresql', () => {
  let fresh: FreshDatabase
  let db: Database
  let url: string
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    db = fresh.db
    if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
    url = fresh.profile.url
    await db.raw((client) =>
      client.query('create table job (id int primary key); insert into job values (1), (2), (3)'),
    )
  })
  afterAll(() => fresh.close())

  it('says of a migration that is cut off that the database was away, not what became of its rollback', async () => {
    const cut = { version: 1, name: 'cut', up: 'select pg_terminate_backend(pg_backend_pid())', down: 'select 1' }
    const other = await freshDatabase('postgresql')
    await other.db.raw((client) => client.query('drop table schema_migration'))
    const error: unknown = await other.db.raw((client) => migrateUp(client, [cut])).catch((each: unknown) => each)
    expect(isDatabaseOutage(error)).toBe(true)
    await other.close()
  })

  it('knows a quota and a limit of file sizes as the end of what may be written', () => {
    const failed = (message: string) => Object.assign(new Error(message), { code: 'XX000' })
    expect(isOutage(failed('could not extend file "base/5/2": Disk quota exceeded'))).toBe(true)
    expect(isOutage(failed('could not write to file "pg_wal/xlogtemp.7": File too large'))).toBe(true)
    expect(isOutage(failed('cache lookup failed for type 7'))).toBe(false)
  })

  it('is away where nobody gets a connection, and not where one ends under a statement', async () => {
    const wire = new Wire(url)
    const other = await openDatabase({ kind: 'postgresql', url: await wire.open() })
    const ways = (statement: ReturnType<typeof sql.unsafe>): Promise<unknown>[] =>
      [other.pool.any(statement), other.fly((tx) => tx.any(statement)), other.direct.any(statement)].map((asked) =>
        asked.catch((error: unknown) => error),
      )
    const ended = await Promise.all(ways(sql.unsafe`select pg_terminate_backend(pg_backend_pid())`))
    expect(ended.map((error) => [isOutage(error), isDatabaseAway(error)])).toEqual(ended.map(() => [true, false]))
    wire.cut()
    const refused = await Promise.all(ways(sql.unsafe`select 1`))
    expect(refused.map((error) => [isOutage(error), isDatabaseAway(error)])).toEqual(refused.map(() => [true, true]))
    await other.close()
    wire.close()
  })

  it('lets two claimers skip each other’s rows', async () => {
    const claim = sql.unsafe`select id from job order by id limit 2 for update skip locked`
    await db.pool.transaction(async (first) => {
      expect(await first.manyFirst(claim)).toEqual([1, 2])
      const second = await openDatabase({ kind: 'postgresql', url })
      expect(await second.pool.transaction((tx) => tx.manyFirst(claim))).toEqual([3])
      await second.close()
    })
  })

  it.each([
    // A crash of the server would take back what it acknowledged.
    ['off', 'on'],
    ['local', 'local'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('commits as the server does, and never before it is on disk: %s is %s here', async (mode, ours) => {
    const name = new URL(url).pathname.slice(1)
    await db.raw((client) =>
      client.query(`alter database ${pg.escapeIdentifier(name)} set synchronous_commit = ${mode}`),
    )
    const other = await openDatabase({ kind: 'postgresql', url })
    const asked = sql.type(z.object({ mode: z.string() }))`select current_setting('synchronous_commit') as mode`
    expect(await other.pool.oneFirst(asked)).toBe(ours)
    expect(await other.fly((tx) => tx.any(asked))).toEqual([{ mode: ours }])
    await other.close()
  })

  it('stops a statement that runs too long', async () => {
    const stuck = db.pool.transaction(async (tx) => {
      await tx.query(sql.unsafe`set local statement_timeout = 50`)
      await tx.query(sql.unsafe`select pg_sleep(20)`)
    })
    await expect(stuck).rejects.toThrow(StatementTimeoutError)
    expect(await db.pool.oneFirst(sql.unsafe`show statement_timeout`)).toBe('30s')
    expect(await db.pool.oneFirst(sql.unsafe`show idle_in_transaction_session_timeout`)).toBe('30s')
  })

  it('keeps its connection when a transaction is merely rolled back', async () => {
    const own = await openDatabase({ kind: 'postgresql', url, maxConnections: 1 })
    const pid = sql.unsafe`select pg_backend_pid()`
    const before = await own.pool.oneFirst(pid)
    await expect(own.pool.transaction(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
    expect(await own.pool.oneFirst(pid)).toBe(before)
    await own.close()
  })

  it('survives the loss of its connections', async () => {
    await db.pool.oneFirst(sql.unsafe`select 1`)
    await db.raw((client) =>
      client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      ),
    )
    // Each connection that was idle in the pool may fail once; a caller retries, as the runtime does.
    for (let tries = 0; tries < 10; tries += 1) {
      const answer = await db.pool.oneFirst(sql.unsafe`select 1`).catch((error: unknown) => error)
      if (answer === 1) break
      expect(isConnectionFailure(answer)).toBe(true)
    }
    expect(await db.pool.oneFirst(sql.unsafe`select 2`)).toBe(2)
  })

  it('wakes another process, and again after the listening connection was lost', async () => {
    const other = await openDatabase({ kind: 'postgresql', url })
    const bell = new EventTarget()
    let heard = 0
    const rung = () => once(bell, 'rung')
    const stop = await other.listen('actors', () => {
      heard += 1
      bell.dispatchEvent(new Event('rung'))
    })
    const first = rung()
    await db.notify('actors')
    await first
    // Reconnecting wakes everybody, since something may have been said meanwhile.
    const again = rung()
    await db.raw((client) =>
      client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%' and datname = current_database()",
      ),
    )
    await again
    const third = rung()
    await db.notify('actors')
    await third
    expect(heard).toBe(3)
    await stop()
    await other.close()
  })

  it('leaves no connection behind at a server that lets nobody listen', async () => {
    const own = await freshDatabase('postgresql')
    const other = await openDatabase(own.profile)
    // As on a standby before its promotion.
    await own.db.raw((client) =>
      client.query(`
        create schema refusing;
        create function refusing.pg_backend_pid() returns int language plpgsql as
          $$ begin raise exception 'only reading' using errcode = '25006'; end $$;
        do $$ begin execute format('alter database %I set search_path = refusing, pg_catalog, public', current_database()); end $$`),
    )
    for (let tries = 0; tries < 3; tries += 1)
      await expect(other.listen('actors', () => undefined)).rejects.toMatchObject({ code: '25006' })
    const left = () =>
      own.db.pool.oneFirst(sql.unsafe`
        select count(*)::int from pg_stat_activity where datname = current_database() and query like 'select pg_backend_pid%'`)
    await expect.poll(left).toBe(0)
    await other.close()
    await own.close()
  })

  it('says at the start that there is no such database', async () => {
    const absent = new URL(pgUrl())
    absent.pathname = '/absent'
    await expect(openDatabase({ kind: 'postgresql', url: absent.href })).rejects.toBeInstanceOf(pg.DatabaseError)
  })
})
