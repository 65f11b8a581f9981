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
import { shareOf } from '../domain/shares.ts'
import type { Connection } from './connection.ts'
import { isUnheld } from './leases.ts'
import { isHeardOf } from './processes.ts'
import { held } from './visibility.ts'

/** How much of a kind one process does at once, and at most for one agent. */
export interface AgentPlaces {
  readonly kind: string
  readonly places: number
  readonly perAgent: number
}

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
  const holding = await db.any(sql.type(Holding)`
    select a.kind, (count(*) filter (where a.lane = ${agentId}))::int as taken, count(*)::int as "takenByAll",
      min(a.work_started_at) filter (where a.lane = ${agentId} and a.work = 'deliver') as since
    from actor a
    where a.kind = any(${sql.array(
      places.map(({ kind }) => kind),
      'text',
    )})
      and a.wake_at is not null and a.lease_until > now()
      and ${isHeardOf(sql.fragment`a.lease_owner`)}
      and ${held(viewer, 'read', sql.fragment`${agentId}::uuid`, null)}
    group by a.kind, a.lease_owner`)
  const full = places.flatMap((of) =>
    fullOf(
      of,
      holding.filter(({ kind }) => kind === of.kind),
    ),
  )
  if (full.length === 0) return []
  const rows = await db.any(sql.type(z.custom<AgentTroubles['full'][number]>())`
    select f.kind, f.taken, f.places, w.waiting, w."oldestDueAt", f.since as "requestSince"
    from ${sql.unnest(full, ['text', 'int4', 'int4', 'timestamptz'])} as f(kind, taken, places, since) cross join lateral (
      select count(*)::int as waiting, min(due.wake_at) as "oldestDueAt" from (
        select a.lane, a.wake_at from actor a
        where a.kind = f.kind and a.wake_at <= now() and a.organization_id = ${viewer.organizationId} and a.work is not null
          and ${isUnheld(sql.fragment`a`)}
        order by a.wake_at limit ${queueCountLimit}) due
      where due.lane = ${agentId}) w
    where w."oldestDueAt" < now() - ${stuckAfterMs} * interval '1 millisecond'
    order by f.kind`)
  return [...rows]
}

/** What one process holds of a kind. `taken`: for the agent. */
const Holding = z.object({
  kind: z.string(),
  taken: z.number(),
  takenByAll: z.number(),
  since: z.string().nullable(),
})

/**
 * Of a kind, what all processes hold for the agent, of how many places, and since when at the longest: of its own, or of all where others
 * have those that it might have. Nothing where one of them has room for it, or none runs.
 */
function fullOf(
  { kind, places, perAgent }: AgentPlaces,
  holding: readonly z.infer<typeof Holding>[],
): [kind: string, taken: number, places: number, since: string | null][] {
  const isOwnFull = ({ taken, takenByAll }: z.infer<typeof Holding>) =>
    taken >= shareOf({ places, perAgent, taken: takenByAll })
  const isFull = holding.every((each) => each.takenByAll >= places || isOwnFull(each))
  if (holding.length === 0 || !isFull) return []
  const taken = holding.reduce((sum, each) => sum + each.taken, 0)
  const wanted = holding.reduce((sum, each) => sum + (isOwnFull(each) ? each.taken : each.takenByAll), 0)
  const [since = null] = holding.flatMap((each) => each.since ?? []).toSorted()
  return [[kind, taken, wanted, since]]
}
