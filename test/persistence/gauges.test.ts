/** What a scrape counts: every kind by itself, however much of another waits. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readGauges } from '../../persistence/gauges.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

describe.each(bothDatabases)('gauges on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())

  /** Of one kind, due so many seconds ago (in the future where it is negative). */
  const add = (of: string, count: number, dueSecondsAgo: number | null, isHeld = false) =>
    fresh.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, wake_at, lease_token, created_at, updated_at)
      select ${of}, gen_random_uuid(), gen_random_uuid(), '1', 1, '{}', '{}', now() - ${dueSecondsAgo}::float8 * interval '1 second',
        case when ${isHeld} then gen_random_uuid() end, now(), now() from generate_series(1, ${count}::int)`)

  it('say of each kind what lives, is due and is held, and how long the oldest waits', async () => {
    // More of one kind than is looked at, and all of them before the one of which somebody should hear.
    await add('command', 8, 20)
    await add('command', 1, -10, true)
    await add('command', 3, null)
    await add('subscription', 1, 3_600)
    await add('subscription', 1, 5, true)
    const gauges = await readGauges(fresh.db.pool, ['command', 'push', 'subscription'], 5)
    const [commands, pushes, subscriptions] = gauges
    expect(commands).toMatchObject({ kind: 'command', live: 5, due: 5, leased: 1 })
    expect(commands?.oldestDueSeconds).toBeGreaterThanOrEqual(20)
    expect(pushes).toEqual({ kind: 'push', live: 0, due: 0, leased: 0, oldestDueSeconds: null })
    expect(subscriptions).toMatchObject({ kind: 'subscription', live: 2, due: 1, leased: 1 })
    expect(subscriptions?.oldestDueSeconds).toBeGreaterThanOrEqual(3_600)
  })
})
