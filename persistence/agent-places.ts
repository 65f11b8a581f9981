/**
 * Which of an agent's places are all taken while more waits for one, for reading: by leases, as claims see them. Does not decide who
 * gets a place (actors/loop/room.ts) and says nothing (domain/agent-troubles.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { AgentTroubles } from '../domain/agent-troubles.ts'
import { stuckAfterMs } from '../domain/patience.ts'
import { queueCountLimit } from '../domain/queue.ts'
import type { Connection } from './connection.ts'
import { isHeardOf } from './processes.ts'
import { held } from './visibility.ts'

/** How much of a kind one process does at once, and at most for one agent. */
export interface AgentPlaces {
  readonly kind: string
  readonly places: number
  readonly perAgent: number
}

/** In the database's words what domain/shares.ts says: `h` is what one process holds, `limits` its places. */
const share = sql.fragment`
  case when limits.most >= limits.places then limits.most else greatest(1, least(limits.most, (limits.places - h.taken_by_all) / 3)) end`

/**
 * To who holds the whole agent, for the places are of the agent and not of a task. Who waits for a moment waits for a worker to look;
 * and where any process has room for the agent, it is not its places that are wanting.
 */
export async function readFullPlaces(
  db: Connection,
  viewer: Viewer,
  agentId: string,
  places: readonly AgentPlaces[],
): Promise<AgentTroubles['full']> {
  const { organizationId } = viewer
  const rows = await db.any(sql.type(z.custom<AgentTroubles['full'][number]>())`
    with holding as (
      select a.kind, (count(*) filter (where a.lane = ${agentId}))::int as taken, count(*)::int as taken_by_all,
        min(a.work_started_at) filter (where a.lane = ${agentId} and a.work = 'deliver') as since
      from actor a
      where a.kind = any(${sql.array(
        places.map(({ kind }) => kind),
        'text',
      )})
        and a.wake_at is not null and a.lease_until > now()
        and ${isHeardOf(sql.fragment`a.lease_owner`)}
        and ${held(viewer, 'read', sql.fragment`${agentId}::uuid`, null)}
      group by a.kind, a.lease_owner
    ), taken as (
      select h.kind, sum(h.taken)::int as taken, sum(greatest(h.taken, ${share}))::int as places, min(h.since) as since
      from holding h join ${sql.unnest(
        places.map(({ kind, places: all, perAgent }) => [kind, all, perAgent]),
        ['text', 'int4', 'int4'],
      )} as limits(kind, places, most) on limits.kind = h.kind
      group by h.kind having bool_and(h.taken >= ${share})
    )
    select f.kind, f.taken, f.places, w.waiting, w."oldestDueAt", f.since as "requestSince"
    from taken f cross join lateral (
      select count(*)::int as waiting, min(due.wake_at) as "oldestDueAt" from (
        select a.lane, a.wake_at from actor a
        where a.kind = f.kind and a.wake_at <= now() and a.organization_id = ${organizationId} and a.work is not null
          and (a.lease_until is null or a.lease_until <= now())
        order by a.wake_at limit ${queueCountLimit}) due
      where due.lane = ${agentId}) w
    where w."oldestDueAt" < now() - ${stuckAfterMs} * interval '1 millisecond'
    order by f.kind`)
  return [...rows]
}
