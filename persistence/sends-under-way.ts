/**
 * A person's own sends that are not delivered yet, for reading. Does not know how they ended (unsettled-sends.ts) and says nothing
 * (domain/under-way.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { UnderWaySend } from '../domain/under-way.ts'
import { commandHeld } from './commands.ts'
import type { Connection } from './connection.ts'
import { aboutTask } from './unsettled-sends.ts'

export interface UnderWayFilter {
  /** Only those to this agent; null: to any. */
  readonly agentId: string | null
  /** Looked for among so many open commands, to this agent if one is asked for: the newest. */
  readonly searched: number
  /** And these among so many to all agents. */
  readonly passed: number
  readonly limit: number
}

interface UnderWay {
  readonly sends: readonly UnderWaySend[]
  /** Of all of them, however many are listed. */
  readonly count: number
  /** There are no older ones behind what was searched. */
  readonly isWhole: boolean
}

/** `reached`: whether either bound was. One row without a send where there is none. */
type Row = { readonly reached: boolean } & (
  | { readonly id: null }
  | (UnderWaySend & { readonly id: string; readonly count: number })
)

/**
 * The viewer's own, the oldest first. Open commands are the live actors of their kind, whose ids grow with time and whose lane is
 * their agent: read by the primary key from the newest on, and each one's row by its own. No index knows a command's status
 * (migration 11). The limit inside `lateral` is no limit, for a key has one row: without it the planner, who takes a sixth of the
 * commands for open, walked through all that ever were.
 *
 * With 100,000 finished and 20,000 open commands of 200 people and 20 agents, PostgreSQL 18 answers in 4 ms (10,000 pages, all in
 * memory), to one agent in 5 to 8 ms; without that limit in 78 ms, which grew with history.
 */
export const sendsUnderWay = (viewer: Viewer, { agentId, searched, passed, limit }: UnderWayFilter) => sql.fragment`
  with newest as materialized (
    select id, lane from actor where kind = 'command' and organization_id = ${viewer.organizationId}
    order by id desc limit ${agentId === null ? searched : passed}
  ), asked as materialized (
    select id from newest where ${agentId === null ? sql.fragment`true` : sql.fragment`lane = ${agentId}`}
    order by id desc limit ${searched}
  ), own as (
    select open.*, (count(*) over ())::int as count
    from asked join lateral (
      select c.id, c.agent_id, c.action, c.status, c.title, c.tenant, c.remote_task_id, c.created_at from command c
      where c.id = asked.id and c.person_id = ${viewer.userId} and c.status in ('pending', 'dispatching')
        and ${commandHeld(viewer, 'read')} limit 1) open on true
    order by open.created_at, open.id limit ${limit}
  )
  select bound.reached, c.id, c.agent_id as "agentId", a.name as "agentName", c.action, c.status,
    coalesce(c.title, t.title, '') as title, c.created_at as "createdAt", c.count
  from (
    select (select count(*) from asked) >= ${searched}
      or (select count(*) from newest) >= ${agentId === null ? searched : passed} as reached) bound
  left join own c on true left join agent a on a.id = c.agent_id ${aboutTask}
  order by c.created_at, c.id`

export async function listSendsUnderWay(db: Connection, viewer: Viewer, filter: UnderWayFilter): Promise<UnderWay> {
  const rows = await db.any(sql.type(z.custom<Row>())`${sendsUnderWay(viewer, filter)}`)
  const own = rows.filter((row) => row.id !== null)
  return {
    sends: own.map(({ reached: _, count: __, ...send }) => send),
    count: own[0]?.count ?? 0,
    isWhole: rows.every(({ reached }) => !reached),
  }
}
