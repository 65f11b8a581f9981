/**
 * The connections of flights: how often they are written to, that node-postgres is never given a query while one runs, and that
 * closing them ends although the other side has gone without a word.
 */
import pg from 'pg'
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod/mini'
import { columnTypes } from '../../persistence/drivers/node-postgres.ts'
import { PostgresFlights } from '../../persistence/drivers/postgres-flights.ts'
import { openDatabase } from '../../persistence/database.ts'
import { isDatabaseAway, isOutage } from '../../persistence/outage.ts'
import { freshDatabase, pgUrl, type FreshDatabase } from '../support/databases.ts'
import { startProxy, type Proxy } from '../chaos/proxy.ts'

const Answer = z.object({ n: z.number() })
const one = sql.type(Answer)`select 1 as n`
const fault = sql.type(Answer)`select 1 / 0 as n`
const options = { types: columnTypes, carriesNames: true, prologue: [] }
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Knows how many exchanges there were, and whether one was begun before the server was ready for it. */
class WatchedClient extends pg.Client {
  exchanges = 0
  early = 0
  #busy = false

  constructor() {
    super({ connectionString: pgUrl() })
    // Before the driver's own listener, which may send the next at once.
    this.connection.on('readyForQuery', () => (this.#busy = false))
    const query = this.query.bind(this) as (submitted: pg.Submittable) => pg.Submittable
    this.query = ((submitted: pg.Submittable) => {
      this.exchanges += 1
      if (this.#busy) this.early += 1
      this.#busy = true
      return query(submitted)
    }) as pg.Client['query']
  }
}

describe('a line of flights', () => {
  let flights: PostgresFlights
  let client: WatchedClient
  beforeEach(() => {
    flights = new PostgresFlights(() => (client = new WatchedClient()), options)
  })
  afterEach(() => flights.close())

  it('takes two exchanges for a commit: what it begins with, and what it ends with', async () => {
    await flights.fly(async (tx) => {
      await Promise.all([tx.one(one), tx.one(one)])
      await Promise.all([tx.one(one), tx.one(one), tx.commit()])
    })
    expect(client).toMatchObject({ exchanges: 2, early: 0 })
  })

  it('sends what is asked for meanwhile when the server is ready for it, as one', async () => {
    const answers = await flights.fly(async (tx) => {
      const slow = tx.query(sql.unsafe`select pg_sleep(0.05)`)
      await nextTurn()
      const second = tx.one(one)
      await nextTurn()
      const third = tx.one(one)
      return Promise.all([second, third, slow])
    })
    expect(answers.slice(0, 2)).toEqual([{ n: 1 }, { n: 1 }])
    // The third is COMMIT.
    expect(client).toMatchObject({ exchanges: 3, early: 0 })
  })

  it('undoes when the server is ready again after a failure, also with others waiting', async () => {
    const work = flights.fly(async (tx) => {
      const failing = tx.one(fault)
      await nextTurn()
      const waiting = tx.one(one)
      await Promise.all([failing, waiting])
    })
    await expect(work).rejects.toThrow('division by zero')
    expect(await flights.fly((tx) => tx.one(one))).toEqual({ n: 1 })
    expect(client.early).toBe(0)
  })

  it('tells everybody who waits when the line breaks', async () => {
    const work = flights.fly(async (tx) => {
      const killed = tx.query(sql.unsafe`select pg_terminate_backend(pg_backend_pid())`)
      await nextTurn()
      const waiting = tx.one(one)
      const settled = await Promise.allSettled([killed, waiting])
      expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
      await waiting
    })
    await expect(work).rejects.toBeInstanceOf(Error)
    expect(await flights.fly((tx) => tx.one(one))).toEqual({ n: 1 })
  })
})

describe('a server that only reads from now on, as a primary that another took over from', () => {
  /** Said by the session, as the server says it of all. */
  const reads = sql.unsafe`set session characteristics as transaction read only`
  const write = sql.unsafe`create temporary table written () on commit drop`
  let fresh: FreshDatabase
  beforeEach(async () => {
    fresh = await freshDatabase('postgresql')
  })
  afterEach(() => fresh.close())

  it('has none of its connections used again: who comes next is let in elsewhere', async () => {
    const { db } = fresh
    const failing = { code: '25006' }
    await db.fly((tx) => tx.query(reads))
    await expect(db.fly((tx) => tx.query(write))).rejects.toMatchObject(failing)
    await db.fly((tx) => tx.query(write))
    await db.pool.query(reads)
    await expect(db.pool.query(write)).rejects.toMatchObject(failing)
    await db.pool.query(write)
  })

  it('is away as a whole: what waits for it uses up nothing of an agent', async () => {
    await fresh.db.fly((tx) => tx.query(reads))
    const met: unknown = await fresh.db.fly((tx) => tx.query(write)).catch((error: unknown) => error)
    expect([isOutage(met), isDatabaseAway(met)]).toEqual([true, true])
  })
})

describe('a server that is gone without a word', () => {
  let proxy: Proxy
  let address: URL
  beforeEach(async () => {
    const real = new URL(pgUrl())
    proxy = await startProxy({ host: real.hostname, port: Number(real.port) })
    address = new URL(real)
    address.host = `127.0.0.1:${proxy.port}`
  })
  afterEach(() => proxy.close())

  it('does not keep its lines from closing, nor does a flight that hangs on it', async () => {
    const newClient = (): pg.Client => new pg.Client({ connectionString: address.href, query_timeout: 60_000 })
    const flights = new PostgresFlights(newClient, options)
    const begun = Promise.withResolvers<void>()
    const gone = Promise.withResolvers<void>()
    const hanging = flights.fly(async (tx) => {
      await tx.one(one)
      begun.resolve()
      await gone.promise
      return tx.one(one)
    })
    await begun.promise
    await flights.fly((tx) => tx.one(one))
    proxy.halfOpen()
    gone.resolve()
    const startedAt = performance.now()
    const [ended] = await Promise.allSettled([hanging, flights.close()])
    expect(ended).toMatchObject({ status: 'rejected' })
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  it('does not keep a database from closing', async () => {
    const fresh = await freshDatabase('postgresql')
    if (fresh.profile.kind !== 'postgresql') throw new Error('Not a PostgreSQL.')
    address.pathname = new URL(fresh.profile.url).pathname
    const db = await openDatabase({ kind: 'postgresql', url: address.href })
    await db.listen('news', () => undefined)
    await db.fly((tx) => tx.one(one))
    await db.pool.one(one)
    proxy.halfOpen()
    const startedAt = performance.now()
    await db.close()
    expect(performance.now() - startedAt).toBeLessThan(15_000)
    await fresh.close()
  })
})
