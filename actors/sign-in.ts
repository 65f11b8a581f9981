/**
 * Sessions of people. Today there is one lasting local administrator, so what remains of a session is its end in the audit
 * trail. Does not decide who somebody is (http/guard.ts asks, the composition root answers).
 */
import type { Viewer } from '../domain/access.ts'
import { appendAudit } from '../persistence/audit.ts'
import type { Database } from '../persistence/database.ts'
import type { Instruments } from './runtime.ts'

export async function endSession(db: Database, instruments: Instruments, viewer: Viewer): Promise<void> {
  const entry = {
    id: instruments.newToken(),
    organizationId: viewer.organizationId,
    kind: 'session.ended',
    actorType: 'user',
    personId: viewer.userId,
    subjectId: viewer.membershipId,
    data: {},
  } as const
  await db.pool.transaction((tx) => appendAudit(tx, entry, instruments.now().toISOString()))
}
