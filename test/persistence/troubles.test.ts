/** Where troubles are among very much: which agents are marked and which tasks told, to whom, and how much is read for it. */
import { sql } from 'slonik'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Viewer } from '../../domain/access.ts'
import {
  followedSearched,
  looksOfEach,
  tasksOfEach,
  troubledSearched,
  unfollowedListed,
} from '../../domain/troubles.ts'
import { readTroubledAgents, readUnfollowedTasks, troubledAgents, unfollowedTasks } from '../../persistence/troubles.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { rowsRead } from '../support/rows-read.ts'
import { administratorOf } from '../support/viewers.ts'

const ours = '00000000-0000-7000-8000-00000000000a'
const theirs = '00000000-0000-7000-8000-00000000000b'
const administrator = administratorOf(ours)
/** Holds one skill of every agent, and no agent. */
const clerk: Viewer = { ...administrator, membershipId: '00000000-0000-7000-8000-0000000000cc', role: 'operator' }
const stranger = administratorOf(theirs)
const agents = 200
const ofEach = 100
const attention = [{ kind: 'subscription', state: '"stopped"' }]
const agentOf = (n: number): string => `a0000000-0000-7000-8000-${String(n).padStart(12, '0')}`
/** The newest tasks are the last agent's. */
const taskOf = (agent: number, n: number): string =>
  `c0000000-0000-7000-8000-${String(agent * 1000 + n).padStart(12, '0')}`

let fresh: FreshDatabase
const marksOf = async (viewer = administrator) =>
  Object.fromEntries(
    (await readTroubledAgents(fresh.db.pool, viewer, attention)).agents.map(({ agentId, troubles }) => [
      Number(agentId.slice(-12)),
      troubles,
    ]),
  )

/** A task's following has failed for so many seconds, by its log. */
async function fail(task: string, forS: number): Promise<void> {
  await fresh.db.pool.query(sql.unsafe`
    update actor set snapshot = '{"value": "backingOff", "status": "active", "context": {"failures": 6, "reason": "No answer"}}' where id = ${task}`)
  await fresh.db.pool.query(sql.unsafe`
    insert into actor_log (actor_id, kind, revision, machine_version, event, value, facts, cause, at, batch_id)
    values (${task}, 'subscription', 1, '1', '{"type":"done"}', '"backingOff"', array['subscription.failing'], 'worker',
      now() - ${forS} * interval '1 second', gen_random_uuid())`)
}

const send = (n: number, agent: number, skill: string | null, status: string) => sql.unsafe`
  with made as (
    insert into command (id, organization_id, agent_id, person_id, idempotency_key, content_digest, action, tenant, message_id, title,
      body, skill_id, status, created_at, updated_at, unsettled_at)
    values (${`d0000000-0000-7000-8000-${String(n).padStart(12, '0')}`}, ${ours}, ${agentOf(agent)}, ${ours}, ${`k${n}`}, 'digest', 'send', '',
      ${`m${n}`}, 'Words', '{}', ${skill}, ${status}, now() - interval '1 minute', now(), case when ${status} = 'uncertain' then now() end)
    returning id)
  insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, timers, created_at, updated_at)
  select 'command', id, ${ours}, ${agentOf(agent)}, '1', 1, '{"value": {"pending": "waiting"}, "context": {}, "status": "active"}', '{}', now(), now()
  from made where ${status} = 'pending'`

beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
  const { pool } = fresh.db
  for (const id of [ours, theirs])
    await pool.query(sql.unsafe`insert into organization (id, slug, name) values (${id}, ${id}, 'Somebody')`)
  await pool.query(sql.unsafe`
    insert into agent (id, organization_id, card_url, source, name, routes_skills)
    select ('a0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${ours}, 'http://agent.example/' || n, 'managed', 'Agent', true
    from generate_series(1, ${agents}) n`)
  await pool.query(sql.unsafe`
    insert into access_grant (id, organization_id, agent_id, skill_id, subject_type, subject_id, permission)
    select gen_random_uuid(), ${ours}, id, 'invoices', 'membership', ${clerk.membershipId}, 'read' from agent`)
  await pool.query(sql.unsafe`
    insert into task (id, organization_id, agent_id, tenant, remote_id, kind, skill_id, title, state, version, events, created_at, updated_at)
    select ('c0000000-0000-7000-8000-' || lpad((a * 1000 + n)::text, 12, '0'))::uuid, ${ours},
      ('a0000000-0000-7000-8000-' || lpad(a::text, 12, '0'))::uuid, '', 'r' || n, 'task', case when n = 99 then 'invoices' end,
      'Number ' || n, 'TASK_STATE_WORKING', 1, 1, now(), now()
    from generate_series(1, ${agents}) a, generate_series(1, ${ofEach}) n`)
  await pool.query(sql.unsafe`
    insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, timers, created_at, updated_at)
    select 'subscription', id, organization_id, agent_id, '1', 1, '{"value": "following", "status": "active", "context": {"failures": 0, "reason": null}}',
      '{}', now() - interval '1 hour', now() from task`)
  await pool.query(sql.unsafe`
    insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, timers, created_at, updated_at)
    select 'reconciliation', gen_random_uuid(), ${ours}, id, '1', 1,
      jsonb_build_object('value', 'pausing', 'status', 'active', 'context', jsonb_build_object('failures', case when id = ${agentOf(1)} then 2 else 1 end, 'reason', 'No')),
      '{}', now(), now() from agent`)
  await fail(taskOf(2, 100), 1)
  await fail(taskOf(2, 99), 1)
  await fail(taskOf(3, 100), 1)
  await pool.query(send(1, 2, null, 'uncertain'))
  await pool.query(send(2, 4, 'invoices', 'uncertain'))
  await pool.query(send(3, 5, 'invoices', 'pending'))
  await pool.query(send(4, 6, null, 'pending'))
  await pool.query(send(5, 7, null, 'succeeded'))
  await pool.query(sql.unsafe`analyze`)
})
afterAll(() => fresh.close())

