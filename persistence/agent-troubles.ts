/**
 * What stands in an agent's way, for reading: by the rows of the actors that ask it and follow its tasks, and of the commands that
 * it did not get. Every part looks at a bounded number of rows, by a primary key, by `task_unfinished` or by `actor_looks_of_agent`,
 * and is cut before anybody asks who may see them. Says nothing (domain/agent-troubles.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import { stuckAfterMs } from '../domain/patience.ts'
import {
  kindsWithPlaces,
  looksSearched,
  looksShown,
  unfollowedSearched,
  unfollowedShown,
  type AgentTroubles,
} from '../domain/agent-troubles.ts'
import { isOverdue } from '../domain/unread-agent.ts'
import type { Untaken } from '../domain/untaken.ts'
import { underWayPassed, underWaySearched } from '../domain/under-way.ts'
import { readFullPlaces, type AgentPlaces } from './agent-places.ts'
import { isInState, type AttentionState } from './actor-views.ts'
import { commandHeld } from './commands.ts'
import type { Connection } from './connection.ts'
import { failedOften, failingSince, isLeftBehind, isStreaming } from './failing.ts'
import { askedCommands, boundReached, newestAsked, type OpenSearch } from './open-commands.ts'
import { unfinished } from './reconciliation.ts'
import { taskHeld } from './task-views.ts'
import { readUntaken } from './untaken.ts'
import { held } from './visibility.ts'

const context = sql.fragment`a.snapshot->'context'`

/** One row without an id where nothing fails: that too is said of what was searched. */
type Found<Part> = { readonly searched: number } & (
  | { readonly id: null }
  | (Part & { readonly id: string; readonly count: number })
)

/** While somebody holds it, it is being tried; what is due and nobody holds is a time that has passed. */
const nextTry = sql.fragment`case when a.lease_until is null or a.lease_until <= now() then a.wake_at end`

type Look = AgentTroubles['looks']['scopes'][number]

/** Who holds a skill alone has nothing searched, as if there were nothing: the condition is one of the agent, not of a row. */
export const looksOf = (viewer: Viewer, agentId: string): FragmentSqlToken => sql.fragment`
  with looking as materialized (
    select a.id, a.kind, a.snapshot, a.lease_until, a.wake_at from actor a
    where a.kind = 'reconciliation' and a.lane = ${agentId} and a.organization_id = ${viewer.organizationId}
      and ${held(viewer, 'read', sql.fragment`${agentId}::uuid`, null)}
    limit ${looksSearched}
  ), failing as (
    select a.*, (count(*) over ())::int as count from looking a
    where ${failedOften} order by (${context}->>'failures')::int desc, a.id limit ${looksShown}
  )
  select bound.searched, a.id, a.count, ${context}->>'reason' as reason,
    ${failingSince} as since,
    ${nextTry} as "nextTryAt"
  from (select count(*)::int as searched from looking) bound left join failing a on true
  order by (${context}->>'failures')::int desc, a.id`

async function readLooks(db: Connection, viewer: Viewer, agentId: string): Promise<AgentTroubles['looks']> {
  const rows = await db.any(sql.type(z.custom<Found<Look>>())`${looksOf(viewer, agentId)}`)
  const failing = rows.filter((row) => row.id !== null)
  return {
    scopes: failing.map(({ count: _, searched: __, ...look }) => look),
    count: failing[0]?.count ?? 0,
    isWhole: rows.every(({ searched }) => searched < looksSearched),
  }
}

type Unfollowed = Omit<AgentTroubles['unfollowed']['tasks'][number], 'localId'>

/** Of `actor a`, a subscription: following does not work, or nobody does it, which its task's page says too. */
export const followsInVain = (attention: readonly AttentionState[]): FragmentSqlToken => sql.fragment`
  (${context}->>'reason' is not null and (${failedOften} and not ${isStreaming} or ${isInState(attention)})
    or ${isLeftBehind})`

