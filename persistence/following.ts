/**
 * How a task is followed, for people and for whoever follows it: read from the subscription's own row. Owns these readings
 * only; the row is the runtime's (actors.ts), the task is tasks.ts'.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { StateValue } from '../domain/chart.ts'
import { followingFrom, type Following } from '../domain/following.ts'
import type { Timer } from './actors.ts'
import type { Connection } from './connection.ts'

interface Row {
  readonly value: StateValue
  readonly reason: string | null
  readonly timers: Readonly<Record<string, Timer>>
  readonly isHeld: boolean
}

const Progress = z.object({ state: z.string(), messages: z.number(), updates: z.number(), artifacts: z.string() })
export type Progress = z.infer<typeof Progress>

/** What is known of a task, in figures: its state, its messages, how often an artifact of it was told, and what they are. Null: it is no more. */
export async function readProgress(db: Connection, taskId: string): Promise<Progress | null> {
  return db.maybeOne(sql.type(Progress)`
    select t.state, (select count(*) from task_message m where m.task_id = t.id)::int as messages,
      (select coalesce(sum(a.update_count), 0) from task_artifact a where a.task_id = t.id)::float8 as updates,
      (select encode(sha256(convert_to(coalesce(string_agg(
        a.artifact_id || ' ' || a.part_count || ' ' || a.parts_digest, ' ' order by a.artifact_id), ''), 'UTF8')), 'hex')
        from task_artifact a where a.task_id = t.id) as artifacts
    from task t where t.id = ${taskId}`)
}

/** Null for a task that nobody ever followed: a direct reply, or one that came finished. `taskId` is ours. */
export async function followingOf(db: Connection, organizationId: string, taskId: string): Promise<Following | null> {
  const row = await db.maybeOne(sql.type(z.custom<Row>())`
    select snapshot->'value' as value, case when jsonb_exists(snapshot->'value', 'closing')
      then snapshot->'context'->>'missing' else snapshot->'context'->>'reason' end as reason, timers, lease_until > now() as "isHeld"
    from actor where kind = 'subscription' and id = ${taskId} and organization_id = ${organizationId}
    union all
    select snapshot->'value', snapshot->'context'->>'missing', '{}'::jsonb, false
    from actor_archive where kind = 'subscription' and id = ${taskId} and organization_id = ${organizationId}`)
  if (!row) return null
  const due = Object.values(row.timers).map(({ dueAt }) => dueAt)
  return followingFrom(row.value, { reason: row.reason, isHeld: row.isHeld, dueAt: due.toSorted()[0] ?? null })
}
