/** Actors that have come to their end, as their own database shows them. */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Database } from '../../persistence/database.ts'

const Archived = z.object({ id: z.string() })

/** The task's own id once its subscription has ended, and nothing before. */
export const archivedSubscription = (
  { db }: { readonly db: Pick<Database, 'pool'> },
  localId: string,
): Promise<readonly string[]> =>
  db.pool.anyFirst(sql.type(Archived)`select id from actor_archive where kind = 'subscription' and id = ${localId}`)
