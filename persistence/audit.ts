/** The audit trail, written in the transaction of what it records. Append-only by trigger; reading it comes with its page. */
import { sql } from 'slonik'
import type { Transaction } from './database.ts'

export type AuditKind = 'agent.registered' | 'agent.removed' | 'session.ended'

export interface AuditEntry {
  readonly id: string
  readonly organizationId: string
  readonly kind: AuditKind
  readonly actorType: 'user' | 'system' | 'agent'
  readonly personId: string | null
  readonly subjectId: string | null
  readonly data: Readonly<Record<string, string | number | boolean | null>>
}

export async function appendAudit(tx: Transaction, entry: AuditEntry, at: string): Promise<void> {
  await tx.query(sql.unsafe`
    insert into audit (id, organization_id, at, kind, actor_type, actor_person_id, subject_id, data)
    values (${entry.id}, ${entry.organizationId}, ${at}, ${entry.kind}, ${entry.actorType}, ${entry.personId},
      ${entry.subjectId}, ${JSON.stringify(entry.data)}::jsonb)`)
}
