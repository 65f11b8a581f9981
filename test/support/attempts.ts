/** How following a task goes, by its subscription's own row: what tests wait for where nothing else shows it. */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Database } from '../../persistence/database.ts'

const Failures = z.object({ failures: z.number() })

/** Attempts in a row that brought nothing. `localId` is the task's. */
export const failuresOf = ({ pool }: Pick<Database, 'pool'>, localId: string): Promise<number> =>
  pool.oneFirst(sql.type(Failures)`
    select (snapshot->'context'->>'failures')::int as failures from actor where kind = 'subscription' and id = ${localId}`)
