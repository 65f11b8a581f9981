/**
 * Says to the database that time has passed: leases of processes that are dead run out now. Nothing else knows of it. The living
 * keep theirs: a verdict on what they are doing would be a doubt without a reason.
 */
import { sql } from 'slonik'
import type { Database } from '../../persistence/database.ts'

/** `pids`: of the dead. A lease's owner is named host/pid/token (actors/loop/worker.ts). */
export async function endLeases({ pool }: Pick<Database, 'pool'>, pids: readonly number[]): Promise<void> {
  await pool.query(sql.unsafe`
    update actor set lease_until = now(), wake_at = now()
    where work is not null and split_part(lease_owner, '/', 2) = any(${sql.array(pids.map(String), 'text')})`)
}
