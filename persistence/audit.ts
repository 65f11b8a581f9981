/** The audit trail, written in the transaction of what it records. Append-only by trigger; reading it comes with its page. */
import { sql } from 'slonik'
import type { AuditActorType, AuditKind } from '../domain/audit.ts'
import type { Transaction } from './connection.ts'

export interface AuditEntry {
  readonly id: string
  readonly organizationId: string
  readonly kind: AuditKind
  readonly actorType: AuditActorType
  /** The person who did it; null where it was the system or an agent. */
  readonly personId: string | null
  /** The task it is about, where it is about one: who can read the task can then read the entry. */
  readonly taskId?: string
  readonly subjectId: string | null
  /** Ids and words of ours: never a secret, never what a person or an agent wrote. */
  readonly data: Readonly<Record<string, string | number | boolean | null>>
}

export async function appendAudit(tx: Transaction, entry: AuditEntry, at: string): Promise<void> {
  await tx.query(sql.unsafe`
    insert into audit (id, organization_id, at, kind, actor_type, actor_person_id, task_id, subject_id, data)
    values (${entry.id}, ${entry.organizationId}, ${at}, ${entry.kind}, ${entry.actorType}, ${entry.personId},
      ${entry.taskId ?? null}, ${entry.subjectId}, ${JSON.stringify(entry.data)}::jsonb)`)
}
