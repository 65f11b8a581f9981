/**
 * How a task is followed, for people and for whoever follows it: read from the subscription's own row. Owns these readings
 * only; the row is the runtime's (actors.ts), the task is tasks.ts'.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { StateValue } from '../domain/chart.ts'
import { isStamp } from '../domain/fold.ts'
import { followingFrom, type Following } from '../domain/following.ts'
import type { Timer } from './actors.ts'
import type { Connection } from './connection.ts'

interface Row {
  readonly value: StateValue
  readonly reason: string | null
  readonly timers: Readonly<Record<string, Timer>>
  readonly isHeld: boolean
}

const Progress = z.object({ version: z.number() })

/** The task's version: it grows with every committed change. 0 for a task that is no more. */
export async function readProgress(db: Connection, taskId: string): Promise<number> {
  return (await db.maybeOneFirst(sql.type(Progress)`select version from task where id = ${taskId}`)) ?? 0
}

const Piece = z.object({ event: z.nullable(z.string()) })
/** Bytes. A new time alone has two ids and is shorter; of what is longer the server reads its length, which stands beside it. */
const stampLimit = 8_000
const piecesLimit = 50

/** Whether anything was told since a version but a new time of `state`: of some agents every word has one. */
export async function toldSince(db: Connection, taskId: string, version: number, state: string): Promise<boolean> {
  const pieces = await db.any(sql.type(Piece)`
    select case when octet_length(event) < ${stampLimit} then event end as event
    from task_event where task_id = ${taskId} and position >= ${version} order by position limit ${piecesLimit}`)
  return pieces.length === piecesLimit || pieces.some(({ event }) => event === null || !isStamp(event, state))
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