export const unfollowedOf = (
  viewer: Viewer,
  agentId: string,
  attention: readonly AttentionState[],
): FragmentSqlToken => sql.fragment`
  with searched as materialized (
    select t.id, t.title, t.agent_id, t.skill_id from task t
    where t.agent_id = ${agentId} and t.organization_id = ${viewer.organizationId} and ${unfinished}
    order by t.agent_id desc, t.tenant desc, t.id desc limit ${unfollowedSearched}
  ), failing as (
    select t.title, a.id, a.kind, a.reason, a."nextTryAt", (count(*) over ())::int as count
    from searched t join lateral (
      select a.id, a.kind, case when not ${isLeftBehind} then ${context}->>'reason' end as reason, ${nextTry} as "nextTryAt" from actor a
      where a.kind = 'subscription' and a.id = t.id and ${followsInVain(attention)} limit 1) a on true
    where ${taskHeld(viewer, 'read')}
    order by a.id desc limit ${unfollowedShown}
  )
  select bound.searched, a.id, a.count, coalesce(a.title, '') as title, a.reason,
    ${failingSince} as since, a."nextTryAt"
  from (select count(*)::int as searched from searched) bound left join failing a on true
  order by a.id desc`

async function readUnfollowed(
  db: Connection,
  viewer: Viewer,
  agentId: string,
  attention: readonly AttentionState[],
): Promise<AgentTroubles['unfollowed']> {
  const rows = await db.any(sql.type(z.custom<Found<Unfollowed>>())`${unfollowedOf(viewer, agentId, attention)}`)
  const failing = rows.filter((row) => row.id !== null)
  return {
    tasks: failing.map(({ id, title, reason, since, nextTryAt }) => ({ localId: id, title, reason, since, nextTryAt })),
    count: failing[0]?.count ?? 0,
    isWhole: rows.every(({ searched }) => searched < unfollowedSearched),
  }
}

const Others = z.object({ count: z.number(), reached: z.boolean(), oldestAt: z.string().nullable() })

async function readOthers(db: Connection, viewer: Viewer, agentId: string): Promise<AgentTroubles['others']> {
  const { organizationId, userId } = viewer
  const search: OpenSearch = { organizationId, agentId, searched: underWaySearched, passed: underWayPassed }
  const stuck = sql.fragment`c.person_id <> ${userId}
    and c.created_at < now() - ${stuckAfterMs} * interval '1 millisecond' and ${commandHeld(viewer, 'read')}`
  const { count, reached, oldestAt } = await db.one(sql.type(Others)`
    with ${newestAsked(search)}
    select count(*)::int as count, min(open.created_at) as "oldestAt", ${boundReached(search)} as reached
    from ${askedCommands(sql.fragment`c.created_at`, stuck)}`)
  return { count, isWhole: !reached, oldestAt }
}

const Clock = z.object({ at: z.string(), cardReadAt: z.string().nullable() })

/** Null where none of these tries is due for longer than a worker needs. */
async function readLeft(
  db: Connection,
  of: AgentPlaces | undefined,
  tries: readonly { readonly nextTryAt: string | null }[],
  nowMs: number,
): Promise<Untaken | null> {
  const isLeft = tries.some(({ nextTryAt }) => nextTryAt !== null && isOverdue(nextTryAt, nowMs))
  return of !== undefined && isLeft ? readUntaken(db, of.kind, of.places) : null
}

/** `attention`: states that need a person, as the machines tag them. `places`: of every kind. */
export async function readAgentTroubles(
  db: Connection,
  viewer: Viewer,
  agentId: string,
  attention: readonly AttentionState[],
  places: readonly AgentPlaces[],
): Promise<AgentTroubles> {
  const { at, cardReadAt } = await db.one(sql.type(Clock)`
    select now() as at, (select max(s.last_seen_at) from agent_card s where s.agent_id = ${agentId}) as "cardReadAt"`)
  const looks = await readLooks(db, viewer, agentId)
  const unfollowed = await readUnfollowed(db, viewer, agentId, attention)
  const others = await readOthers(db, viewer, agentId)
  const waitedFor = places.filter(({ kind }) => kindsWithPlaces.includes(kind))
  const full = await readFullPlaces(db, viewer, agentId, waitedFor)
  const nowMs = Date.parse(at)
  const placesOf = (of: string) => places.find(({ kind }) => kind === of)
  return {
    at,
    looks: { ...looks, untaken: await readLeft(db, placesOf('reconciliation'), looks.scopes, nowMs) },
    unfollowed: { ...unfollowed, untaken: await readLeft(db, placesOf('subscription'), unfollowed.tasks, nowMs) },
    others,
    full,
    cardReadAt,
  }
}
