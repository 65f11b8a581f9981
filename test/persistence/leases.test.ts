/**
 * Renewing leases: the three answers, and that a row which somebody keeps locked is waited for by nobody. The embedded database has
 * one session, so nobody else can lock a row there.
 */
import { sql, type QuerySqlToken } from 'slonik'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AstrayLooks } from '../../persistence/astray.ts'
import type { Database } from '../../persistence/database.ts'
import {
  claimFor,
  claiming,
  markBegun,
  markUnbegun,
  releaseRepeatable,
  releaseUnbegun,
  renewLeases,
  type LeaseOf,
} from '../../persistence/leases.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { lockedBy } from '../support/row-lock.ts'
import { rowsRead } from '../support/rows-read.ts'

const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
const leaseMs = 15_000
const lease = (n: number, work = 'follow'): LeaseOf => ({
  ref: { kind: 'test', id: uuid(n) },
  token: uuid(100 + n),
  work,
})
const Left = z.object({ id: z.string(), lease: z.number(), wake: z.number() })

describe.each(bothDatabases)('leases on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())
  beforeEach(async () => {
    await fresh.db.pool.query(sql.unsafe`delete from actor`)
    await fresh.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        lease_token, lease_owner, lease_until, created_at, updated_at)
      select 'test', id, id, '1', 1, '{}', 'follow', now(), '{}', now() + interval '1 second', token, 'us',
        now() + interval '1 second', now(), now()
      from ${sql.unnest(
        [1, 2, 3, 4].map((n) => [uuid(n), uuid(100 + n)]),
        ['uuid', 'uuid'],
      )} as given(id, token)`)
  })

  /** Ids of those that are leased, and due, for longer than the second that they were. */
  const renewed = async (): Promise<readonly string[]> => {
    const rows = await fresh.db.pool.any(sql.type(Left)`
      select id, extract(epoch from lease_until - now())::float8 as lease, extract(epoch from wake_at - now())::float8 as wake
      from actor where lease_until is not null order by id`)
    return rows.filter((row) => row.lease > 5 && row.wake > 5).map(({ id }) => id)
  }

  const unleased = (): Promise<readonly string[]> =>
    fresh.db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`
      select id from actor where lease_token is null and work_started_at is null order by id`)

  it('say that work has not begun and that it begins, while they are ours, and go back until after a pause', async () => {
    const begun = () =>
      fresh.db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`
        select id from actor where work_started_at is not null order by id`)
    const [mine, taken, other] = [lease(1), { ...lease(2), token: uuid(999) }, lease(3, 'close')]
    for (const each of [mine, taken, other]) expect(await markUnbegun(fresh.db.pool, each)).toBe(each === mine)
    expect(await begun()).toEqual([uuid(2), uuid(3), uuid(4)])
    for (const each of [mine, taken, other]) expect(await markBegun(fresh.db.pool, each)).toBe(each === mine)
    expect(await begun()).toEqual([uuid(1), uuid(2), uuid(3), uuid(4)])
    await releaseUnbegun(fresh.db.pool, [mine, taken], 60_000)
    expect(await unleased()).toEqual([uuid(1)])
    const waits = sql.type(z.object({ wake: z.number() }))`
      select extract(epoch from wake_at - now())::float8 as wake from actor where id = ${uuid(1)}`
    expect(await fresh.db.pool.oneFirst(waits)).toBeGreaterThan(50)
  })

  it('are renewed while they are ours; those of another token, of other work or without a row are not, and are not named', async () => {
    await fresh.db.pool.query(sql.unsafe`update actor set lease_token = ${uuid(999)} where id = ${uuid(2)}`)
    await fresh.db.pool.query(sql.unsafe`delete from actor where id = ${uuid(4)}`)
    const renewals = await renewLeases(fresh.db.pool, [lease(4), lease(3, 'close'), lease(2), lease(1)], leaseMs)
    expect([...renewals]).toEqual([[lease(1).token, 'renewed']])
    expect(await renewed()).toEqual([uuid(1)])
    expect(await renewLeases(fresh.db.pool, [], leaseMs)).toEqual(new Map())
  })

  it.runIf(kind === 'postgresql')(
    'are renewed beside a row that somebody keeps locked, which is told apart',
    async () => {
      const [locked, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const outside = fresh.db.pool.transaction(async (tx) => {
        await tx.query(sql.unsafe`select from actor where id in (${uuid(2)}, ${uuid(3)}) for update`)
        // What it writes and has not committed is not there yet.
        await tx.query(sql.unsafe`update actor set lease_token = null where id = ${uuid(3)}`)
        locked.resolve()
        await over.promise
      })
      await locked.promise
      const all = [1, 2, 3, 4].map((n) => lease(n))
      const renewals = await renewLeases(fresh.db.pool, all, leaseMs)
      expect([1, 2, 3, 4].map((n) => renewals.get(lease(n).token))).toEqual(['renewed', 'locked', 'locked', 'renewed'])
      expect(await renewed()).toEqual([uuid(1), uuid(4)])
      over.resolve()
      await outside
      const again = await renewLeases(fresh.db.pool, all, leaseMs)
      expect([1, 2, 3, 4].map((n) => again.get(lease(n).token))).toEqual(['renewed', 'renewed', undefined, 'renewed'])
    },
  )

  it('are given back where work may be repeated', async () => {
    expect(await releaseRepeatable(fresh.db.pool, [lease(4), lease(3, 'close'), lease(1)])).toBe(2)
    expect(await unleased()).toEqual([uuid(1), uuid(4)])
  })

  it.runIf(kind === 'postgresql')('are given back beside a row that somebody keeps locked', async () => {
    const unlock = await lockedBy(fresh.db, lease(2).ref)
    const all = [1, 2, 3, 4].map((n) => lease(n))
    expect(await releaseRepeatable(fresh.db.pool, all)).toBe(3)
    expect(await unleased()).toEqual([uuid(1), uuid(3), uuid(4)])
    await unlock()
  })
})

describe('a claim on PostgreSQL', () => {
  it('reads what is due and nothing else where thousands wait, also by a plan that knows none of its values', async () => {
    const fresh = await freshDatabase('postgresql')
    await fresh.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, timers, wake_at, created_at, updated_at)
      select 'test', gen_random_uuid(), gen_random_uuid(), '1', 1, '{}', 'follow', '{}',
        now() + (case when n <= 3 then -1 else 3600 end) * interval '1 second', now(), now()
      from generate_series(1, 3000) n`)
    const statements: QuerySqlToken[] = []
    const direct: Database['direct'] = {
      any: (statement) => {
        statements.push(statement)
        return fresh.db.direct.any(statement)
      },
    }
    const claim = { kind: 'test', limit: 2, leaseMs, fullLanes: [] }
    const due = await claimFor({ ...fresh.db, direct }, claim, { owner: 'us', held: () => [] })
    expect(due).toHaveLength(2)
    const [statement] = statements
    const read = await fresh.db.pool.transaction(async (tx) => {
      await tx.query(sql.unsafe`set local plan_cache_mode = force_generic_plan`)
      return rowsRead({ pool: tx }, sql.fragment`${statement ?? sql.fragment``}`)
    })
    // The one that is left, and its row once more to be taken.
    expect(read['actor']).toBeLessThan(20)
    await fresh.close()
  })
})

