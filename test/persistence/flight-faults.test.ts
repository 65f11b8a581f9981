/**
 * What goes wrong around a flight, and must stay its own trouble: statements that come too late, values and rows that cannot be
 * read, names that the server forgot, a line that is silent, a database that closes. Not the ordinary ways (flight.test.ts).
 */
import pg from 'pg'
import { sql } from 'slonik'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod/mini'
import { DatabaseClosed, type Database } from '../../persistence/database.ts'
import { columnTypes } from '../../persistence/drivers/node-postgres.ts'
import { PostgresFlights } from '../../persistence/drivers/postgres-flights.ts'
import { bothDatabases, freshDatabase, pgUrl, type FreshDatabase } from '../support/databases.ts'

const Count = z.object({ n: z.number() })
const count = sql.type(Count)`select count(*) as n from crate`
const add = (id: number) => sql.unsafe`insert into crate (id) values (${id})`

describe.each(bothDatabases)('a flight in trouble on %s', (kind) => {
  let fresh: FreshDatabase
  let db: Database

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    db = fresh.db
    await db.raw((client) => client.query('create table crate (id int primary key)'))
  })
  beforeEach(() => db.raw((client) => client.query('truncate crate')))
  afterAll(() => fresh.close())

  it('refuses what is asked for after it was undone, for that would stand outside of every transaction', async () => {
    const undone = Promise.withResolvers<void>()
    let late: Promise<unknown> = Promise.resolve()
    const work = db.fly(async (tx) => {
      await tx.query(add(1))
      late = undone.promise.then(() => tx.query(add(2)))
      throw new Error('no')
    })
    await expect(work).rejects.toThrow('no')
    undone.resolve()
    await expect(late).rejects.toThrow('is over')
    expect(await db.pool.oneFirst(count)).toBe(0)
  })

  it('refuses what is asked for while it is being undone', async () => {
    let late: Promise<unknown> = Promise.resolve()
    const work = db.fly(async (tx) => {
      const first = tx.query(add(1))
      late = first.then(() => tx.query(add(2)))
      throw new Error('no')
    })
    await expect(work).rejects.toThrow('no')
    await expect(late).rejects.toThrow('is over')
    expect(await db.pool.oneFirst(count)).toBe(0)
  })

  it('begins nothing once its work is done', async () => {
    const flown = await db.fly((tx) => Promise.resolve(tx))
    await expect(flown.query(add(1))).rejects.toThrow('is over')
    await expect(flown.xid()).rejects.toThrow('is over')
    expect(await db.pool.oneFirst(count)).toBe(0)
  })

  it('tells of a value that cannot be sent, and flies again', async () => {
    const bytes = sql.unsafe`select ${sql.array([Buffer.from('x')], 'bytea')} as b`
    await expect(db.fly((tx) => tx.query(bytes))).rejects.toThrow(TypeError)
    expect(await db.fly((tx) => tx.one(count))).toEqual({ n: 0 })
  })

  it('tells of a row that cannot be read, and flies again', async () => {
    const never = sql.unsafe`select 'infinity'::timestamptz as at`
    const work = db.fly(async (tx) => {
      await Promise.all([tx.query(add(1)), tx.any(never)])
    })
    await expect(work).rejects.toThrow(RangeError)
    expect(await db.fly((tx) => tx.one(count))).toEqual({ n: 0 })
  })

  it('leaves no rejection unheard when its work waits for another statement first', async () => {
    const unheard: unknown[] = []
    const hear = (reason: unknown): void => void unheard.push(reason)
    process.prependListener('unhandledRejection', hear)
    try {
      const work = db.fly(async (tx) => {
        const [first, second] = [tx.one(sql.type(Count)`select 1 / 0 as n`), tx.one(count)]
        await second
        return first
      })
      await expect(work).rejects.toThrow('division by zero')
      await new Promise((resolve) => setImmediate(resolve))
    } finally {
      process.off('unhandledRejection', hear)
    }
    expect(unheard).toEqual([])
  })

  it('prepares anew what the server has forgotten', async () => {
    await db.fly((tx) => tx.one(count))
    await db.fly((tx) => tx.query(sql.unsafe`deallocate all`)).catch(() => undefined)
    await db.fly((tx) => tx.one(count)).catch(() => undefined)
    expect(await db.fly((tx) => tx.one(count))).toEqual({ n: 0 })
  })

  it('is finished before its database closes; after that none begins', async () => {
    const other = await freshDatabase(kind)
    const begun = Promise.withResolvers<void>()
    const closing = Promise.withResolvers<void>()
    const flying = other.db.fly(async (tx) => {
      await tx.one(sql.type(Count)`select 1 as n`)
      begun.resolve()
      await closing.promise
      return tx.one(sql.type(Count)`select 2 as n`)
    })
    await begun.promise
    const closed = other.close()
    const refused = other.db.fly((tx) => tx.one(sql.type(Count)`select 3 as n`)).catch((error: unknown) => error)
    closing.resolve()
    expect(await refused).toBeInstanceOf(DatabaseClosed)
    expect(await flying).toEqual({ n: 2 })
    await closed
    await expect(other.db.fly((tx) => tx.one(sql.type(Count)`select 4 as n`))).rejects.toThrow(DatabaseClosed)
  })
})

it('waits for a silent line once, and not a second time to undo on it', async () => {
  const patienceMs = 1_000
  const newClient = (): pg.Client => new pg.Client({ connectionString: pgUrl(), query_timeout: patienceMs })
  const flights = new PostgresFlights(newClient, { types: columnTypes, carriesNames: true, prologue: [] })
  const startedAt = performance.now()
  await expect(flights.fly((tx) => tx.query(sql.unsafe`select pg_sleep(5)`))).rejects.toThrow('terminated unexpectedly')
  expect(performance.now() - startedAt).toBeLessThan(2 * patienceMs)
  expect(await flights.fly((tx) => tx.one(sql.type(Count)`select 1 as n`))).toEqual({ n: 1 })
  await flights.close()
})
