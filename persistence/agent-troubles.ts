/**
 * What stands in an agent's way, for reading: by the rows of the actors that ask it and follow its tasks, and of the commands that
 * it did not get. Every part looks at a bounded number of rows, by a primary key or by `task_unfinished`. Says nothing
 * (domain/agent-troubles.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import { stuckAfterMs } from '../domain/actor-explanation.ts'
import { unfollowedSearched, unfollowedShown, type AgentTroubles } from '../domain/agent-troubles.ts'
import { underWayPassed, underWaySearched } from '../domain/under-way.ts'
import { isInState, type AttentionState } from './actor-views.ts'
import { commandHeld } from './commands.ts'
import type { Connection } from './connection.ts'
import { unfinished } from './reconciliation.ts'
import { taskHeld } from './task-views.ts'
import { held } from './visibility.ts'

/** Steps of a log that are read for the beginning of a trouble: rounds that merely repeat are not in it. */
const stepsRead = 50

/** Of `actor a`: when it was first told to fail, since it last was told to do well. */
const failingSince = (fine: readonly string[], failing: readonly string[]): FragmentSqlToken => sql.fragment`(
  with latest as (
    select l.revision, l.at, l.facts from actor_log l where l.actor_id = a.id and l.kind = a.kind
    order by l.revision desc limit ${stepsRead})
  select min(at) from latest where facts && ${sql.array([...failing], 'text')}
    and revision > coalesce((select max(revision) from latest where facts && ${sql.array([...fine], 'text')}), 0))`

const context = sql.fragment`a.snapshot->'context'`
/** One failure is weather (domain/actor-explanation.ts). */
const failedOften = sql.fragment`(${context}->>'failures')::int > 1`

const Look = z.custom<AgentTroubles['looks'][number]>()

const readLooks = (db: Connection, viewer: Viewer, agentId: string) =>
  db.any(sql.type(Look)`
    select a.id, ${context}->>'reason' as reason,
      ${failingSince(['reconciliation.recovered', 'reconciliation.woken'], ['reconciliation.failing'])} as since,
      case when a.work is null then a.wake_at end as "nextTryAt"
    from actor a
    where a.kind = 'reconciliation' and a.organization_id = ${viewer.organizationId} and a.lane = ${agentId}
      and ${failedOften} and ${held(viewer, 'read', sql.fragment`a.lane`, null)}
    order by a.id`)

const Unfollowed = z.custom<AgentTroubles['unfollowed']['tasks'][number] & { count: number; searched: number }>()

async function readUnfollowed(
  db: Connection,
  viewer: Viewer,
  agentId: string,
  attention: readonly AttentionState[],
): Promise<AgentTroubles['unfollowed']> {
  const rows = await db.any(sql.type(Unfollowed)`
    with open as materialized (
      select t.id, t.title from task t
      where t.agent_id = ${agentId} and t.organization_id = ${viewer.organizationId} and ${unfinished} and ${taskHeld(viewer, 'read')}
      order by t.agent_id desc, t.tenant desc, t.id desc limit ${unfollowedSearched}
    ), failing as (
      select o.title, a.id, a.kind, a.reason, (count(*) over ())::int as count
      from open o join lateral (
        select a.id, a.kind, ${context}->>'reason' as reason from actor a
        where a.kind = 'subscription' and a.id = o.id and ${context}->>'reason' is not null
          and (${failedOften} or ${isInState(attention)}) limit 1) a on true
      order by a.id desc limit ${unfollowedShown}
    )
    select a.id as "localId", coalesce(a.title, '') as title, a.reason, a.count, (select count(*)::int from open) as searched,
      ${failingSince(
        ['subscription.recovered', 'subscription.started', 'subscription.paused'],
        ['subscription.failing', 'subscription.stopped'],
      )} as since
    from failing a order by a.id desc`)
  return {
    tasks: rows.map(({ count: _, searched: __, ...task }) => task),
    count: rows[0]?.count ?? 0,
    isWhole: (rows[0]?.searched ?? 0) < unfollowedSearched,
  }
}

const Others = z.object({ count: z.number(), reached: z.boolean(), oldestAt: z.string().nullable() })

async function readOthers(db: Connection, viewer: Viewer, agentId: string): Promise<AgentTroubles['others']> {
  const { count, reached, oldestAt } = await db.one(sql.type(Others)`
    with newest as materialized (
      select id, lane from actor where kind = 'command' and organization_id = ${viewer.organizationId}
      order by id desc limit ${underWayPassed}
    ), asked as materialized (
      select id from newest where lane = ${agentId} order by id desc limit ${underWaySearched}
    )
    select count(*)::int as count, min(open.created_at) as "oldestAt",
      (select count(*) from asked) >= ${underWaySearched} or (select count(*) from newest) >= ${underWayPassed} as reached
    from asked join lateral (
      select c.created_at from command c
      where c.id = asked.id and c.person_id <> ${viewer.userId} and c.status in ('pending', 'dispatching')
        and c.created_at < now() - ${stuckAfterMs} * interval '1 millisecond' and ${commandHeld(viewer, 'read')} limit 1) open on true`)
  return { count, isWhole: !reached, oldestAt }
}

const Clock = z.object({ at: z.string(), cardReadAt: z.string().nullable() })

/** `attention`: states that need a person, as the machines tag them. */
export async function readAgentTroubles(
  db: Connection,
  viewer: Viewer,
  agentId: string,
  attention: readonly AttentionState[],
): Promise<AgentTroubles> {
  const { at, cardReadAt } = await db.one(sql.type(Clock)`
    select now() as at, (select max(s.last_seen_at) from agent_card s where s.agent_id = ${agentId}) as "cardReadAt"`)
  const looks = await readLooks(db, viewer, agentId)
  const unfollowed = await readUnfollowed(db, viewer, agentId, attention)
  const others = await readOthers(db, viewer, agentId)
  return { at, looks: [...looks], unfollowed, others, cardReadAt }
}