describe('a claim on the embedded database', () => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase('pglite')
  })
  afterAll(() => fresh.close())

  const waiting = (count: number) =>
    fresh.db.pool.query(sql.unsafe`
    insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, timers, wake_at, created_at, updated_at)
    select 'waiting', gen_random_uuid(), gen_random_uuid(), '1', 1, '{}', 'follow', '{}', now() + interval '1 hour', now(), now()
    from generate_series(1, ${count}::int)`)
  const claim = { kind: 'waiting', limit: 8, leaseMs, fullLanes: [], turns: null }
  const looks = new AstrayLooks()
  const claimed = async (): Promise<readonly string[]> => {
    const due = await claimFor(fresh.db, claim, { owner: 'us', held: () => [], looks })
    return due.map(({ id }) => id)
  }
  const oneOf = (change: ReturnType<typeof sql.fragment>): Promise<string> =>
    fresh.db.pool.oneFirst(sql.type(z.object({ id: z.string() }))`
      update actor set ${change} where id = (select id from actor where wake_at > now() + interval '50 minutes' limit 1) returning id`)
  const ofTheDead = sql.fragment`lease_owner = 'dead', lease_token = gen_random_uuid(), lease_until = wake_at`
  const ofAnotherTime = sql.fragment`updated_at = updated_at + interval '30 minutes'`

  it('looks at each claim for what is astray where few wait', async () => {
    await waiting(100)
    expect(await claimed()).toEqual([])
    for (const change of [ofTheDead, ofAnotherTime]) {
      const id = await oneOf(change)
      expect(await claimed()).toEqual([id])
    }
  })

  it('reads what is due and nothing else where thousands wait, and finds what is astray all the same', async () => {
    await waiting(6_000)
    await fresh.db.raw((client) => client.query('vacuum analyze actor'))
    const alone = { owner: 'us', exclusive: true, held: [] }
    const { actor: read = 0 } = await rowsRead(fresh.db, claiming({ ...claim, near: true }, alone))
    expect(read).toBeLessThan(20)
    const counted = new AstrayLooks()
    const isLooking = () => counted.areDue(fresh.db.pool, claim.kind, sql.fragment`false`)
    for (let n = 0; n < 10; n++) expect(await isLooking()).toBe(false)
    for (const change of [ofTheDead, ofAnotherTime]) {
      const id = await oneOf(change)
      let found: readonly string[] = []
      for (let n = 0; n <= 20 && found.length === 0; n++) found = await claimed()
      expect(found).toEqual([id])
    }
    // At the start of a process at once: the one before may have died.
    const id = await oneOf(ofTheDead)
    expect(
      (await claimFor(fresh.db, claim, { owner: 'us', held: () => [], looks: new AstrayLooks() })).map((due) => due.id),
    ).toEqual([id])
  })
})
