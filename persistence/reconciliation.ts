/**
 * Unfinished tasks as reconciliation reads them, and the tasks that can no longer be seen at their agent. Does not write tasks
 * (tasks.ts) and does not decide when to look (machines/reconciliation.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Connection, Transaction } from './connection.ts'

/** Of `task t`: the predicate of the index `task_unfinished`, word for word. */
export const unfinished = sql.fragment`(t.remote_id is not null
  and t.state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY'))`

/** The same of the index `task_watched`: those that were given up and whose row says so are not in it. */
export const inQuestion = sql.fragment`(t.given_up_version is null and ${unfinished})`

/**
 * Of `lost_task l` and `task t`: nothing was heard since; that would make the loss void. By no clock: two processes have two.
 *
 * Whoever asks it of tasks asks of each by itself, which `offset 0` says: joined at once, all that was ever lost would be read for the few
 * tasks of a page (0.1 s of 200,000, in every process every few seconds).
 */
const isStillLost = sql.fragment`l.task_id = t.id and l.task_version = t.version`

/** Of `task t`: it is unfinished and can be seen at its agent, as far as we know, or will be asked for again. */
export const isWatched = sql.fragment`(${inQuestion} and not exists (
  select 1 from lost_task l where ${isStillLost} and l.look_at is null offset 0))`

export interface ScopeName {
  readonly agentId: string
  readonly tenant: string
}

export interface UnfinishedTask {
  readonly id: string
  readonly remoteId: string
  readonly state: string
  readonly stateAt: string | null
  readonly version: number
  /** It could not be seen at the agent when it was asked for last. */
  readonly isLost: boolean
  /** Nobody follows it: it or its agent was gone, or it is at work though its subscription waits for a person. */
  readonly isGivenUp: boolean
}

const columns = sql.fragment`t.id, t.remote_id as "remoteId", t.state, t.state_at as "stateAt", t.version`
const isLost = sql.fragment`exists (select 1 from lost_task l where l.task_id = t.id offset 0) as "isLost"`
const isGivenUp = sql.fragment`exists (
  select 1 from actor s where s.kind = 'subscription' and s.id = t.id and (
      (s.snapshot->>'value' = 'resting' and t.state not in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'))
      or (s.snapshot->>'value' = 'stopped' and not coalesce((s.snapshot->'context'->>'tooLarge')::boolean, false)))) as "isGivenUp"`

export interface UnfinishedPage {
  /** Local id to read on after; null from the beginning. */
  readonly after: string | null
  /** Tasks of which something was heard since are left out, ISO 8601; not those that were written by a clock since set back. */
  readonly quietSince: string
  readonly at: string
  /** JSON text of the states in which a task's own subscription reads it as often: where it does, the task is left out. */
  readonly readElsewhere: readonly string[]
  readonly limit: number
}

/**
 * Of `actor s`: it really reads, or will in time. A state alone is no promise: a read may wait for one of eight places, its
 * process may be gone, or its row may have been left alone for minutes. A timer that is due for a second is as everybody
 * looks for timers; one that is due for longer waits for something.
 */
const readsInTime = sql.fragment`case when s.work is not null then coalesce(s.lease_until > now(), false)
  else (select min((t.value->>'dueAt')::timestamptz) from jsonb_each(s.timers) t) > now() - interval '1 second' end`

/** By so much later is young, too: what was written while this was asked, or by a process whose clock is ahead. A clock that was set back is further off. */
const otherClocks = sql.fragment`interval '1 minute'`

/** Unfinished tasks of a scope that are to be asked for, in the order of their ids; not those that their own subscription reads as often. */
export const readUnfinished = (
  db: Connection,
  scope: ScopeName,
  page: UnfinishedPage,
): Promise<readonly UnfinishedTask[]> => db.any(sql.type(z.custom<UnfinishedTask>())`${unfinishedPage(scope, page)}`)

export function unfinishedPage(
  { agentId, tenant }: ScopeName,
  { after, quietSince, at, readElsewhere, limit }: UnfinishedPage,
): FragmentSqlToken {
  const from = after === null ? sql.fragment`true` : sql.fragment`t.id > ${after}`
  return sql.fragment`
    select ${columns}, ${isLost}, ${isGivenUp} from task t
    where t.agent_id = ${agentId} and t.tenant = ${tenant} and ${inQuestion} and ${from}
      and (t.updated_at <= ${quietSince} or t.updated_at > ${at}::timestamptz + ${otherClocks})
      and not exists (
        select 1 from lost_task l where ${isStillLost} and (l.look_at is null or l.look_at > ${at}) offset 0)
      and not exists (
        select 1 from actor s where s.kind = 'subscription' and s.id = t.id
          and s.snapshot->'value' = any(${sql.array([...readElsewhere], 'jsonb')}) and ${readsInTime})
    order by t.id limit ${limit}`
}

