/**
 * A person's own sends that are not delivered yet, for reading. Does not know how they ended (unsettled-sends.ts) and says nothing
 * (domain/under-way.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { UnderWaySend } from '../domain/under-way.ts'
import { commandHeld } from './commands.ts'
import type { Connection } from './connection.ts'
import { askedCommands, boundReached, newestAsked, type OpenSearch } from './open-commands.ts'
import { aboutTask } from './unsettled-sends.ts'

export interface UnderWayFilter extends Omit<OpenSearch, 'organizationId'> {
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
 * The viewer's own, the oldest first. With 100,000 finished and 20,000 open commands of 200 people and 20 agents, PostgreSQL 18
 * answers in 4 ms (10,000 pages, all in memory), to one agent in 5 to 8 ms; without the limit of open-commands.ts in 78 ms, which
 * grew with history.
 */
export function sendsUnderWay(viewer: Viewer, { limit, ...bounds }: UnderWayFilter): FragmentSqlToken {
  const search = { organizationId: viewer.organizationId, ...bounds }
  const columns = sql.fragment`c.id, c.agent_id, c.action, c.status, c.title, c.tenant, c.remote_task_id, c.created_at`
  const own = sql.fragment`c.person_id = ${viewer.userId} and ${commandHeld(viewer, 'read')}`
  return sql.fragment`
    with ${newestAsked(search)}, own as (
      select open.*, (count(*) over ())::int as count from ${askedCommands(columns, own)}
      order by open.created_at, open.id limit ${limit}
    )
    select bound.reached, c.id, c.agent_id as "agentId", a.name as "agentName", c.action, c.status,
      coalesce(c.title, t.title, '') as title, c.created_at as "createdAt", c.count
    from (select ${boundReached(search)} as reached) bound
    left join own c on true left join agent a on a.id = c.agent_id ${aboutTask}
    order by c.created_at, c.id`
}

export async function listSendsUnderWay(db: Connection, viewer: Viewer, filter: UnderWayFilter): Promise<UnderWay> {
  const rows = await db.any(sql.type(z.custom<Row>())`${sendsUnderWay(viewer, filter)}`)
  const own = rows.filter((row) => row.id !== null)
  return {
    sends: own.map(({ reached: _, count: __, ...send }) => send),
    count: own[0]?.count ?? 0,
    isWhole: rows.every(({ reached }) => !reached),
  }
}
