/**
 * Tasks that their agent no longer knows and that were asked for in vain: kept out of the way of those that are asked for, and asked for
 * once an hour, for a month. Does not decide what is lost (reconciliation.ts) and asks nobody (actors/reconciliation.ts).
 */
import { sql } from 'slonik'
import type { Connection } from './connection.ts'
import { unfinished } from './reconciliation.ts'

/** Of `lost_task l`, in the words of the index `lost_task_given_up`: its agent did not know it, and has been asked for less than a month. */
const isForgotten = sql.fragment`(l.look_at is null and not l.oversized and l.looked_at - l.since < interval '30 days')`

/** Rows in one pass: some tens of milliseconds. What is left over is for the next. */
const toldAtOnce = 500

/**
 * Keeps in a task's row that it was given up, so that nobody who looks for tasks to ask for reads it (migration 21). Behind the note of
 * the loss and not with it: there the actors are locked already, and tasks come before them in the order of locks. Until then, and where
 * a release from before noted it, the note alone keeps the task out.
 *
 * Waits for no lock: what somebody else has is left to the next pass, and nobody who waits for a task is waited for.
 */
export async function keepGivenUp(db: Connection): Promise<void> {
  await db.query(sql.unsafe`
    with noted as materialized (
      select l.task_id, l.task_version from lost_task l cross join lateral (
        select from task t where t.id = l.task_id limit 1 for update skip locked) locked
      where l.look_at is null and l.told_version is distinct from l.task_version
      limit ${toldAtOnce} for update of l skip locked
    ), told as (
      update lost_task l set told_version = n.task_version from noted n where l.task_id = n.task_id
    )
    update task t set given_up_version = t.version from noted n
    where t.id = n.task_id and t.version = n.task_version and ${unfinished}`)
}

/** Of one pass, some seconds long: they are asked for, or come again an hour later. */
const dueAtOnce = 200
/** Of those of one agent's: one that forgot a hundred thousand is asked for four a second by each process, and keeps nobody else's waiting. */
const askedAtOnce = 20

/**
 * Asks for those that were not in this hour, by making their next look due: from then on they are asked for like every other task, and
 * whoever is refused again puts them back. All of an agent's come at the hour's beginning, so that its scope wakes once. A loss of which
 * nothing is left (the task was heard of, or ended) is forgotten. `at`: ISO 8601.
 *
 * Of a task's row what is current is not asked: somebody may be giving it up at this moment, and that is undone as well.
 */
export async function askForgotten(db: Connection, at: string): Promise<void> {
  await db.query(sql.unsafe`
    with due as materialized (
      select l.task_id, l.task_version = t.version and ${unfinished} as "isLost", t.agent_id, l.looked_at
      from lost_task l join task t on t.id = l.task_id
      where ${isForgotten} and l.looked_at < date_trunc('hour', ${at}::timestamptz)
      order by l.looked_at limit ${dueAtOnce} for update of t, l skip locked
    ), turn as (
      select d.task_id, d."isLost", d."isLost" and a.enabled
        and row_number() over (partition by d.agent_id, d."isLost" order by d.looked_at) <= ${askedAtOnce} as "isAsked"
      from due d join agent a on a.id = d.agent_id
    ), later as (
      update lost_task l set looked_at = greatest(l.looked_at, ${at}) from turn
      where l.task_id = turn.task_id and turn."isLost" and not turn."isAsked"
    ), asked as (
      update lost_task l set look_at = ${at}, told_version = null from turn where l.task_id = turn.task_id and turn."isAsked"
    ), void as (
      delete from lost_task l using turn where l.task_id = turn.task_id and not turn."isLost"
    )
    update task t set given_up_version = null from turn where t.id = turn.task_id and turn."isAsked"`)
}
