/** One promise for both databases: what a query, a transaction, a cursor and a wake-up do. Differences are named as such. */
import {
  CheckIntegrityConstraintViolationError,
  ForeignKeyIntegrityConstraintViolationError,
  InputSyntaxError,
  InvalidInputError,
  NotNullIntegrityConstraintViolationError,
  SchemaValidationError,
  sql,
  UniqueIntegrityConstraintViolationError,
} from 'slonik'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod/mini'
import { DatabaseClosed, type Database } from '../../persistence/database.ts'
import { isConnectionFailure, isRetryable, isStalePlan } from '../../persistence/drivers/sqlstate.ts'
import { RolledBack } from '../../persistence/transactions.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const Count = z.object({ n: z.number() })
const count = sql.type(Count)`select count(*) as n from parcel`

describe.each(bothDatabases)('%s', (kind) => {
  let fresh: FreshDatabase
  let db: Database

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    db = fresh.db
    await db.raw((client) =>
      client.query(`
        create table depot (id int primary key);
        create table parcel (
          id int primary key, label text not null, weight int check (weight > 0), depot int references depot,
          body bytea, facts jsonb, tags text[], at timestamptz, size int8
        );`),
    )
  })
  beforeEach(() => db.raw((client) => client.query('truncate parcel, depot')))
  afterAll(() => fresh.close())

  describe('a query', () => {
    it('gives rows that its schema accepts, as the schema shapes them', async () => {
      const row = await db.pool.one(
        sql.type(z.object({ a: z.number(), b: z.string() }))`select 1 as a, 'x' as b, 2 as c`,
      )
      expect(row).toEqual({ a: 1, b: 'x' })
    })

    it('fails when a row does not fit', async () => {
      await expect(db.pool.one(sql.type(z.object({ n: z.string() }))`select 1 as n`)).rejects.toThrow(
        SchemaValidationError,
      )
    })

    it('skips the check when written as unsafe', async () => {
      expect(await db.pool.one(sql.unsafe`select 1 as n`)).toEqual({ n: 1 })
    })

    it('carries every column type we use', async () => {
      const body = Buffer.from([0, 1, 255, 92, 39])
      const facts = { deep: [{ a: null, b: 'ö " \\ \u0001' }], n: 1.5 }
      const at = '2026-11-21T17:00:00.123Z'
      await db.pool.query(sql.unsafe`
        insert into parcel (id, label, body, facts, tags, at, size)
        values (1, ${'naïve 🚂'}, ${sql.binary(body)}, ${sql.jsonb(facts)}, ${sql.array(['a', 'b,"c', ''], 'text')}, ${at}, ${2 ** 52})`)
      const row = await db.pool.one(sql.unsafe`select * from parcel`)
      expect(row).toEqual({
        id: 1,
        label: 'naïve 🚂',
        weight: null,
        depot: null,
        body,
        facts,
        tags: ['a', 'b,"c', ''],
        at,
        size: 2 ** 52,
      })
    })

    it('turns times, counts and days into text and numbers, also in arrays', async () => {
      const row = await db.pool.one(sql.unsafe`
        select array['2026-01-01 12:00+02'::timestamptz, null] as times, array[1::int8, 2] as counts, '2026-01-01'::date as day`)
      expect(row).toEqual({ times: ['2026-01-01T10:00:00.000Z', null], counts: [1, 2], day: '2026-01-01' })
    })

    it('takes rows as arrays with unnest', async () => {
      await db.pool.query(sql.unsafe`
        insert into parcel (id, label, size)
        select * from ${sql.unnest(
          [
            [1, 'one', 10],
            [2, 'two', 20],
          ],
          ['int4', 'text', 'int8'],
        )}`)
      expect(await db.pool.manyFirst(sql.unsafe`select size from parcel order by id`)).toEqual([10, 20])
    })

    it('carries 16 MiB of text and of bytes both ways', async () => {
      const text = 'é'.repeat(8 * 1024 * 1024)
      const bytes = Buffer.alloc(16 * 1024 * 1024, 0xfe)
      const row = await db.pool.one(sql.type(z.object({ text: z.string(), body: z.instanceof(Buffer) }))`
        select ${text}::text as text, ${sql.binary(bytes)}::bytea as body`)
      expect(row.text === text).toBe(true)
      expect(row.body.equals(bytes)).toBe(true)
    })

    it('sorts and folds text alike on both', async () => {
      expect(
        await db.pool.manyFirst(sql.unsafe`
        select word from unnest(${sql.array(['b', 'Ä', 'a', 'B', 'z'], 'text')}) as word order by word collate "C"`),
      ).toEqual(['B', 'a', 'b', 'z', 'Ä'])
      expect(await db.pool.oneFirst(sql.unsafe`select lower('ÄÖÉ')`)).toBe('äöé')
    })

    it('runs the same text often, with other values and in another transaction', async () => {
      for (let id = 1; id <= 8; id += 1) {
        await db.pool.query(sql.unsafe`insert into parcel (id, label) values (${id}, ${'x'})`)
      }
      await db.pool.transaction((tx) => tx.query(sql.unsafe`insert into parcel (id, label) values (${9}, ${'x'})`))
      expect(await db.pool.oneFirst(count)).toBe(9)
    })

    it('goes on after the schema has changed under a prepared statement', async () => {
      const everything = sql.unsafe`select * from depot`
      await db.pool.query(sql.unsafe`insert into depot values (1)`)
      for (let times = 0; times < 4; times += 1) expect(await db.pool.any(everything)).toEqual([{ id: 1 }])
      await db.raw((client) => client.query('alter table depot add column name text'))
      // On PostgreSQL a connection may learn of it by one failure, which ends that connection.
      const answers: unknown[] = []
      for (let tries = 0; tries < 12; tries += 1) {
        answers.push(await db.pool.any(everything).catch((error: unknown) => (isStalePlan(error) ? 'stale' : error)))
      }
      expect(answers.at(-1)).toEqual([{ id: 1, name: null }])
      expect(answers.filter((answer) => answer === 'stale').length).toBeLessThanOrEqual(kind === 'pglite' ? 0 : 10)
      await db.raw((client) => client.query('alter table depot drop column name'))
    })

    it('is one statement', async () => {
      await expect(db.pool.query(sql.unsafe`select 1; select 2`)).rejects.toThrow(InputSyntaxError)
    })
  })

  describe('an error', () => {
    const insert = (values: ReturnType<typeof sql.fragment>) =>
      db.pool.query(sql.unsafe`insert into parcel (id, label, weight, depot) values (${values})`)

    it('of a constraint has its class, its constraint and its table', async () => {
      await insert(sql.fragment`1, 'x', null, null`)
      await expect(insert(sql.fragment`1, 'x', null, null`)).rejects.toMatchObject({
        constraint: 'parcel_pkey',
        table: 'parcel',
      })
      await expect(insert(sql.fragment`1, 'x', null, null`)).rejects.toThrow(UniqueIntegrityConstraintViolationError)
      await expect(insert(sql.fragment`2, null, null, null`)).rejects.toThrow(NotNullIntegrityConstraintViolationError)
      await expect(insert(sql.fragment`2, 'x', 0, null`)).rejects.toThrow(CheckIntegrityConstraintViolationError)
      await expect(insert(sql.fragment`2, 'x', 1, 99`)).rejects.toThrow(ForeignKeyIntegrityConstraintViolationError)
    })

    it('of input has its class', async () => {
      await expect(db.pool.query(sql.unsafe`select ${'x'}::uuid`)).rejects.toThrow(InvalidInputError)
      await expect(db.pool.query(sql.unsafe`selec 1`)).rejects.toThrow(InputSyntaxError)
    })

    it('of our own functions keeps its code', async () => {
      const raise = sql.unsafe`select 1 from pg_input_error_info('x', 'int4') where 1 / length('') = 0`
      await expect(db.pool.query(raise)).rejects.toMatchObject({ code: '22012' })
    })

    it('leaves the connection usable and the next query right', async () => {
      await expect(db.pool.query(sql.unsafe`select 1 / ${0}`)).rejects.toThrow('division by zero')
      expect(await db.pool.oneFirst(sql.unsafe`select ${7}::int`)).toBe(7)
    })

    it('says whether it may be retried, or came from the connection', async () => {
      const serialization = await db.raw((client) =>
        client.query("do $$ begin raise sqlstate '40001'; end $$").catch((error: unknown) => error),
      )
      expect([isRetryable(serialization), isConnectionFailure(serialization)]).toEqual([true, false])
      const down = await db.raw((client) =>
        client.query("do $$ begin raise sqlstate '57P03'; end $$").catch((error: unknown) => error),
      )
      expect([isRetryable(down), isConnectionFailure(down)]).toEqual([false, true])
    })
  })

  describe('a transaction', () => {
    const add = (id: number) => sql.unsafe`insert into parcel (id, label) values (${id}, 'x')`

    it('commits everything', async () => {
      await db.pool.transaction(async (tx) => {
        await tx.query(add(1))
        await tx.query(add(2))
      })
      expect(await db.pool.oneFirst(count)).toBe(2)
    })

    it('undoes everything when its work throws, and throws the same error', async () => {
      const refusal = new Error('no')
      const work = db.pool.transaction(async (tx) => {
        await tx.query(add(1))
        throw refusal
      })
      await expect(work).rejects.toBe(refusal)
      expect(await db.pool.oneFirst(count)).toBe(0)
    })

    it('undoes everything when a statement fails', async () => {
      const work = db.pool.transaction(async (tx) => {
        await tx.query(add(1))
        await tx.query(add(1))
      })
      await expect(work).rejects.toThrow(UniqueIntegrityConstraintViolationError)
      expect(await db.pool.oneFirst(count)).toBe(0)
    })

    it('undoes everything when its work kept the error of a statement to itself, and says so', async () => {
      const work = db.pool.transaction(async (tx) => {
        await tx.query(add(1))
        await tx.query(add(1)).catch((error: unknown) => error)
        return 'as if nothing had happened'
      })
      await expect(work).rejects.toThrow(RolledBack)
      expect(await db.pool.oneFirst(count)).toBe(0)
    })

    it('shares the database with thirty others', async () => {
      const ids = Array.from({ length: 30 }, (_, index) => index + 1)
      await Promise.all(
        ids.map((id) =>
          db.pool.transaction(async (tx) => {
            await tx.query(add(id))
            await tx.query(sql.unsafe`update parcel set weight = ${id} where id = ${id}`)
          }),
        ),
      )
      expect(await db.pool.oneFirst(count)).toBe(30)
    })

    it('does not show its rows before it commits', async () => {
      const inside = Promise.withResolvers<void>()
      const goOn = Promise.withResolvers<void>()
      const writing = db.pool.transaction(async (tx) => {
        await tx.query(add(1))
        inside.resolve()
        await goOn.promise
      })
      await inside.promise
      const seen = db.pool.oneFirst(count)
      // PostgreSQL answers at once, from before the transaction; the embedded database answers after it.
      const early = kind === 'postgresql' ? await seen : 0
      goOn.resolve()
      await writing
      expect([early, await seen]).toEqual([0, kind === 'postgresql' ? 0 : 1])
    })
  })

  describe('a cursor', () => {
    const numbers = (to: number) => sql.type(Count)`select n::int from generate_series(1, ${to}) as n`

    it('gives all rows, checked, in order', async () => {
      let last = 0
      await db.pool.stream(numbers(1_000), (stream) => {
        stream.on('data', ({ data }: { data: { n: number } }) => {
          expect(data.n).toBe(last + 1)
          last = data.n
        })
      })
      expect(last).toBe(1_000)
    })

    it('may be left early, and the database goes on', async () => {
      const left = db.pool.stream(numbers(100_000), (stream) => {
        stream.once('data', () => stream.destroy(new Error('enough')))
      })
      await expect(left).rejects.toThrow('enough')
      expect(await db.pool.oneFirst(sql.unsafe`select 1`)).toBe(1)
    })

    it('fails with its statement', async () => {
      const failing = db.pool.stream(sql.unsafe`select 1 / (3 - n) from generate_series(1, 5) as n`, (stream) =>
        stream.resume(),
      )
      await expect(failing).rejects.toThrow('division by zero')
      expect(await db.pool.oneFirst(sql.unsafe`select 1`)).toBe(1)
    })

    it('works inside a transaction', async () => {
      const seen: number[] = []
      await db.pool.transaction(async (tx) => {
        await tx.query(sql.unsafe`insert into parcel (id, label) select n, 'x' from generate_series(1, 250) as n`)
        await tx.stream(sql.type(z.object({ id: z.number() }))`select id from parcel order by id`, (stream) => {
          stream.on('data', ({ data }: { data: { id: number } }) => seen.push(data.id))
        })
        await tx.query(sql.unsafe`delete from parcel where id > 10`)
      })
      expect(seen.length).toBe(250)
      expect(await db.pool.oneFirst(count)).toBe(10)
    })
  })

  describe('a wake-up', () => {
    it('reaches this process, at most once per window, until it is no longer wanted', async () => {
      let heard = 0
      const stop = await db.listen('actors', () => (heard += 1))
      await Promise.all(Array.from({ length: 50 }, () => db.notify('actors')))
      expect(heard).toBeGreaterThanOrEqual(1)
      expect(heard).toBeLessThanOrEqual(2)
      await stop()
      const before = heard
      await db.notify('actors')
      await db.notify('other')
      expect(heard).toBe(before)
    })
  })

  describe('housekeeping', () => {
    it('runs and changes nothing that a reader can see', async () => {
      await db.pool.query(
        sql.unsafe`insert into parcel (id, label) select n, repeat('x', 1000) from generate_series(1, 500) as n`,
      )
      await db.housekeep()
      await db.housekeep()
      expect(await db.pool.oneFirst(count)).toBe(500)
    })
  })

  describe('closing', () => {
    it('waits for what is running, and refuses what comes after', async () => {
      const own = await freshDatabase(kind)
      const inside = Promise.withResolvers<void>()
      const goOn = Promise.withResolvers<void>()
      const long = own.db.pool.transaction(async (tx) => {
        inside.resolve()
        await goOn.promise
        return tx.oneFirst(sql.unsafe`select 5`)
      })
      await inside.promise
      const queued = [1, 2, 3].map((n) => own.db.pool.oneFirst(sql.unsafe`select ${n}::int`))
      const closed = Promise.all([own.close(), own.db.close()])
      await expect(own.db.pool.query(sql.unsafe`select 1`)).rejects.toThrow(DatabaseClosed)
      goOn.resolve()
      expect(await long).toBe(5)
      expect(await Promise.all(queued)).toEqual([1, 2, 3])
      await closed
    })
  })
})
