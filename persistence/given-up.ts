/**
 * Keeps in a task's row that it was given up, so that nobody who looks for tasks to ask for reads it (migration 21). Behind the note of
 * the loss and not with it: there the actors are locked already, and tasks come before them in the order of locks. Until then, and where
 * a release from before noted it, the note alone keeps the task out. Does not decide what is lost (reconciliation.ts).
 */
import { sql } from 'slonik'
import type { Connection } from './connection.ts'
import { unfinished } from './reconciliation.ts'

/** Rows in one pass: some tens of milliseconds. What is left over is for the next. */
const toldAtOnce = 500

/** Waits for no lock: what somebody else has is left to the next pass, and nobody who waits for a task is waited for. */
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
