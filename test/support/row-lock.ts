/** A row that somebody else keeps locked: a session of its own, on a PostgreSQL. Owns no expectation. */
import { sql } from 'slonik'
import type { ActorRef } from '../../persistence/actors.ts'
import type { Database } from '../../persistence/database.ts'

/** Locks an actor's row from outside, as an operator's session does, until the returned function is called. */
export async function lockedBy(db: Database, { id }: ActorRef): Promise<() => Promise<void>> {
  const [locked, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const outside = db.pool.transaction(async (tx) => {
    await tx.query(sql.unsafe`select from actor where id = ${id} for update`)
    locked.resolve()
    await over.promise
  })
  await locked.promise
  return async () => {
    over.resolve()
    await outside
  }
}
