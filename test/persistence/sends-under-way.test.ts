/** A person's own sends among very many: which they are, and that what is over is not read for them. */
import { sql } from 'slonik'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listSendsUnderWay, sendsUnderWay, type UnderWayFilter } from '../../persistence/sends-under-way.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { rowsRead } from '../support/rows-read.ts'
import { administratorOf } from '../support/viewers.ts'

const ours = '00000000-0000-7000-8000-00000000000a'
const agents = ['a0000000-0000-7000-8000-000000000000', 'a0000000-0000-7000-8000-000000000001'] as const
const finished = 40_000
const open = 5_000
const viewer = administratorOf(ours)
const idOf = (n: number): string =>
  `${'0'.repeat(24)}${n.toString(16).padStart(8, '0')}`.replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

let fresh: FreshDatabase
const filter = { agentId: null, searched: 2_000, passed: 4_000, limit: 3 }
const list = (more: Partial<UnderWayFilter> = {}) => listSendsUnderWay(fresh.db.pool, viewer, { ...filter, ...more })

beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
  const { pool } = fresh.db
  await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${ours}, 'ours', 'Ours')`)
  for (const [n, id] of agents.entries())
    await pool.query(sql.unsafe`
      insert into agent (id, organization_id, card_url, source, name) values (${id}, ${ours}, ${`http://agent.example/${n}`}, 'managed', ${`Agent ${n}`})`)
  await pool.query(sql.unsafe`
    insert into person (id, display_name) select lpad(to_hex(n), 32, '0')::uuid, 'Somebody' from generate_series(0, 99) n`)
  // The newest are open; every hundredth is the viewer's, and the agents take turns by the hundred.
  await pool.query(sql.unsafe`
    insert into command (id, organization_id, agent_id, person_id, idempotency_key, content_digest, action, tenant, message_id, title,
      body, status, created_at, updated_at)
    select lpad(to_hex(n), 32, '0')::uuid, ${ours}, (array[${agents[0]}, ${agents[1]}]::uuid[])[1 + n / 100 % 2],
      case when n % 100 = 0 then ${ours}::uuid else lpad(to_hex(n % 100), 32, '0')::uuid end, 'k' || n, md5(n::text), 'send', '',
      'm' || n, 'Number ' || n, '{}', case when n <= ${finished} then 'succeeded' else 'pending' end, '2026-01-01'::timestamptz + n * interval '1 second', now()
    from generate_series(1, ${finished + open}) n`)
  await pool.query(sql.unsafe`
    insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, timers, created_at, updated_at)
    select 'command', id, organization_id, agent_id, '1', 1, '{"value": {"pending": "discovering"}, "context": {}, "status": "active"}', '{}', created_at, updated_at
    from command where status = 'pending'`)
  // With these numbers known the planner has reasons to walk through everything.
  await pool.query(sql.unsafe`analyze`)
})
afterAll(() => fresh.close())

it('are told the oldest first, with how many there are among the newest, and that older ones may be behind', async () => {
  const { sends, count, isWhole } = await list()
  expect(sends.map(({ id }) => id)).toEqual([43_100, 43_200, 43_300].map(idOf))
  expect(sends[0]).toEqual({
    id: idOf(43_100),
    agentId: agents[1],
    agentName: 'Agent 1',
    action: 'send',
    status: 'pending',
    title: 'Number 43100',
    createdAt: expect.any(String),
  })
  expect([count, isWhole]).toEqual([20, false])
  expect(await list({ searched: 6_000 })).toMatchObject({ count: 50, isWhole: true })
  const nobody = { ...viewer, userId: '00000000-0000-7000-8000-00000000000b' }
  expect(await listSendsUnderWay(fresh.db.pool, nobody, filter)).toEqual({ sends: [], count: 0, isWhole: false })
})

it('to one agent are found behind those to others, as far as these are passed over', async () => {
  expect(await list({ agentId: agents[0], passed: 6_000, searched: 6_000 })).toMatchObject({ count: 25, isWhole: true })
  const near = await list({ agentId: agents[0] })
  expect(near.sends.every(({ agentId }) => agentId === agents[0])).toBe(true)
  expect([near.count, near.isWhole]).toEqual([20, false])
  expect(await list({ agentId: ours, passed: 6_000 })).toEqual({ sends: [], count: 0, isWhole: true })
})

it.each([
  ['administrator', null],
  ['operator', null],
  ['administrator', agents[0]],
] as const)('are read without what is over: for an %s, to %s', async (role, agentId) => {
  const who = { ...viewer, role: role === 'operator' ? role : 'admin' } as const
  const { command: read } = await rowsRead(fresh.db, sendsUnderWay(who, { ...filter, agentId }))
  // Averages of loops are rounded, by one row a loop at the most.
  expect(read).toBeGreaterThan(0)
  expect(read).toBeLessThanOrEqual(filter.searched * 2)
})
