/** Ownership for reading: a projection of the ownership actor, beside the tasks that lists join it to. */
import { sql } from 'slonik'
import type { Transaction } from './connection.ts'

export interface OwnershipRow {
  readonly taskId: string
  readonly assigneeMembershipId: string | null
  readonly claimedAt: string | null
  readonly dueAt: string | null
  readonly escalationLevel: number
  readonly escalatedAt: string | null
  /** The task is not finished. */
  readonly open: boolean
}

export async function projectOwnership(tx: Transaction, rows: readonly OwnershipRow[], at: string): Promise<void> {
  await tx.query(sql.unsafe`
    insert into ownership (task_id, assignee_membership_id, claimed_at, due_at, escalation_level, escalated_at, open, updated_at,
      organization_id, task_created_at, agent_id, skill_id)
    select o.*, ${at}, t.organization_id, t.created_at, t.agent_id, t.skill_id from ${sql.unnest(
      rows.map((row) => [
        row.taskId,
        row.assigneeMembershipId,
        row.claimedAt,
        row.dueAt,
        row.escalationLevel,
        row.escalatedAt,
        row.open,
      ]),
      ['uuid', 'uuid', 'timestamptz', 'timestamptz', 'int4', 'timestamptz', 'bool'],
    )} as o(task_id, assignee_membership_id, claimed_at, due_at, escalation_level, escalated_at, open)
    join task t on t.id = o.task_id
    on conflict (task_id) do update set assignee_membership_id = excluded.assignee_membership_id,
      claimed_at = excluded.claimed_at, due_at = excluded.due_at, escalation_level = excluded.escalation_level,
      escalated_at = excluded.escalated_at, open = excluded.open, updated_at = excluded.updated_at`)
}
