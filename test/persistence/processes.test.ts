/** What processes say of themselves: told again in place, in words of another release left out, and forgotten in time. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SupervisorAnswer } from '../../domain/queue.ts'
import { z } from 'zod'
import {
  countWorking,
  forgetProcess,
  forgetSilentProcesses,
  nobodyWorks,
  readProcesses,
  readSeenAt,
  tellOfProcess,
} from '../../persistence/processes.ts'
import { readUntaken } from '../../persistence/untaken.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const says = (restarts: number): SupervisorAnswer => ({
  supervisor: { value: { running: { command: 'up' } }, machineVersion: '1', restarts, lastFailure: null },
  process: {
    owner: 'a',
    works: true,
    loops: [],
    parser: { threads: 1, underWay: 0, queued: 0, bytesUnderWay: 0, tasksLost: 0 },
    database: { profile: 'postgresql', inUse: 0, idle: 1, waiting: 0 },
  },
})

describe.each(bothDatabases)('processes on %s', (kind) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())
  const owners = async (): Promise<string[]> => (await readProcesses(fresh.db.pool)).map(({ owner }) => owner)

  it('are known by what they said last, and gone when they leave', async () => {
    const { pool } = fresh.db
    await tellOfProcess(pool, 'b', says(0))
    await tellOfProcess(pool, 'a', says(1))
    await tellOfProcess(pool, 'a', says(2))
    const [first, second] = await readProcesses(pool)
    expect([first?.owner, first?.told, second?.owner]).toEqual(['a', says(2), 'b'])
    expect(await readSeenAt(pool, 'a')).toBe(first?.seenAt)
    await forgetProcess(pool, 'a')
    // Nobody misses who left, or nobody.
    expect([await readSeenAt(pool, 'a'), await readSeenAt(pool, null)]).toEqual([null, null])
    expect(await owners()).toEqual(['b'])
    await forgetProcess(pool, 'b')
  })

  it('of another release live, whatever they say', async () => {
    const { pool } = fresh.db
    await tellOfProcess(pool, 'new', says(0))
    await pool.query(sql.unsafe`update process set told = '{"spoken": "otherwise"}'`)
    const unknown = { owner: 'new', firstSeenAt: expect.any(String), seenAt: expect.any(String), told: null }
    expect(await readProcesses(pool)).toEqual([unknown])
    await forgetProcess(pool, 'new')
  })

  it('were first heard of when they told first, by the database’s clock, also in the words of the release before', async () => {
    const { pool } = fresh.db
    // As that release inserts: it knows no column for it.
    await pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) values ('before', now(), ${sql.jsonb(says(0))})`)
    await pool.query(
      sql.unsafe`update process set first_seen_at = now() - interval '1 hour', seen_at = now() - interval '1 minute'`,
    )
    await tellOfProcess(pool, 'before', says(1))
    await tellOfProcess(pool, 'after', says(0))
    const [after, before] = await readProcesses(pool)
    expect([after?.firstSeenAt, before?.told]).toEqual([after?.seenAt, says(1)])
    expect(Date.parse(before?.seenAt ?? '') - Date.parse(before?.firstSeenAt ?? '')).toBeGreaterThan(3_500_000)
    for (const owner of ['before', 'after']) await forgetProcess(pool, owner)
  })

  it('work where they say so, or what they say is not known, and were heard of lately', async () => {
    const { pool } = fresh.db
    const isLeft = () => pool.oneFirst(sql.type(z.object({ is: z.boolean() }))`select ${nobodyWorks} as is`)
    const counts = async (): Promise<readonly [working: number, nobody: boolean]> => [
      await countWorking(pool),
      await isLeft(),
    ]
    // Who is alone on an embedded database tells nobody.
    expect(await counts()).toEqual([0, false])
    const { process, supervisor } = says(0)
    await tellOfProcess(pool, 'web', { supervisor, process: { ...process, works: false } })
    expect(await counts()).toEqual([0, true])
    await tellOfProcess(pool, 'a', says(0))
    expect(await counts()).toEqual([1, false])
    for (const value of ['draining', 'stopped', 'broken']) {
      await tellOfProcess(pool, 'a', { process, supervisor: { ...supervisor, value } })
      expect(await counts(), value).toEqual([0, true])
    }
    await tellOfProcess(pool, 'a', { process, supervisor: { ...supervisor, value: 'starting' } })
    await pool.query(
      sql.unsafe`insert into process (owner, seen_at, told) values ('new', now(), '{"spoken": "otherwise"}')`,
    )
    expect(await counts()).toEqual([2, false])
    await pool.query(sql.unsafe`update process set seen_at = now() - interval '16 seconds' where owner <> 'web'`)
    expect(await counts()).toEqual([0, true])
    // A worker of an early release tells nothing of itself: its leases do.
    const organization = '00000000-0000-7000-8000-00000000000a'
    await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${organization}, 'ours', 'Ours')`)
    await pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, created_at, updated_at, work, lease_owner,
        lease_token, lease_until, wake_at)
      values ('subscription', ${organization}, ${organization}, '1', 1, '{"value": "following", "status": "active", "context": {}}', '{}', now(),
        now(), 'follow', 'untold/1', ${organization}, now() + interval '15 s', now() + interval '15 s')`)
    expect(await counts()).toEqual([0, false])
    await pool.query(
      sql.unsafe`update actor set lease_until = now() - interval '1 s', wake_at = now() - interval '1 s'`,
    )
    expect(await counts()).toEqual([0, true])
    await pool.query(sql.unsafe`update actor set lease_owner = 'a', lease_until = now() + interval '15 s'`)
    expect(await counts()).toEqual([0, true])
    await pool.query(sql.unsafe`delete from actor`)
    await pool.query(sql.unsafe`delete from process`)
  })

  it('leave what is due for want of a worker, or of a place, and it is told which', async () => {
    const { pool } = fresh.db
    const organization = '00000000-0000-7000-8000-00000000000b'
    await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${organization}, 'others', 'Others')`)
    const hold = (owner: string, count: number) =>
      pool.query(sql.unsafe`
        insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, created_at, updated_at, work, lease_owner,
          lease_token, lease_until, wake_at)
        select 'subscription', gen_random_uuid(), ${organization}, '1', 1, '{"value": "following", "status": "active", "context": {}}', '{}',
          now(), now(), 'follow', ${owner}, gen_random_uuid(), now() + interval '15 s', now() + interval '15 s'
        from generate_series(1, ${count})`)
    const why = (kind = 'subscription') => readUntaken(pool, kind, 2)
    const { process, supervisor } = says(0)
    // The only process that there can be tells nobody of itself, and its leases tell of it.
    expect(await why()).toBe('free')
    await hold('a', 2)
    expect(await why()).toBe('full')
    await pool.query(sql.unsafe`delete from actor`)
    await tellOfProcess(pool, 'web', { supervisor, process: { ...process, works: false } })
    expect(await why()).toBe('nobody')
    for (const owner of ['a', 'b']) await tellOfProcess(pool, owner, says(0))
    await hold('a', 2)
    // The other has room.
    expect(await why()).toBe('free')
    await hold('b', 1)
    expect(await why()).toBe('free')
    await hold('b', 1)
    expect([await why(), await why('reconciliation')]).toEqual(['full', 'free'])
    // Who drains takes nothing up: neither its free places count nor that it has none left.
    const drains = { supervisor: { ...supervisor, value: 'draining' }, process }
    await tellOfProcess(pool, 'old', drains)
    expect(await why()).toBe('full')
    await hold('old', 2)
    await tellOfProcess(pool, 'idle', says(0))
    expect(await why()).toBe('free')
    await forgetProcess(pool, 'idle')
    // Of who is not heard of any more neither the places nor the work count.
    await pool.query(sql.unsafe`update process set seen_at = now() - interval '16 seconds' where owner = 'b'`)
    expect(await why()).toBe('full')
    await pool.query(sql.unsafe`update process set seen_at = now() - interval '16 seconds' where owner = 'a'`)
    expect(await why()).toBe('nobody')
    await pool.query(sql.unsafe`delete from actor`)
    await pool.query(sql.unsafe`delete from process`)
  })

  it('that ended without a word are shown for ten minutes', async () => {
    const { pool } = fresh.db
    const heard = (owner: string, ago: string) =>
      pool.query(sql.unsafe`update process set seen_at = now() - ${ago}::interval where owner = ${owner}`)
    for (const owner of ['young', 'old']) await tellOfProcess(pool, owner, says(0))
    await heard('young', '9 minutes')
    await heard('old', '11 minutes')
    expect(await owners()).toEqual(['young'])
    await forgetSilentProcesses(pool)
    expect(await pool.anyFirst(sql.unsafe`select owner from process`)).toEqual(['young'])
  })
})
