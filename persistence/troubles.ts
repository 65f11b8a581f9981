/**
 * Where troubles are, for reading: which agents have any, and which tasks are not followed. One statement each, which looks at a
 * bounded number of rows by index, cut before anybody asks who may see them. What stands in one agent's way is agent-troubles.ts,
 * by the same conditions; says nothing (domain/troubles.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import { stuckAfterMs } from '../domain/patience.ts'
import {
  followedSearched,
  looksOfEach,
  tasksOfEach,
  troubledSearched,
  unfollowedListed,
  unsettledSearched,
  type TroubledAgentsAnswer,
  type UnfollowedTasksAnswer,
} from '../domain/troubles.ts'
import { underWayPassed } from '../domain/under-way.ts'
import { unsettledDays } from '../domain/unsettled-send.ts'
import { isInState, type AttentionState } from './actor-views.ts'
import { followsInVain } from './agent-troubles.ts'
import { commandHeld } from './commands.ts'
import type { Connection } from './connection.ts'
import { failedOften, failsForLong, isLeftBehind } from './failing.ts'
import { askedCommands, newestAsked, type OpenSearch } from './open-commands.ts'
import { unfinished } from './reconciliation.ts'
import { taskHeld } from './task-views.ts'
import { held, heldPartly } from './visibility.ts'

/** Not `g`: that is a grant's name in visibility.ts. */
const ofAgent = sql.fragment`named.id`

/** Of `agent named`: one of its tenants cannot be read, which is told to who holds the whole agent. */
const unread = (viewer: Viewer): FragmentSqlToken => sql.fragment`
  ${held(viewer, 'read', ofAgent, null)} and exists (
    select 1 from (
      select l.snapshot from actor l where l.kind = 'reconciliation' and l.lane = named.id
        and l.organization_id = ${viewer.organizationId} limit ${looksOfEach}) a
    where ${failedOften})`

/** The limit inside `lateral` is no limit, for a key has one row: it keeps the planner from reading all actors. */
const unfollowed = (viewer: Viewer, attention: readonly AttentionState[]): FragmentSqlToken => sql.fragment`
  exists (
    select 1 from (
      select t.id, t.agent_id, t.skill_id from task t
      where t.agent_id = named.id and t.organization_id = ${viewer.organizationId} and ${unfinished}
      order by t.agent_id desc, t.tenant desc, t.id desc limit ${tasksOfEach}
    ) t join lateral (
      select 1 from actor a where a.kind = 'subscription' and a.id = t.id and ${followsInVain(attention)} limit 1) a on true
    where ${taskHeld(viewer, 'read')})`

/** One row an agent that has any trouble. With 500 agents of 50 unfinished tasks each, all of them well, PostgreSQL 18 answers in 63 ms. */
export function troubledAgents(viewer: Viewer, attention: readonly AttentionState[]): FragmentSqlToken {
  const { organizationId } = viewer
  const search: OpenSearch = { organizationId, agentId: null, searched: underWayPassed, passed: underWayPassed }
  const stuck = sql.fragment`
    c.created_at < now() - ${stuckAfterMs} * interval '1 millisecond' and ${commandHeld(viewer, 'read')}`
  return sql.fragment`
    with ${newestAsked(search)}, undelivered as materialized (
      select distinct open.agent_id from ${askedCommands(sql.fragment`c.agent_id`, stuck)}
    ), ended as materialized (
      select c.agent_id, c.skill_id from command c
      where c.organization_id = ${organizationId} and c.unsettled_at > now() - ${unsettledDays} * interval '1 day'
      order by c.unsettled_at desc, c.id desc limit ${unsettledSearched}
    ), unsettled as materialized (
      select distinct c.agent_id from ended c where ${commandHeld(viewer, 'read')}
    ), looked as (
      select named.id, array_remove(array[
        case when ${unread(viewer)} then 'unread' end,
        case when ${unfollowed(viewer, attention)} then 'unfollowed' end,
        case when exists (select 1 from unsettled u where u.agent_id = named.id) then 'unsettled' end,
        case when exists (select 1 from undelivered u where u.agent_id = named.id) then 'undelivered' end], null) as troubles
      from agent named where named.organization_id = ${organizationId} and named.enabled and ${heldPartly(viewer, 'read', ofAgent)}
      order by named.created_at, named.id limit ${troubledSearched}
    )
    select id as "agentId", troubles from looked where cardinality(troubles) > 0 order by id`
}

export async function readTroubledAgents(
  db: Connection,
  viewer: Viewer,
  attention: readonly AttentionState[],
): Promise<TroubledAgentsAnswer> {
  const Row = z.custom<TroubledAgentsAnswer['agents'][number]>()
  return { agents: [...(await db.any(sql.type(Row)`${troubledAgents(viewer, attention)}`))] }
}

/**
 * The newest first, by the primary key of the actors that follow them, whose ids are the tasks' and grow with time. Those of a removed
 * agent are left out: nothing comes of them any more, and nobody can do anything about it. Of a finished one nobody waits for news.
 */
export const unfollowedTasks = (viewer: Viewer, attention: readonly AttentionState[]): FragmentSqlToken => sql.fragment`
  with searched as materialized (
    select a.kind, a.id, a.snapshot, a.work, a.work_started_at, a.lease_until, a.wake_at, a.created_at from actor a
    where a.kind = 'subscription' and a.organization_id = ${viewer.organizationId} order by a.id desc limit ${followedSearched}
  )
  select t.id as "localId", coalesce(t.title, '') as title
  from searched a join lateral (
    select t.id, t.title, ${unfinished} as goes_on from task t join agent named on named.id = t.agent_id and named.enabled
    where t.id = a.id and ${taskHeld(viewer, 'read')} limit 1) t on true
  where ${isInState(attention)} or ${failsForLong} or (${isLeftBehind} and t.goes_on)
  order by a.id desc limit ${unfollowedListed + 1}`

export async function readUnfollowedTasks(
  db: Connection,
  viewer: Viewer,
  attention: readonly AttentionState[],
): Promise<UnfollowedTasksAnswer> {
  const Row = z.custom<UnfollowedTasksAnswer['tasks'][number]>()
  // One more than is listed tells whether there are more.
  const found = await db.any(sql.type(Row)`${unfollowedTasks(viewer, attention)}`)
  return { tasks: found.slice(0, unfollowedListed), more: found.length > unfollowedListed }
}
