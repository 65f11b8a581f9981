/** Says to the database that time has passed: leases of processes that are dead run out now. Nothing else knows of it. */
import { sql } from 'slonik'
import type { Database } from '../../persistence/database.ts'

export async function endLeases({ pool }: Pick<Database, 'pool'>): Promise<void> {
  await pool.query(
    sql.unsafe`update actor set lease_until = now(), wake_at = now() where lease_owner is not null and work is not null`,
  )
}