it('marks the agents that have any trouble, and says of which sorts', async () => {
  expect(await marksOf()).toEqual({
    1: ['unread'],
    2: ['unfollowed', 'unsettled'],
    3: ['unfollowed'],
    4: ['unsettled'],
    5: ['undelivered'],
    6: ['undelivered'],
  })
})

it('tells who holds one skill by what is of it alone, and another organization nothing', async () => {
  expect(await marksOf(clerk)).toEqual({ 2: ['unfollowed'], 4: ['unsettled'], 5: ['undelivered'] })
  expect(await marksOf(stranger)).toEqual({})
  expect(await readUnfollowedTasks(fresh.db.pool, stranger, attention)).toEqual({ tasks: [], more: false })
})

it('tells of the tasks that are not followed for long, the newest first, and not of what only failed', async () => {
  const { pool } = fresh.db
  const told = async (viewer = administrator) => readUnfollowedTasks(pool, viewer, attention)
  expect(await told()).toEqual({ tasks: [], more: false })
  const [lone, skilled, other] = [taskOf(agents, 98), taskOf(agents, 99), taskOf(agents - 1, 1)]
  await fail(lone, 90)
  await fail(skilled, 90)
  await fail(taskOf(agents, 97), 30)
  await pool.query(
    sql.unsafe`update actor set snapshot = jsonb_set(snapshot, '{value}', '"stopped"') where id = ${other}`,
  )
  expect((await told()).tasks).toEqual([
    { localId: skilled, title: 'Number 99' },
    { localId: lone, title: 'Number 98' },
    { localId: other, title: 'Number 1' },
  ])
  expect(await told(clerk)).toEqual({ tasks: [{ localId: skilled, title: 'Number 99' }], more: false })
  await pool.query(sql.unsafe`update agent set enabled = false where id = ${agentOf(agents - 1)}`)
  expect((await told()).tasks.map(({ localId }) => localId)).toEqual([skilled, lone])
  for (let n = 1; n < unfollowedListed; n += 1) await fail(taskOf(agents, n), 90)
  const many = await told()
  expect([many.tasks.length, many.more]).toEqual([unfollowedListed, true])
})

it('tells of tasks that are due where nobody works, and of none that merely waits for its turn', async () => {
  const { pool } = fresh.db
  const [due, justDue, held, lapsed] = [61, 62, 63, 64].map((n) => taskOf(agents - 2, n)) as [
    string,
    string,
    string,
    string,
  ]
  const of = async () => {
    const { tasks } = await readUnfollowedTasks(pool, administrator, attention)
    const left = tasks.map(({ localId }) => localId).filter((id) => [due, justDue, held, lapsed].includes(id))
    return { left, marked: (await marksOf())[agents - 2] ?? [] }
  }
  const wake = (id: string, dueS: number, leaseS: number | null) =>
    pool.query(sql.unsafe`
      update actor set wake_at = now() - ${dueS} * interval '1 second', work = 'follow',
        lease_until = now() + ${leaseS} * interval '1 second', lease_owner = ${leaseS === null ? null : 'silent'},
        lease_token = ${leaseS === null ? null : due}::uuid
      where id = ${id}`)
  await pool.query(sql.unsafe`
    update actor set snapshot = jsonb_set(snapshot, '{context,failures}', '0') where kind = 'subscription'`)
  await wake(due, 11, null)
  await wake(justDue, 9, null)
  await wake(held, -15, 15)
  await wake(lapsed, 11, -11)
  const heard = (owner: string, value: string, ageS: number) =>
    pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) values (${owner}, now() - ${ageS} * interval '1 second',
        ${sql.jsonb({ supervisor: { value }, process: { works: owner !== 'web' } })})`)
  // Who is alone on a database tells nobody of itself.
  expect(await of()).toEqual({ left: [], marked: [] })
  await heard('web', 'running', 1)
  await heard('silent', 'running', 16)
  await heard('leaving', 'draining', 1)
  expect(await of()).toEqual({ left: [lapsed, due], marked: ['unfollowed'] })
  await pool.query(sql.unsafe`update task set state = 'TASK_STATE_COMPLETED' where id = ${lapsed}`)
  expect(await of()).toEqual({ left: [due], marked: ['unfollowed'] })
  await heard('worker', 'running', 14)
  expect(await of()).toEqual({ left: [], marked: [] })
  await pool.query(sql.unsafe`delete from process`)
  await pool.query(sql.unsafe`update actor set wake_at = null`)
})

it.each([
  ['an administrator', administrator],
  ['who holds one skill', clerk],
] as const)('is read without all there is: for %s', async (_, viewer) => {
  expect(agents).toBeLessThan(troubledSearched)
  const marks = await rowsRead(fresh.db, troubledAgents(viewer, attention))
  // Averages of loops are rounded, by one row a loop at the most.
  expect(marks['task']).toBeLessThanOrEqual(agents * (tasksOfEach + 1))
  expect(marks['actor']).toBeLessThanOrEqual(agents * (2 * tasksOfEach + looksOfEach))
  const tasks = await rowsRead(fresh.db, unfollowedTasks(viewer, attention))
  expect(tasks['actor']).toBeLessThanOrEqual(followedSearched)
  expect(tasks['task']).toBeLessThanOrEqual(2 * followedSearched)
})
