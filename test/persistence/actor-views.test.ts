/** Actors for reading where there are many: right rows, the right indexes, and one word with the machines about what is unusual. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { statesOf } from '../../domain/chart.ts'
import { stuckAfterMs } from '../../domain/patience.ts'
import { chartOf } from '../../machines/chart.ts'
import {
  isInState,
  listActors,
  unsettledEnd,
  type ActorFilter,
  type ActorRecord,
} from '../../persistence/actor-views.ts'
import { actorViews } from '../../persistence/migrations/0005-actor-views.ts'
import { readQueues, readWait } from '../../persistence/queue-views.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { administratorOf } from '../support/viewers.ts'
import { durableMachines } from '../support/machine-events.ts'

const ours = '00000000-0000-7000-8000-00000000000a'
const theirs = '00000000-0000-7000-8000-00000000000b'
const kinds = ['command', 'subscription', 'ownership']
const attention = [
  { kind: 'command', state: '"failed"' },
  { kind: 'command', state: '"uncertain"' },
  { kind: 'subscription', state: '"stopped"' },
  { kind: 'ownership', state: '{"open":{"deadline":"overdue"}}' },
]
const archivedRows = 30_000
const administrator = administratorOf(ours)
const subscription = (id: string) => ({ kind: 'subscription', id })

describe('the index of unusual ends', () => {
  it('holds every end that a machine marks, and none of those that nearly everything has', () => {
    const ordinary = [...(/not in \(([^)]*)\)/.exec(actorViews.up)?.[1] ?? '').matchAll(/'(\w+)'/g)].map(
      ([, name]) => name,
    )
    const ends = durableMachines.flatMap(({ machine }) =>
      [...statesOf(chartOf(machine).root)].filter(({ kind }) => kind === 'final'),
    )
    expect(ends.length).toBeGreaterThan(5)
    for (const { key, tags } of ends) expect([key, !ordinary.includes(key)]).toEqual([key, tags.includes('attention')])
  })
})

describe('many actors', () => {
  let fresh: FreshDatabase
  const list = (filter: Partial<ActorFilter>): Promise<readonly ActorRecord[]> =>
    listActors(fresh.db.pool, administrator, {
      kinds,
      state: null,
      attention: null,
      q: null,
      work: null,
      owner: null,
      agentId: null,
      before: null,
      limit: 10,
      ...filter,
    })

  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    const { pool } = fresh.db
    // Of every thousand commands one failed; ids and times grow together, as the runtime's do.
    await pool.query(sql.unsafe`
      insert into actor_archive (kind, id, organization_id, machine_version, revision, snapshot, created_at, updated_at)
      select case when n % 3 = 0 then 'ownership' else 'command' end, lpad(to_hex(n), 32, '0')::uuid,
        case when n % 10 = 7 then ${theirs}::uuid else ${ours}::uuid end, '1', 3,
        jsonb_build_object('value', case when n % 3 = 0 then 'finished' when n % 1000 = 1 then 'failed' else 'succeeded' end,
          'context', '{}'::jsonb, 'status', 'done'),
        '2026-01-01'::timestamptz + n * interval '1 second', '2026-01-01'::timestamptz + n * interval '1 second'
      from generate_series(1, ${archivedRows}) n`)
    await pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        lease_token, lease_owner, lease_until, created_at, updated_at)
      select kind, id::uuid, organization, lane, '1', 1, jsonb_build_object('value', value, 'context', '{}'::jsonb, 'status', 'active'),
        work, begun, '{}'::jsonb, wake, case when owner is null then null else gen_random_uuid() end, owner,
        case when owner is null then null else wake end, '2026-02-01', '2026-02-01'
      from (values
        ('subscription', 'a0000000-0000-7000-8000-000000000001', ${ours}::uuid, ${ours}::uuid, '"following"'::jsonb, 'follow', now(), now() + interval '10 seconds', 'host/1'),
        ('subscription', 'a0000000-0000-7000-8000-000000000002', ${ours}::uuid, ${theirs}::uuid, '"following"'::jsonb, 'follow', now(), now() + interval '5 seconds', 'host/1'),
        ('subscription', 'a0000000-0000-7000-8000-000000000003', ${ours}::uuid, ${ours}::uuid, '"following"'::jsonb, 'follow', null, now() - interval '30 seconds', null),
        ('subscription', 'a0000000-0000-7000-8000-000000000004', ${ours}::uuid, ${ours}::uuid, '"following"'::jsonb, 'follow', null, now() - interval '20 seconds', null),
        ('subscription', 'a0000000-0000-7000-8000-000000000005', ${ours}::uuid, null, '"stopped"'::jsonb, null, null, null, null),
        ('command', 'a0000000-0000-7000-8000-000000000006', ${ours}::uuid, null, '"dispatching"'::jsonb, 'deliver', now() - interval '2 minutes', now() - interval '1 minute', 'gone/2'),
        ('command', 'a0000000-0000-7000-8000-000000000007', ${ours}::uuid, null, '{"pending":"waiting"}'::jsonb, null, null, now() + interval '1 hour', null),
        ('ownership', 'a0000000-0000-7000-8000-000000000008', ${ours}::uuid, null, '{"open":{"holder":"owned","deadline":"overdue"}}'::jsonb, null, null, null, null),
        ('subscription', 'a0000000-0000-7000-8000-00000000000b', ${ours}::uuid, null, '"backingOff"'::jsonb, null, null, null, null),
        ('subscription', 'a0000000-0000-7000-8000-00000000000c', ${theirs}::uuid, null, '"following"'::jsonb, 'follow', now(), now() + interval '10 seconds', 'host/9'),
        ('ownership', 'a0000000-0000-7000-8000-000000000009', ${theirs}::uuid, null, '{"open":{"holder":"owned","deadline":"overdue"}}'::jsonb, null, null, now() - interval '1 minute', null)
      ) v(kind, id, organization, lane, value, work, begun, wake, owner)`)
    await pool.query(sql.unsafe`analyze actor_archive`)
  })
  afterAll(() => fresh.close())

  it('gives the newest first, live and finished alike, page by page', async () => {
    const first = await list({ kinds: ['command'] })
    expect(first.slice(0, 2).map(({ id }) => id.slice(-1))).toEqual(['7', '6'])
    const last = first.at(-1)
    if (!last) throw new Error('The page is empty.')
    const second = await list({ kinds: ['command'], before: { updatedAt: last.updatedAt, id: last.id } })
    const times = [...first, ...second].map(({ updatedAt }) => updatedAt)
    expect(times).toEqual(times.toSorted().toReversed())
    expect(new Set([...first, ...second].map(({ id }) => id)).size).toBe(20)
  })

  it('tells what is due for long and held by nobody from what is under way, to come, or over', async () => {
    const rows = await list({ limit: 100 })
    const untaken = rows.filter((row) => row.isUntaken).map(({ id }) => id.slice(-1))
    expect(untaken.toSorted()).toEqual(['3', '4', '6'])
    expect(rows.some(({ snapshot }) => snapshot.status === 'done')).toBe(true)
  })

  it('finds what needs a person wherever it is, and nothing of another organization', async () => {
    const found = await list({ attention, limit: 100 })
    const live = found.filter(({ snapshot }) => snapshot.status === 'active').map(({ id }) => id.slice(-1))
    expect(live).toEqual(['8', '6', '5'])
    const values = new Set(
      found.filter(({ snapshot }) => snapshot.status === 'done').map(({ snapshot }) => snapshot.value),
    )
    expect([...values]).toEqual(['failed'])
  })

  it('finds words among the newest of each kind, and a whole id however old', async () => {
    expect((await list({ q: 'fail' })).every(({ snapshot }) => snapshot.value === 'failed')).toBe(true)
    expect(await list({ q: '0000-000000000002' })).toEqual([])
    const oldest = '00000000-0000-0000-0000-000000000001'
    expect((await list({ q: oldest })).map(({ id }) => id)).toEqual([oldest])
  })

  it('finds a state by its own name, and by the words that people read', async () => {
    for (const q of ['backingOff', 'backing off', 'Backing'])
      expect((await list({ q })).map(({ id }) => id.slice(-1))).toEqual(['b'])
    // As the list shows where it is.
    for (const q of ['open › deadline › overdue', 'open›owned', '› overdue'])
      expect((await list({ q })).map(({ id }) => id.slice(-1))).toEqual(['8'])
    expect(await list({ q: 'open › backing off' })).toEqual([])
  })

  it('takes blanks for no question', async () => {
    const all = await list({})
    for (const q of [' ', ' › '])
      expect(await list({ q })).toEqual(all.map((row) => ({ ...row, seenAt: expect.any(String) })))
  })

  it('finds what is counted as due, as under way and as held by one process, and nothing finished', async () => {
    const ends = async (filter: Partial<ActorFilter>): Promise<string[]> =>
      (await list(filter)).map(({ id }) => id.slice(-1)).toSorted()
    expect(await ends({ work: 'due' })).toEqual(['3', '4', '6'])
    expect(await ends({ work: 'due', kinds: ['subscription'] })).toEqual(['3', '4'])
    expect(await ends({ work: 'held' })).toEqual(['1', '2'])
    expect(await ends({ owner: 'gone/2' })).toEqual(['6'])
    expect(await ends({ owner: 'host/1', kinds: ['command'] })).toEqual([])
  })

  it('counts what is due, who holds what and what needs a person', async () => {
    const { kinds: queues, leases, commands } = await readQueues(fresh.db.pool, ours, kinds, attention)
    expect(queues.map(({ kind, due, attention: needing }) => [kind, due, needing])).toEqual([
      ['command', 1, 1 + (await ourFailures())],
      ['subscription', 2, 1],
      ['ownership', 0, 1],
    ])
    expect(leases).toEqual([
      expect.objectContaining({ owner: 'gone/2', kind: 'command', held: 1, expired: 1 }),
      expect.objectContaining({ owner: 'host/1', kind: 'subscription', held: 2, expired: 0 }),
    ])
    expect(commands).toMatchObject({ pending: 1, dispatching: 1, oldestPendingAt: '2026-02-01T00:00:00.000Z' })
  })

  it('tells of a process that it holds something, of whichever organization, and only that', async () => {
    const { pool } = fresh.db
    await pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) select owner, now(), '{}' from unnest(array['host/1', 'host/9', 'idle/1']) owner`)
    const { processes, leases } = await readQueues(pool, ours, kinds, attention)
    expect(processes.map(({ owner, holds }) => [owner, holds])).toEqual([
      ['host/1', true],
      ['host/9', true],
      ['idle/1', false],
    ])
    expect(leases.map(({ owner }) => owner)).not.toContain('host/9')
    await pool.query(sql.unsafe`delete from process`)
  })

  const ourFailures = (): Promise<number> =>
    fresh.db.pool.oneFirst(sql.type(z.object({ n: z.number() }))`
      select count(*)::int as n from actor_archive where organization_id = ${ours} and snapshot->>'value' = 'failed'`)

  it('passes over what people settled without reading it, and shows it everywhere else', async () => {
    const { pool } = fresh.db
    const before = await ourFailures()
    // Of thousands that ended badly all but ten are settled.
    await pool.query(sql.unsafe`
      insert into actor_archive (kind, id, organization_id, machine_version, revision, snapshot, created_at, updated_at, settled_at)
      select 'command', ('b' || lpad(to_hex(n), 31, '0'))::uuid, ${ours}, '1', 3, '{"value": "uncertain", "context": {}, "status": "done"}',
        '2026-03-01'::timestamptz + n * interval '1 second', '2026-03-01'::timestamptz + n * interval '1 second',
        case when n % 500 = 0 then null else now() end
      from generate_series(1, 5000) n`)
    await pool.query(sql.unsafe`analyze actor_archive`)
    const found = await list({ attention, limit: 100 })
    expect(found.filter(({ snapshot }) => snapshot.value === 'uncertain')).toHaveLength(10)
    const { kinds: queues } = await readQueues(pool, ours, kinds, attention)
    expect(queues.find(({ kind }) => kind === 'command')?.attention).toBe(1 + before + 10)
    const newest = await list({ kinds: ['command'], q: 'uncertain', limit: 3 })
    expect(newest.map(({ settledAt }) => settledAt === null)).toEqual([true, false, false])
    const plan = await pool.any(sql.type(z.object({ 'QUERY PLAN': z.string() }))`
      explain (analyze, costs off, timing off, summary off)
      select a.kind, a.id from actor_archive a
      where a.organization_id = ${ours} and ${unsettledEnd} and a.kind = any(${sql.array([...kinds], 'text')}) and ${isInState(attention)}
      order by a.updated_at desc, a.id desc limit 51`)
    const text = plan.map((row) => row['QUERY PLAN']).join('\n')
    expect(text).toMatch(/Scan (?:using|on) actor_archive_unusual/)
    expect(text).not.toMatch(/Rows Removed by Filter: \d{2}/)
    await pool.query(sql.unsafe`delete from actor_archive where snapshot->>'value' = 'uncertain'`)
  })

  it('tells of work that waits how many wait before it, and whose places are taken', async () => {
    const wait = await readWait(fresh.db.pool, administrator, subscription('a0000000-0000-7000-8000-000000000004'))
    // Of the other organization's, how many places of which process, and nothing else.
    expect(wait).toMatchObject({ ahead: 1, requestSince: null })
    expect(wait?.taken).toEqual([
      { owner: 'host/1', taken: 2, ofLane: 1, ofDoubted: 0 },
      { owner: 'host/9', taken: 1, ofLane: 0, ofDoubted: 0 },
    ])
    const ofTimer = (overdueMs: number) =>
      fresh.db.pool.transaction(async (tx) => {
        const id = 'a0000000-0000-7000-8000-00000000000b'
        const due = sql.fragment`now() - ${overdueMs} * interval '1 millisecond'`
        await tx.query(sql.unsafe`update actor set wake_at = ${due} where kind = 'subscription' and id = ${id}`)
        const found = await readWait(tx, administrator, subscription(id))
        await tx.query(sql.unsafe`update actor set wake_at = null where kind = 'subscription' and id = ${id}`)
        return found
      })
    // A timer that rings is taken up within a second: one that is not waits like work.
    expect(await ofTimer(stuckAfterMs - 1)).toBeNull()
    expect(await ofTimer(stuckAfterMs)).toMatchObject({ taken: [{ owner: 'host/1' }, { owner: 'host/9' }] })
    // Places of who is not heard of any more are nobody's.
    await fresh.db.pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) values ('host/1', now() - interval '16 seconds', '{}')`)
    expect((await ofTimer(stuckAfterMs))?.taken).toMatchObject([{ owner: 'host/9' }])
    await fresh.db.pool.query(sql.unsafe`delete from process`)
    const held = 'a0000000-0000-7000-8000-000000000001'
    expect(await readWait(fresh.db.pool, administrator, subscription(held))).toBeNull()
    // Who let its lease run out has left it to others: it waits as what nobody had, and its own place is taken no more.
    await fresh.db.pool.transaction(async (tx) => {
      const lapse = (until: string) =>
        tx.query(sql.unsafe`
        update actor set lease_until = now() + ${until}::interval, wake_at = now() + ${until}::interval
        where kind = 'subscription' and id = ${held}`)
      const owners = async () =>
        (await readWait(tx, administrator, subscription(held)))?.taken.map(({ owner, taken }) => [owner, taken])
      await lapse('-1 minute')
      expect(await owners()).toEqual([
        ['host/1', 1],
        ['host/9', 1],
      ])
      await lapse('1 minute')
      expect(await owners()).toBeUndefined()
    })
    expect(
      await readWait(
        fresh.db.pool,
        { ...administrator, organizationId: theirs },
        subscription('a0000000-0000-7000-8000-000000000004'),
      ),
    ).toBeNull()
  })
})
