/**
 * A flight on both databases: what is asked for in one turn leaves together and is answered in order, COMMIT goes with the
 * last, a failure undoes everything and is told as itself, and the line is as good as new afterwards.
 */
import fc from 'fast-check'
import { sql, UniqueIntegrityConstraintViolationError } from 'slonik'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod/mini'
import type { Database } from '../../persistence/database.ts'
import { StatementSkipped } from '../../persistence/drivers/statement-group.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const Count = z.object({ n: z.number() })
const Named = z.object({ id: z.number(), label: z.string() })
const count = sql.type(Count)`select count(*) as n from crate`
const add = (id: number, label = 'x') => sql.unsafe`insert into crate (id, label) values (${id}, ${label})`
const all = sql.type(Named)`select id, label from crate order by id`

describe.each(bothDatabases)('a flight on %s', (kind) => {
  let fresh: FreshDatabase
  let db: Database

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    db = fresh.db
    await db.raw((client) => client.query('create table crate (id int primary key, label text not null)'))
  })
  beforeEach(() => db.raw((client) => client.query('truncate crate')))
  afterAll(() => fresh.close())

  it('commits what it asked for, whether or not anybody waited for it', async () => {
    const seen = await db.fly(async (tx) => {
      void tx.query(add(1, 'one'))
      const [, rows] = await Promise.all([tx.query(add(2, 'two')), tx.any(all)])
      void tx.query(add(3, 'three'))
      return rows
    })
    expect(seen).toEqual([
      { id: 1, label: 'one' },
      { id: 2, label: 'two' },
    ])
    expect(await db.pool.oneFirst(count)).toBe(3)
  })

  it('sends COMMIT with its last statements, and knows its name before', async () => {
    const xid = await db.fly(async (tx) => {
      const name = await tx.xid()
      await Promise.all([tx.query(add(1)), tx.commit()])
      await expect(tx.query(add(2))).rejects.toThrow('is over')
      return name
    })
    const [row] = await db.pool.any(sql.unsafe`select pg_xact_status(${xid}::xid8) as status`)
    expect([row, await db.pool.oneFirst(count)]).toEqual([{ status: 'committed' }, 1])
  })

  it('has a transaction of its own before it, which stays when it is undone', async () => {
    const work = db.fly((tx) => Promise.all([tx.before.any(add(1)), tx.query(add(2)), tx.query(add(2)), tx.commit()]))
    await expect(work).rejects.toBeInstanceOf(UniqueIntegrityConstraintViolationError)
    expect(await db.pool.any(all)).toEqual([{ id: 1, label: 'x' }])
    const [before, rows] = await db.fly((tx) => Promise.all([tx.before.any(count), tx.any(all), tx.query(add(3))]))
    expect([before, rows]).toEqual([[{ n: 1 }], [{ id: 1, label: 'x' }]])
    expect(await db.pool.oneFirst(count)).toBe(2)
  })

  it('does nothing where what goes before it fails, and the line is as good as new', async () => {
    await db.fly((tx) => tx.query(add(1)))
    const answers: unknown[] = []
    const work = db.fly(async (tx) => {
      const asked = [tx.before.any(add(1)), tx.query(add(2)), tx.commit()]
      answers.push(...(await Promise.allSettled(asked)))
      await Promise.all(asked)
    })
    await expect(work).rejects.toBeInstanceOf(UniqueIntegrityConstraintViolationError)
    expect(answers.map((answer) => (answer as PromiseRejectedResult).reason.constructor.name)).toEqual([
      'UniqueIntegrityConstraintViolationError',
      'StatementSkipped',
      'StatementSkipped',
    ])
    // Nothing else was asked for: what is left of the one before is undone, too.
    await expect(db.fly((tx) => tx.before.any(add(1)))).rejects.toBeInstanceOf(UniqueIntegrityConstraintViolationError)
    expect(await db.fly((tx) => tx.any(all))).toEqual([{ id: 1, label: 'x' }])
  })

  it('that nobody asks for its name is a transaction like any other, and has none', async () => {
    await db.fly(async (tx) => {
      tx.unnamed()
      await Promise.all([tx.query(add(1)), tx.commit()])
    })
    expect(await db.pool.oneFirst(count)).toBe(1)
    const work = db.fly(async (tx) => {
      tx.unnamed()
      await tx.query(add(2))
      await tx.xid()
    })
    await expect(work).rejects.toThrow('Nobody asked for its name.')
    expect(await db.pool.oneFirst(count)).toBe(1)
    const late = db.fly(async (tx) => {
      void tx.query(add(3))
      tx.unnamed()
    })
    await expect(late).rejects.toThrow('The transaction has begun.')
    expect(await db.pool.oneFirst(count)).toBe(1)
  })

  it('lets nothing go before it once it has begun', async () => {
    const work = db.fly(async (tx) => {
      void tx.query(add(1))
      await tx.before.any(add(2))
    })
    await expect(work).rejects.toThrow('The transaction has begun.')
    expect(await db.pool.oneFirst(count)).toBe(0)
  })

  it('undoes everything when a statement fails, and says which failure it was', async () => {
    const answers: unknown[] = []
    const work = db.fly(async (tx) => {
      const asked = [tx.query(add(1)), tx.query(add(1)), tx.query(add(2)), tx.commit()]
      answers.push(...(await Promise.allSettled(asked)))
      // Whoever waits only for what was skipped is told the cause all the same.
      await asked[2]
    })
    await expect(work).rejects.toThrow(UniqueIntegrityConstraintViolationError)
    expect(answers).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: expect.any(UniqueIntegrityConstraintViolationError) },
      { status: 'rejected', reason: expect.any(StatementSkipped) },
      { status: 'rejected', reason: expect.any(StatementSkipped) },
    ])
    expect(await db.pool.oneFirst(count)).toBe(0)
  })

  it('does not commit after a failure that its work shrugged off', async () => {
    const work = db.fly(async (tx) => {
      await tx.query(add(1))
      await tx.query(add(1)).catch(() => undefined)
    })
    await expect(work).rejects.toThrow(UniqueIntegrityConstraintViolationError)
    expect(await db.pool.oneFirst(count)).toBe(0)
  })

  it('undoes everything when its work throws, and throws the same error', async () => {
    const refusal = new Error('no')
    const work = db.fly(async (tx) => {
      await tx.query(add(1))
      void tx.query(add(2))
      throw refusal
    })
    await expect(work).rejects.toBe(refusal)
    expect(await db.pool.oneFirst(count)).toBe(0)
  })

  it('flies again on the same line after any failure, whatever was half prepared', async () => {
    const odd = (value: string) => sql.type(Count)`select ${value}::int as n`
    for (const value of ['x', '7', 'y', '8']) {
      const n = await db.fly((tx) => tx.one(odd(value))).catch(() => null)
      expect(n).toEqual(Number.isNaN(Number(value)) ? null : { n: Number(value) })
    }
    await expect(db.fly((tx) => tx.one(sql.type(Count)`selec ${1}`))).rejects.toThrow('syntax error')
    expect(await db.fly((tx) => tx.one(count))).toEqual({ n: 0 })
  })

  it('goes on after the schema has changed under what it prepared', async () => {
    const everything = sql.unsafe`select * from crate`
    await db.fly(async (tx) => {
      await tx.query(add(1))
      expect(await tx.any(everything)).toEqual([{ id: 1, label: 'x' }])
    })
    await db.raw((client) => client.query('alter table crate add column weight int default 3'))
    // PostgreSQL tells a line by one failure; there are two lines at most.
    const answers: unknown[] = []
    for (let tries = 0; tries < 3; tries++)
      answers.push(await db.fly((tx) => tx.any(everything)).catch((error: unknown) => error))
    expect(answers.at(-1)).toEqual([{ id: 1, label: 'x', weight: 3 }])
    await db.raw((client) => client.query('alter table crate drop column weight'))
  })

  it('has one row where one is wanted, and none where there may be none', async () => {
    await db.fly(async (tx) => {
      expect(await tx.maybeOne(all)).toBeNull()
      await expect(tx.one(all)).rejects.toThrow('had none')
      await Promise.all([tx.query(add(1)), tx.query(add(2))])
      await expect(tx.maybeOne(all)).rejects.toThrow('had more')
    })
  })

  it('carries every list of texts and every number as they are', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 }).map((s) => s.replaceAll('\0', '').toWellFormed())
    const lists = fc.array(fc.record({ id: fc.integer({ min: 0, max: 2 ** 31 - 1 }), label: text }), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(lists, async (rows) => {
        const back = await db.fly((tx) =>
          tx.any(sql.type(Named)`
            select id, label from ${sql.unnest(
              rows.map(({ id, label }) => [id, label]),
              ['int4', 'text'],
            )} with ordinality as r(id, label, n) order by n`),
        )
        expect(back).toEqual(rows)
      }),
      { numRuns: 60 },
    )
    const Odd = z.object({ none: z.null(), yes: z.boolean(), list: z.array(z.nullable(z.string())) })
    const odd = await db.fly((tx) =>
      tx.one(sql.type(Odd)`
        select ${null}::text as none, ${true}::bool as yes, ${sql.array(['a"b\\c', '', 'NULL', '{,}'], 'text')} as list`),
    )
    expect(odd).toEqual({ none: null, yes: true, list: ['a"b\\c', '', 'NULL', '{,}'] })
  })

  it('carries bytes of UTF-8 as the text they are, beside other values, and leaves them to whoever gave them', async () => {
    const Carried = z.object({
      before: z.nullable(z.string()),
      text: z.string(),
      length: z.number(),
      after: z.string(),
    })
    const said = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 })
    const beside = fc.option(fc.constantFrom('', 'é', '{}'), { nil: null })
    // Around what is moved to the embedded database's thread, and several socket buffers.
    const times = fc.constantFrom(1, 1_000, 70_000)
    await fc.assert(
      fc.asyncProperty(said, times, beside, async (word, repeats, before) => {
        const text = word.replaceAll('\0', '').toWellFormed().repeat(repeats)
        const value = sql.binary(Buffer.from(text))
        const ask = (tx: Pick<Database['pool'], 'one'>) =>
          tx.one(sql.type(Carried)`
            select ${before}::text as before, ${value}::text as text, octet_length(${value}::text) as length, ${'z'}::text as after`)
        for (const seen of await db.fly((tx) => Promise.all([ask(tx), ask(tx)]))) {
          expect(seen.text === text, `${repeats} times ${JSON.stringify(word)}`).toBe(true)
          expect({ ...seen, text: '' }).toEqual({ before, text: '', length: Buffer.byteLength(text), after: 'z' })
        }
      }),
      { numRuns: 20 },
    )
    const broken = db.fly((tx) => tx.query(sql.unsafe`select ${sql.binary(Buffer.from([0xc3, 0x28]))}::text`))
    await expect(broken).rejects.toThrow('invalid byte sequence')
    expect(await db.fly((tx) => tx.one(count))).toEqual({ n: 0 })
  })

  it('many at once wait for each other, and none is lost', async () => {
    const ids = Array.from({ length: 24 }, (_, id) => id)
    const work = ids.map((id) => db.fly((tx) => tx.query(add(id)).then(() => id)))
    expect(await Promise.all(work)).toEqual(ids)
    expect(await db.pool.oneFirst(count)).toBe(24)
  })
})
