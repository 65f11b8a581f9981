/** What stands in an agent's way among very much: how far it is looked for, that who sees a part is told no more, and what is read for it. */
import { sql, type FragmentSqlToken } from 'slonik'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Viewer } from '../../domain/access.ts'
import { looksSearched, looksShown, unfollowedSearched } from '../../domain/agent-troubles.ts'
import { shareOf } from '../../domain/shares.ts'
import { readFullPlaces } from '../../persistence/agent-places.ts'
import { looksOf, readAgentTroubles, unfollowedOf } from '../../persistence/agent-troubles.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { rowsRead } from '../support/rows-read.ts'
import { administratorOf } from '../support/viewers.ts'

const ours = '00000000-0000-7000-8000-00000000000a'
const theirs = '00000000-0000-7000-8000-00000000000b'
const [crowded, well, small] = [
  'a0000000-0000-7000-8000-000000000000',
  'a0000000-0000-7000-8000-000000000001',
  'a0000000-0000-7000-8000-000000000002',
] as const
const administrator = administratorOf(ours)
/** Holds one skill of every agent, and no agent. */
const clerk: Viewer = { ...administrator, membershipId: '00000000-0000-7000-8000-0000000000cc', role: 'operator' }
const each = 2_500
const elsewhere = 20_000

let fresh: FreshDatabase
const troublesOf = (agentId: string, viewer = administrator) =>
  readAgentTroubles(fresh.db.pool, viewer, agentId, [{ kind: 'subscription', state: '"stopped"' }], [])

/** Tasks `0…2500` of one agent; every tenth cannot be followed, and of the newest of all two that are the clerk's. */
const tasksOf = (agentId: string, digit: string, failures: number) => sql.unsafe`
  with made as (
    insert into task (id, organization_id, agent_id, tenant, remote_id, kind, skill_id, title, state, version, events, created_at, updated_at)
    select (${digit} || lpad(to_hex(n), 31, '0'))::uuid, ${ours}, ${agentId}, '', 'r' || n, 'task',
      case when n in (100, 200, 2480, 2490) then 'invoices' when n % 2 = 0 then 'payroll' end, 'Number ' || n, 'TASK_STATE_WORKING', 1, 1, now(), now()
    from generate_series(1, ${each}) n returning id, remote_id)
  insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, timers, created_at, updated_at)
  select 'subscription', id, ${ours}, ${agentId}, '1', 1, jsonb_build_object('value', 'backingOff', 'status', 'active', 'context',
    jsonb_build_object('failures', case when remote_id like '%0' then ${failures}::int else 1 end, 'reason', 'No answer')), '{}', now(), now()
  from made`

beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
  const { pool } = fresh.db
  for (const [id, slug] of [
    [ours, 'ours'],
    [theirs, 'theirs'],
  ] as const)
    await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${id}, ${slug}, ${slug})`)
  for (const id of [crowded, well, small]) {
    await pool.query(sql.unsafe`
      insert into agent (id, organization_id, card_url, source, name, routes_skills)
      values (${id}, ${ours}, ${`http://agent.example/${id}`}, 'managed', 'Agent', true)`)
    await pool.query(sql.unsafe`
      insert into access_grant (id, organization_id, agent_id, skill_id, subject_type, subject_id, permission)
      values (gen_random_uuid(), ${ours}, ${id}, 'invoices', 'membership', ${clerk.membershipId}, 'read')`)
  }
  await pool.query(tasksOf(crowded, 'c', 2))
  await pool.query(tasksOf(well, 'd', 1))
  // Every tenant of the crowded agent is asked for and fails, and so are many tenants of agents of another organization.
  await pool.query(sql.unsafe`
    insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, timers, created_at, updated_at)
    select 'reconciliation', md5(n::text)::uuid, case when n <= ${each} then ${ours}::uuid else ${theirs}::uuid end,
      case when n <= ${each} then ${crowded}::uuid else md5((n % 500)::text)::uuid end, '1', 1,
      jsonb_build_object('value', 'pausing', 'status', 'active', 'context', jsonb_build_object('failures', 2 + n % 50, 'reason', 'No answer')), '{}', now(), now()
    from generate_series(1, ${each + elsewhere}) n`)
  await pool.query(sql.unsafe`analyze`)
})
afterAll(() => fresh.close())

it('is looked for among the newest, and said to be more than that', async () => {
  const { looks, unfollowed } = await troublesOf(crowded)
  expect([looks.scopes.length, looks.count, looks.isWhole]).toEqual([looksShown, looksSearched, false])
  expect(unfollowed.tasks.map(({ title }) => title)).toEqual(['Number 2500', 'Number 2490', 'Number 2480'])
  expect([unfollowed.count, unfollowed.isWhole]).toEqual([unfollowedSearched / 10, false])
})

it('is not said to be nothing where nothing of it was among what was searched', async () => {
  expect(await troublesOf(well)).toMatchObject({
    looks: { scopes: [], count: 0, isWhole: true },
    unfollowed: { tasks: [], count: 0, isWhole: false },
  })
  expect(await troublesOf(small)).toMatchObject({ unfollowed: { tasks: [], count: 0, isWhole: true } })
})

it('is told to who holds one skill by its own tasks, and by nothing of the agent as a whole', async () => {
  const { looks, unfollowed } = await troublesOf(crowded, clerk)
  expect(looks).toEqual({ scopes: [], count: 0, isWhole: true, untaken: null })
  expect(unfollowed.tasks.map(({ title }) => title)).toEqual(['Number 2490', 'Number 2480'])
  // Two more of theirs are behind what was searched.
  expect([unfollowed.count, unfollowed.isWhole]).toEqual([2, false])
})

describe('an agent’s places', () => {
  const places = [{ kind: 'command', places: 16, perAgent: 4 }]
  const full = (viewer = administrator) => readFullPlaces(fresh.db.pool, viewer, small, places)
  /** What one process does for an agent, or what waits where nobody does it. */
  const rowsOf = (agentId: string, owner: string | null, count: number) =>
    fresh.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        lease_token, lease_owner, lease_until, created_at, updated_at)
      select 'command', gen_random_uuid(), ${ours}, ${agentId}, '1', 1, '{"value": "dispatching", "context": {}, "status": "active"}',
        'deliver', case when ${owner}::text is not null then now() end, '{}',
        case when ${owner}::text is null then now() - interval '1 minute' else now() + interval '1 minute' end,
        case when ${owner}::text is not null then gen_random_uuid() end, ${owner},
        case when ${owner}::text is not null then now() + interval '1 minute' end, now(), now()
      from generate_series(1, ${count})`)
  afterEach(() => fresh.db.pool.query(sql.unsafe`delete from actor where kind = 'command'`))

  it('are all taken where every process that is heard of does as much for it as it may, and more waits', async () => {
    await rowsOf(small, 'a', 4)
    await rowsOf(small, 'b', 4)
    expect(await full()).toEqual([])
    await rowsOf(small, null, 2)
    expect(await full()).toMatchObject([{ kind: 'command', taken: 8, places: 8, waiting: 2 }])
    // Who holds one skill is told of their own sends, and of nothing of the agent as a whole.
    expect(await full(clerk)).toEqual([])
    await fresh.db.pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) values ('b', now() - interval '20 seconds', '{}')`)
    expect(await full()).toMatchObject([{ taken: 4, places: 4 }])
  })

  it('are fewer where others take so many that a third of what is free is less than it may ever have', async () => {
    await rowsOf(small, 'a', 2)
    await rowsOf(crowded, 'a', 7)
    await rowsOf(small, null, 1)
    // Of sixteen nine are taken: two for each.
    expect(await full()).toMatchObject([{ taken: 2, places: 2, waiting: 1 }])
    expect(shareOf({ places: 16, perAgent: 4, taken: 9 })).toBe(2)
    await fresh.db.pool.query(sql.unsafe`delete from actor where kind = 'command' and id in (
      select id from actor where kind = 'command' and lane = ${crowded} limit 3)`)
    expect(await full()).toEqual([])
  })

  it('are others’ where one agent may have all, and those have them', async () => {
    const streams = [{ kind: 'command', places: 8, perAgent: 8 }]
    await rowsOf(small, 'a', 1)
    await rowsOf(crowded, 'a', 6)
    await rowsOf(small, null, 3)
    const told = () => readFullPlaces(fresh.db.pool, administrator, small, streams)
    expect(await told()).toEqual([])
    await rowsOf(crowded, 'a', 1)
    expect(await told()).toMatchObject([{ taken: 1, places: 8, waiting: 3 }])
  })

  it('are not wanting where one process has room for it', async () => {
    await rowsOf(small, 'a', 4)
    await rowsOf(crowded, 'c', 1)
    await rowsOf(small, null, 1)
    expect(await full()).toEqual([])
  })
})

/** How many rows of a table were looked at. */
const readFor = async (query: FragmentSqlToken, table: string): Promise<number> =>
  (await rowsRead(fresh.db, query))[table] ?? 0

it.each([
  ['an administrator', administrator, looksSearched],
  ['who holds one skill', clerk, 0],
] as const)('is read without what is others’ and without all there is: for %s', async (_, viewer, most) => {
  expect(await readFor(looksOf(viewer, crowded), 'actor')).toBe(most)
  const unfollowed = unfollowedOf(viewer, crowded, [])
  expect(await readFor(unfollowed, 'task')).toBe(unfollowedSearched)
  // Averages of loops are rounded, by one row a loop at the most.
  expect(await readFor(unfollowed, 'actor')).toBeLessThanOrEqual(2 * unfollowedSearched)
})
