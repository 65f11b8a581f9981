/**
 * One actor as it stands, with what its row alone does not say: what its work waits for, since when it fails, and when its holder was heard
 * of last. Reads only; what of a row may be shown is debug-views.ts.
 */
import type { Kinds } from '../actors/loop/kinds.ts'
import type { Viewer } from '../domain/access.ts'
import type { ActorAnswer } from '../domain/actor.ts'
import type { ActorRecord } from '../persistence/actor-views.ts'
import type { Connection } from '../persistence/connection.ts'
import { readFailingSince } from '../persistence/failing.ts'
import { readSeenAt } from '../persistence/processes.ts'
import { readWait } from '../persistence/queue-views.ts'
import { readUntaken } from '../persistence/untaken.ts'
import { detailOf, placesOf, type Definitions } from './debug-views.ts'

/** Who asks, and what actors' rows and logs are read with. */
export interface Asked {
  readonly db: Connection
  readonly viewer: Viewer
  readonly kinds: Kinds
  readonly definitions: Definitions
}

export async function standingOf(
  { db, viewer, kinds, definitions }: Asked,
  record: ActorRecord,
): Promise<Pick<ActorAnswer, 'actor' | 'wait' | 'untaken' | 'since' | 'holderSeenAt'>> {
  const kind = kinds[record.kind]
  const wait = await readWait(db, viewer, record, kind?.doubt?.counts)
  return {
    actor: detailOf(record, definitions),
    wait: placesOf(wait, kind, record.snapshot.context),
    // Due for longer than a worker needs, and nobody's: for anything else the question has no answer.
    untaken: kind && record.isUntaken ? await readUntaken(db, record.kind, kind.concurrency) : null,
    since: await readFailingSince(db, record),
    holderSeenAt: await readSeenAt(db, record.leaseOwner),
  }
}
