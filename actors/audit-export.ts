/** An export of the audit trail is itself in the trail. Does not make the export (http/audit-export.ts). */
import type { Viewer } from '../domain/access.ts'
import { appendAudit, type AuditEntry } from '../persistence/audit.ts'
import type { Database } from '../persistence/database.ts'
import type { Instruments } from './loop/runtime.ts'

/** `data`: which records left, by the words of the request. Of no task: who reads a task need not know who exported it. */
export async function recordExport(
  db: Database,
  instruments: Pick<Instruments, 'now' | 'newToken'>,
  viewer: Viewer,
  data: AuditEntry['data'],
): Promise<void> {
  const entry = {
    id: instruments.newToken(),
    organizationId: viewer.organizationId,
    kind: 'audit.exported',
    actorType: 'user',
    personId: viewer.userId,
    subjectId: null,
    data,
  } as const
  await db.pool.transaction((tx) => appendAudit(tx, entry, instruments.now().toISOString()))
}
