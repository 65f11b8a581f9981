/**
 * Tasks that their agent no longer knows and that were asked for in vain: kept out of the way of those that are asked for, and asked for
 * once an hour, for a month. Does not decide what is lost (reconciliation.ts) and asks nobody (actors/reconciliation.ts).
 */
import { sql } from 'slonik'
import type { Connection } from './connection.ts'
import { unfinished } from './reconciliation.ts'

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

/** Of one pass, some seconds long: an agent that forgot a hundred thousand tasks is asked for four a second of them. */
const askedAtOnce = 20

/**
 * Asks for those whose turn it is by making their next look due: from then on they are as any other task that is asked for, and whoever is
 * refused again puts them back. A loss of which nothing is left (the task was heard of, or ended) is forgotten. `at`: ISO 8601.
 */
export async function askForgotten(db: Connection, at: string): Promise<void> {
  await db.query(sql.unsafe`
    with due as materialized (
      select l.task_id, l.task_version = t.version and ${unfinished} as "isLost" from lost_task l join task t on t.id = l.task_id
      where l.look_at is null and l.since > ${at}::timestamptz - interval '30 days'
        and l.looked_at between ${at}::timestamptz - interval '31 days' and ${at}::timestamptz - interval '1 hour'
      order by l.looked_at limit ${askedAtOnce} for update of t, l skip locked
    ), asked as (
      update lost_task l set look_at = ${at}, told_version = null from due where l.task_id = due.task_id and due."isLost"
    ), void as (
      delete from lost_task l using due where l.task_id = due.task_id and not due."isLost"
    )
    update task t set given_up_version = null from due
    where t.id = due.task_id and due."isLost" and t.given_up_version is not null`)
}
