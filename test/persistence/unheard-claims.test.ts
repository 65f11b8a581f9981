/**
 * A claim whose answer was lost has marked rows as begun, and nobody works on them. The next claim by the same process knows
 * the tokens and takes them as they were before: begun by somebody dead, or not at all.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { claimActors, type Claim } from '../../persistence/leases.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
const [fresh, begun, timed] = [uuid(1), uuid(2), uuid(3)]
const leaseMs = 60_000
const owner = 'this process'

describe.each(bothDatabases)('a claim that was never answered, on %s', (kind) => {
  let database: FreshDatabase
  beforeAll(async () => {
    database = await freshDatabase(kind)
    await database.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        created_at, updated_at)
      values
        ('test', ${fresh}, ${uuid(9)}, '1', 1, '{}', 'deliver', null, '{}', now(), now(), now()),
        ('test', ${begun}, ${uuid(9)}, '1', 1, '{}', 'deliver', now() - interval '2 minutes', '{}', now(), now(), now()),
        ('test', ${timed}, ${uuid(9)}, '1', 1, '{}', null, null, '{}', now(), now(), now())`)
  })
  afterAll(() => database.close())

  const claim = async (tokens: readonly string[], unheard: readonly string[] = []) => {
    const wanted: Claim = { kind: 'test', limit: 10, leaseMs, fullLanes: [], tokens, unheard }
    const due = await claimActors(database.db.pool, wanted, { owner, exclusive: false, held: [] })
    return due
      .map((row) => ({ id: row.id, begun: row.begun, token: row.leaseToken, claimed: row.claimed }))
      .toSorted((a, b) => a.id.localeCompare(b.id))
  }
  const tokensFrom = (n: number): string[] => Array.from({ length: 10 }, (_, i) => uuid(n + i))

  it('is undone by the next, once and again, and what had begun before stays begun', async () => {
    const first = await claim(tokensFrom(100))
    expect(first.map(({ id, begun: was, claimed }) => ({ id, was, claimed }))).toEqual([
      { id: fresh, was: false, claimed: true },
      { id: begun, was: true, claimed: true },
      { id: timed, was: false, claimed: false },
    ])
    const names = first.flatMap(({ token }) => (token === null ? [] : [token]))
    expect(new Set(names).size).toBe(2)
    expect(names.every((name) => tokensFrom(100).includes(name))).toBe(true)
    // Whoever does not know that the answer was lost has to leave the leases alone.
    expect(await claim(tokensFrom(200))).toEqual([])
    for (const [lost, next] of [
      [100, 300],
      [300, 400],
    ] as const) {
      const again = await claim(tokensFrom(next), tokensFrom(lost))
      expect(again.map(({ id, begun: was, claimed }) => ({ id, was, claimed }))).toEqual([
        { id: fresh, was: false, claimed: true },
        { id: begun, was: true, claimed: true },
      ])
      expect(again.every(({ token }) => token !== null && tokensFrom(next).includes(token))).toBe(true)
    }
    // The tokens of a claim that was answered are nobody's to take.
    expect(await claim(tokensFrom(500), tokensFrom(100))).toEqual([])
  })
})
