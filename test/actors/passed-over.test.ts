/**
 * What claims pass over because its agent has all its places taken: the next claim looks only at what fell due since, and takes
 * all the same what it would have taken by looking at everything.
 */
import fc from 'fast-check'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PassedOver } from '../../actors/loop/passed-over.ts'
import { claimActors } from '../../persistence/leases.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const kind = 'command'

describe('how far back a claim looks', () => {
  const all = { kind, leftOut: ['x'], reach: undefined, lastDueMs: null }

  it('is to the beginning, first of all and every five seconds', () => {
    const passed = new PassedOver()
    expect(passed.reach(kind, ['x'], 0)).toBeUndefined()
    passed.note({ ...all, at: 1_000 })
    expect(passed.reach(kind, ['x'], 1_500)).toBe(2_500)
    passed.note({ ...all, reach: 2_500, at: 1_500 })
    expect(passed.reach(kind, ['x'], 5_999)).toBe(6_499)
    expect(passed.reach(kind, ['x'], 6_000)).toBeUndefined()
    expect(passed.reach('subscription', ['x'], 1_500)).toBeUndefined()
  })

  it('is to the beginning when an agent has room again, and not when one more has none', () => {
    const passed = new PassedOver()
    passed.note({ ...all, leftOut: ['x', 'y'], at: 1_000 })
    expect(passed.reach(kind, ['x'], 1_100)).toBeUndefined()
    expect(passed.reach(kind, ['x', 'y', 'z'], 1_100)).toBe(2_100)
    passed.note({ ...all, leftOut: [], at: 1_200 })
    expect(passed.reach(kind, ['x', 'y'], 1_300)).toBeUndefined()
  })

  it('is to the last row that a claim took, when it took as many as it might', () => {
    const passed = new PassedOver()
    passed.note({ ...all, at: 10_000, lastDueMs: 4_000 })
    expect(passed.reach(kind, ['x'], 10_000)).toBe(6_000)
  })

  interface Row {
    readonly lane: string
    readonly dueAt: number
  }
  const lane = fc.constantFrom<string[]>('x', 'y', 'z')
  /** Between two claims time passes, rows are committed some time after the instant that they carry, and lanes fill and empty. */
  const between = fc.record({
    passes: fc.integer({ min: 1, max: 3_000 }),
    arrivals: fc.array(fc.record({ lane, late: fc.integer({ min: 0, max: 1_900 }) }), { maxLength: 8 }),
    full: fc.uniqueArray(lane, { maxLength: 3 }),
    limit: fc.integer({ min: 1, max: 5 }),
  })

  it('changes nothing of what is taken, and in which order', () => {
    fc.assert(
      fc.property(fc.array(between, { maxLength: 40 }), (steps) => {
        const passed = new PassedOver()
        let rows: Row[] = []
        let now = 0
        for (const { passes, arrivals, full, limit } of steps) {
          now += passes
          rows.push(...arrivals.map(({ lane: of, late }) => ({ lane: of, dueAt: now - late })))
          rows.sort((a, b) => a.dueAt - b.dueAt)
          const open = rows.filter((row) => !full.includes(row.lane))
          const reach = passed.reach(kind, full, now)
          const near = open.filter(({ dueAt }) => reach === undefined || dueAt > now - reach)
          const taken = near.slice(0, limit)
          expect(taken).toEqual(open.slice(0, limit))
          const last = taken.at(-1)
          const lastDueMs = last && taken.length === limit ? now - last.dueAt : null
          passed.note({ kind, leftOut: full, reach, at: now, lastDueMs })
          rows = rows.filter((row) => !taken.includes(row))
        }
      }),
    )
  })
})

const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
const [hung, other] = [uuid(8), uuid(9)]

describe.each(bothDatabases)('a claim beside an agent that has no place left, on %s', (database) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(database)
  })
  afterAll(() => fresh.close())

  it('takes what fell due within its reach, says how long ago that was, and leaves what is older', async () => {
    const ages = [
      [1, hung, 60],
      [2, other, 60],
      [3, hung, 2],
      [4, other, 2],
    ] as const
    await fresh.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, work, timers, wake_at, created_at, updated_at)
      select ${kind}, v.id, ${uuid(7)}, v.lane, '1', 1, '{}', 'deliver', '{}', now() - v.age * interval '1 second', now(), now()
      from ${sql.unnest(
        ages.map(([n, lane, age]) => [uuid(n), lane, age]),
        ['uuid', 'uuid', 'int4'],
      )} as v(id, lane, age)`)
    const claim = { kind, limit: 10, leaseMs: 60_000, fullLanes: [hung] }
    const by = { owner: 'this process', exclusive: false, held: [] }
    const near = await claimActors(fresh.db.pool, { ...claim, reachMs: 10_000 }, by)
    expect(near.map(({ id }) => id)).toEqual([uuid(4)])
    expect(near[0]?.dueMs).toBeGreaterThanOrEqual(2_000)
    expect(near[0]?.dueMs).toBeLessThan(10_000)
    const rest = await claimActors(fresh.db.pool, claim, by)
    expect(rest.map(({ id }) => id)).toEqual([uuid(2)])
  })
})