const Known = z.object({ known: z.boolean() })

/** Whether a scope has any task that is unfinished and not given up. */
export async function hasUnfinished(db: Connection, scope: ScopeName): Promise<boolean> {
  const { known } = await db.one(sql.type(Known)`${anyUnfinished(scope)}`)
  return known
}

export const anyUnfinished = ({ agentId, tenant }: ScopeName): FragmentSqlToken => sql.fragment`
  select exists (
    select 1 from task t where t.agent_id = ${agentId} and t.tenant = ${tenant} and ${isWatched}) as known`

/** Which of an agent's tasks are known here and unfinished; all others are none of ours, or finished for good. */
export async function unfinishedAmong(
  db: Connection,
  { agentId, tenant }: ScopeName,
  remoteIds: readonly string[],
): Promise<readonly UnfinishedTask[]> {
  if (remoteIds.length === 0) return []
  return db.any(sql.type(z.custom<UnfinishedTask>())`
    select ${columns}, ${isLost}, ${isGivenUp} from task t
    where t.agent_id = ${agentId} and t.tenant = ${tenant} and t.remote_id = any(${sql.array([...remoteIds], 'text')})
      and ${unfinished}
    order by t.id`)
}

/**
 * The agent's ids of known tasks in which a message of these commands may stand: those of the context, or where there is none
 * the unfinished ones that were heard of since. Newest first.
 */
export async function knownTasksFor(
  db: Connection,
  { agentId, tenant }: ScopeName,
  { commandIds, contextId }: { readonly commandIds: readonly string[]; readonly contextId: string | null },
  limit: number,
): Promise<readonly string[]> {
  const near =
    contextId === null
      ? sql.fragment`${unfinished} and t.updated_at >= (
          select min(c.created_at) from command c where c.id = any(${sql.array([...commandIds], 'uuid')}))`
      : sql.fragment`t.context_id = ${contextId}`
  return db.anyFirst(sql.type(z.object({ id: z.string() }))`
    select t.remote_id as id from task t
    where t.agent_id = ${agentId} and t.tenant = ${tenant} and t.remote_id is not null and ${near}
    order by t.updated_at desc, t.id desc limit ${limit}`)
}

const Noted = z.object({ id: z.string(), looks: z.number() })

/** How long after the loss a task is asked for again: three times, then it is given up and asked for once an hour (given-up.ts). */
const minutesToNextLook = sql.fragment`(array[1, 5, 60])[lost_task.looks]`

export interface LostTask {
  readonly organizationId: string
  readonly taskId: string
  /** The task's when it was asked for. */
  readonly version: number
  /** Its agent knows it, and shows more than is read. */
  readonly oversized: boolean
}

/** Notes that these tasks could not be seen at their agents. Returns those of which it is news. */
export async function noteLost(tx: Transaction, tasks: readonly LostTask[], at: string): Promise<ReadonlySet<string>> {
  const rows = await tx.any(sql.type(Noted)`
    insert into lost_task (task_id, organization_id, since, looks, looked_at, look_at, task_version, oversized)
    select n.task_id, n.organization_id, ${at}, 1, ${at}, ${at}::timestamptz + interval '15 seconds', n.version, n.oversized
    from ${sql.unnest(
      tasks.map(({ taskId, organizationId, version, oversized }) => [taskId, organizationId, version, oversized]),
      ['uuid', 'uuid', 'int4', 'bool'],
    )} as n(task_id, organization_id, version, oversized)
    on conflict (task_id) do update set looks = lost_task.looks + 1, looked_at = excluded.looked_at,
      task_version = excluded.task_version, oversized = excluded.oversized,
      look_at = excluded.looked_at + ${minutesToNextLook} * interval '1 minute'
    returning task_id as id, looks`)
  return new Set(rows.filter(({ looks }) => looks === 1).map(({ id }) => id))
}

/** It was seen again. */
export async function forgetLost(db: Connection, taskId: string): Promise<void> {
  await db.query(sql.unsafe`delete from lost_task where task_id = ${taskId}`)
}
