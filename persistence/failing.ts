/**
 * Actors that fail to do what they are for, by their rows and logs: since when, and which of them for so long that a person should
 * know. Their machines count failures and keep no clock, and a mark that counts them comes late: an agent that answers, only wrongly,
 * is never "away". Says nothing (domain/actor-explanation.ts); which states need a person by themselves is the machines' tag.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import { failingToldAfterMs, streamOpenAfterMs, stuckAfterMs } from '../domain/patience.ts'
import type { ActorRef, Snapshot } from './actors.ts'
import type { Connection } from './connection.ts'
import { isUnheld } from './leases.ts'
import { nobodyWorks } from './processes.ts'

/** Steps of a log that are read for the beginning of a trouble: rounds that merely repeat are not in it. */
const stepsRead = 50

const failing = sql.array(['subscription.failing', 'subscription.stopped', 'reconciliation.failing'], 'text')
const fine = sql.array(
  [
    'subscription.recovered',
    'subscription.started',
    'subscription.paused',
    'reconciliation.recovered',
    'reconciliation.woken',
  ],
  'text',
)
/** A sign of life, and a person's answer, begin the count anew without a fact. The log keeps events as text, their type first. */
const begunAnew = sql.fragment`(event like '{"type":"heard"%' or event like '{"type":"rearmed"%')`

/** Of `actor a`: when it was first told to fail, since it last was told to do well. Null where the log does not go back so far. */
export const failingSince: FragmentSqlToken = sql.fragment`(
  with latest as (
    select l.revision, l.at, l.facts, l.event from actor_log l where l.actor_id = a.id and l.kind = a.kind
    order by l.revision desc limit ${stepsRead})
  select min(at) from latest where facts && ${failing}
    and revision > coalesce((select max(revision) from latest where facts && ${fine} or ${begunAnew}), 0))`

/** Of `actor a`. One failure is weather (domain/patience.ts). */
export const failedOften = sql.fragment`(a.snapshot->'context'->>'failures')::int > 1`

/** Of `actor a`: its stream is open, whatever failed before: its machine was told so, or opening it would have failed by now. */
export const isStreaming = sql.fragment`coalesce(a.work = 'follow' and a.lease_until > now() and (a.snapshot->'context'->>'open' = 'true'
  or a.work_started_at < now() - ${streamOpenAfterMs} * interval '1 millisecond'), false)`

/** Of `actor a` or `actor_archive a`: following a task, or asking an agent for what is unfinished, fails now. */
const failsNow = sql.fragment`a.kind in ('subscription', 'reconciliation') and a.snapshot->>'status' = 'active'
    and a.snapshot->'context'->>'reason' is not null and ${failedOften} and not ${isStreaming}`

/**
 * Of `actor a` or `actor_archive a`: when it last moved. Tries in vain bring it nowhere, so while it fails that is when this began; who
 * gave up has moved once more.
 */
export const movedAt: FragmentSqlToken = sql.fragment`(case
  when ${failsNow} and a.snapshot->>'value' <> 'stopped' then coalesce(${failingSince}, a.updated_at) else a.updated_at end)`

/**
 * Of `actor a` or `actor_archive a`: following a task, or asking an agent for what is unfinished, has failed for so long, by its first
 * failure and not by the last try. The log, a subplan, is read last and only for rows that fail now: what ended keeps its reason. Where all of 40,000 live actors
 * failed at once a page of what needs a person took 0.4 s on PostgreSQL 18, where none did 30 ms.
 */
export const failsForLong: FragmentSqlToken = sql.fragment`(case
  when ${failsNow} and a.created_at < now() - ${failingToldAfterMs} * interval '1 millisecond'
  then coalesce(${failingSince} < now() - ${failingToldAfterMs} * interval '1 millisecond', true)
  else false end)`

/** Of `actor a` or `actor_archive a`: its work, or its timer, is due for longer than a worker needs to take it, and nobody has. */
export const isUntaken: FragmentSqlToken = sql.fragment`coalesce(
  a.wake_at <= now() - ${stuckAfterMs} * interval '1 millisecond' and ${isUnheld(sql.fragment`a`)}, false)`

/** Of `actor a`: and no process works that could. Where one works it only waits for its turn, which is no trouble of its own. */
export const isLeftBehind: FragmentSqlToken = sql.fragment`(${nobodyWorks} and ${isUntaken})`

const Since = z.object({ since: z.string().nullable() })

/** Of one that lives. Null for kinds that tell of no failures, for those that do well, and where its log does not go back so far. */
export async function readFailingSince(
  db: Connection,
  actor: ActorRef & { readonly snapshot: Snapshot },
): Promise<string | null> {
  const { kind, id, snapshot } = actor
  if (typeof snapshot.context['reason'] !== 'string') return null
  return db.maybeOneFirst(sql.type(Since)`
    select ${failingSince} as since from actor a where a.kind = ${kind} and a.id = ${id}`)
}
