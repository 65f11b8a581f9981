/**
 * What became of a commit that nobody acknowledged. Its own rows are the proof (persistence/actors.ts); this asks for them until
 * there is an answer, or too long. Does not decide what follows.
 */
import { setTimeout } from 'node:timers/promises'
import { fateOf, findBorn, type ActorRef, type Evidence } from '../../persistence/actors.ts'
import { DatabaseClosed, type Database } from '../../persistence/database.ts'
import {
  isConflict,
  isLockTimeout,
  isOfReader,
  isRetryable,
  isStalePlan,
  isUndoneByExhaustion,
} from '../../persistence/drivers/sqlstate.ts'
import { isOutage } from '../../persistence/outage.ts'

/** How often it is asked for: 50 ms to 6 s apart, some 13 s in all. */
const questionsLimit = 8
const pauseMs = 50

export type Fate = 'committed' | 'aborted' | 'unknown'

/** The transaction did nothing, and run again it sees the row, the lock or the plan that stood in its way. */
export const isTransient = (error: unknown): boolean => isRetryable(error) || isStalePlan(error) || isConflict(error)
/** The server itself says that the transaction did nothing: there is no fate to be asked for. */
export const isReportedUndone = (error: unknown): boolean =>
  isTransient(error) || isLockTimeout(error) || isOfReader(error) || isUndoneByExhaustion(error)

/** `unknown`: the database is away for longer than anybody here may wait; whoever asked is told, and has its own fence. */
export async function findFate(db: Database, evidence: Evidence): Promise<Fate> {
  const fate = await find(async () => {
    const found = await fateOf(db.pool, evidence)
    return found === 'unknown' ? null : found
  })
  return fate ?? 'unknown'
}

/**
 * Those of a batch's newborn actors that are there. `isDecided`: what is not there now never will be; otherwise finding none may
 * mean that it is still under way. Null: nobody can tell.
 */
export function findNewborn(
  db: Database,
  batch: { readonly id: string; readonly moved: readonly ActorRef[] },
  isDecided: boolean,
): Promise<readonly string[] | null> {
  return find(async () => {
    const born = await findBorn(db.pool, batch.id, batch.moved)
    return born.length > 0 || isDecided ? born : null
  })
}

async function find<T>(ask: () => Promise<T | null>): Promise<T | null> {
  for (let attempt = 0; attempt < questionsLimit; attempt++) {
    try {
      const found = await ask()
      if (found !== null) return found
    } catch (error) {
      // Ours is closing: nobody comes back.
      if (!isOutage(error) || error instanceof DatabaseClosed) throw error
    }
    await setTimeout(pauseMs * 2 ** attempt)
  }
  return null
}
