/**
 * Tasks as rows, written from what agents said. One statement locks, one reads what is touched, one writes, for any number
 * of tasks. Does not decide what an observation means (domain/fold.ts) and does not read for people (task-views.ts).
 */
import { createHash } from 'node:crypto'
import { sql } from 'slonik'
import { z } from 'zod'
import type { Folded, KnownArtifact, KnownTask } from '../domain/fold.ts'
import type { Connection, Transaction } from './database.ts'

/** How an agent names a task: unique only within (agent, tenant). */
export interface RemoteTask {
  readonly agentId: string
  readonly tenant: string
  readonly remoteId: string
}

export interface LockedTask extends RemoteTask {
  readonly id: string
  readonly organizationId: string
  readonly contextId: string | null
  readonly skillId: string | null
  readonly state: string
  readonly stateAt: string | null
  readonly version: number
  readonly events: number
}

const Locked = z.custom<LockedTask>()

/** Locks known tasks in one order until the transaction ends; unknown ones are simply missing from the answer. */
export async function lockTasks(tx: Transaction, tasks: readonly RemoteTask[]): Promise<readonly LockedTask[]> {
  if (tasks.length === 0) return []
  return tx.any(sql.type(Locked)`
    select t.id, t.organization_id as "organizationId", t.agent_id as "agentId", t.tenant, t.remote_id as "remoteId",
      t.context_id as "contextId", t.skill_id as "skillId", t.state, t.state_at as "stateAt", t.version, t.events
    from task t
    where (t.agent_id, t.tenant, t.remote_id) in (select * from ${sql.unnest(
      tasks.map((task) => [task.agentId, task.tenant, task.remoteId]),
      ['uuid', 'text', 'text'],
    )})
    order by t.id for update of t`)
}

/** What is already known of the messages and artifacts that a report names, by local task id. */
export async function readKnown(
  tx: Transaction,
  names: { messages: readonly (readonly [string, string])[]; artifacts: readonly (readonly [string, string])[] },
): Promise<ReadonlyMap<string, Pick<KnownTask, 'messages' | 'artifacts'>>> {
  const known = new Map<string, { messages: Set<string>; artifacts: Map<string, KnownArtifact> }>()
  const of = (taskId: string) => {
    const task = known.get(taskId) ?? { messages: new Set(), artifacts: new Map() }
    known.set(taskId, task)
    return task
  }
  if (names.messages.length > 0) {
    const rows = await tx.any(sql.type(z.object({ taskId: z.string(), messageId: z.string() }))`
      select task_id as "taskId", message_id as "messageId" from task_message
      where (task_id, message_id) in (select * from ${sql.unnest(
        names.messages.map((n) => [...n]),
        ['uuid', 'text'],
      )})`)
    for (const row of rows) of(row.taskId).messages.add(row.messageId)
  }
  if (names.artifacts.length > 0) {
    const rows = await tx.any(sql.type(
      z.custom<Omit<KnownArtifact, 'extensions'> & { taskId: string; artifactId: string; extensions: string }>(),
    )`
      select task_id as "taskId", artifact_id as "artifactId", position, name, description, extensions, complete, update_count as "updateCount",
        part_count as "partCount", parts_digest as "partsDigest" from task_artifact
      where (task_id, artifact_id) in (select * from ${sql.unnest(
        names.artifacts.map((n) => [...n]),
        ['uuid', 'text'],
      )})`)
    for (const { taskId, artifactId, extensions, ...artifact } of rows)
      of(taskId).artifacts.set(artifactId, { ...artifact, extensions: JSON.parse(extensions) as string[] })
  }
  return known
}

/** Content of an artifact as a chain over its parts, so that a snapshot and the updates that led to it compare equal. */
export const chainParts = (previous: string, part: string): string =>
  createHash('sha256').update(previous).update('\n').update(part).digest('base64url')

export interface NewTask {
  readonly id: string
  readonly organizationId: string
  readonly agentId: string
  readonly tenant: string
  readonly remoteId: string | null
  readonly kind: 'task' | 'message'
  readonly contextId: string | null
  readonly skillId: string | null
  readonly title: string | null
  readonly references: readonly string[]
}

export interface TaskWrite {
  readonly id: string
  /** Present for a task that has no row yet. */
  readonly fresh: NewTask | null
  readonly contextId: string | null
  readonly folded: Folded
}

/** PostgreSQL's text cannot hold NUL, and a lone surrogate is not UTF-8. */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()
const storableOrNull = (text: string | null): string | null => (text === null ? null : storable(text))

/** One row a line of each table, as `unnest` takes them. */
function rowsOf(writes: readonly TaskWrite[]) {
  const fresh = writes.flatMap(({ fresh: row, folded }) =>
    row
      ? [
          [
            row.id,
            row.organizationId,
            row.agentId,
            row.tenant,
            row.remoteId,
            row.kind,
            row.contextId,
            row.skillId,
            storableOrNull(row.title),
            folded.state,
            folded.stateAt,
            folded.version,
            folded.eventCount,
          ],
        ]
      : [],
  )
  const moved = writes.flatMap(({ id, fresh: row, contextId, folded }) =>
    row ? [] : [[id, contextId, folded.state, folded.stateAt, folded.version, folded.eventCount]],
  )
  const rows = <T>(of: (write: TaskWrite) => T[]): T[] => writes.flatMap(of)
  const events = rows(({ id, folded }) =>
    folded.events.map(({ position, source, event }) => ({ task_id: id, position, source, event })),
  )
  const messages = rows(({ id, folded }) =>
    folded.messages.map((m) => [id, m.id, m.position, m.role, m.parts, m.saidAt, m.fromStatus]),
  )
  const artifacts = rows(({ id, folded }) =>
    [...folded.artifacts].map(([artifactId, a]) => [
      id,
      artifactId,
      a.position,
      storableOrNull(a.name),
      storableOrNull(a.description),
      JSON.stringify(a.extensions),
      a.complete,
      a.updateCount,
      a.partCount,
      a.partsDigest,
    ]),
  )
  const parts = rows(({ id, folded }) =>
    [...folded.artifacts].flatMap(([artifactId, a]) =>
      [...a.newParts]
        .filter(([position]) => position < a.partCount)
        .map(([position, part]) => ({ task_id: id, artifact_id: artifactId, position, part })),
    ),
  )
  const transitions = rows(({ id, folded }) => folded.transitions.map((t) => [id, t.position, t.state, t.at]))
  const references = rows(({ id, fresh: row }) => (row?.references ?? []).map((remoteId) => [id, remoteId]))
  const bytes = rows(({ id, folded }) => [...folded.stored.keys()].map((digest) => [id, digest]))
  // In one order: two batches that bring the same bytes must not wait for each other.
  const sizes = [...new Map(writes.flatMap(({ folded }) => [...folded.stored]))].toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  )
  const lengths = rows(({ id, folded }) =>
    [...folded.artifacts].map(([artifactId, a]) => [id, artifactId, a.partCount]),
  )
  return { fresh, moved, events, messages, artifacts, lengths, parts, transitions, references, bytes, sizes }
}

/**
 * Writes any number of folded tasks in one statement. What may be large travels as JSON: node-postgres escapes each element
 * of an array with two regular expressions, which was a fifth of the main thread while heavy streams came in.
 */
export async function writeTasks(tx: Transaction, writes: readonly TaskWrite[], at: string): Promise<void> {
  if (writes.length === 0) return
  const rows = rowsOf(writes)
  const { fresh, moved, events, messages, artifacts, lengths, parts, transitions, references, bytes, sizes } = rows
  await tx.query(sql.unsafe`
    with created as (
      insert into task (id, organization_id, agent_id, tenant, remote_id, kind, context_id, skill_id, title, state, state_at,
        version, events, created_at, updated_at)
      select f.*, ${at}, ${at} from ${sql.unnest(fresh, [
        'uuid',
        'uuid',
        'uuid',
        'text',
        'text',
        'text',
        'text',
        'text',
        'text',
        'text',
        'timestamptz',
        'int4',
        'int4',
      ])} f
    ), moved as (
      update task t set context_id = coalesce(t.context_id, m.context_id), state = m.state, state_at = m.state_at,
        version = m.version, events = m.events, updated_at = ${at}
      from ${sql.unnest(moved, ['uuid', 'text', 'text', 'timestamptz', 'int4', 'int4'])}
        as m(id, context_id, state, state_at, version, events)
      where t.id = m.id
    ), told as (
      insert into task_event (task_id, position, source, event, received_at)
      select e.*, ${at} from json_to_recordset(${JSON.stringify(events)}::json)
        as e(task_id uuid, position int4, source text, event text)
    ), said as (
      insert into task_message (task_id, message_id, position, role, parts, said_at, from_status)
      select * from ${sql.unnest(messages, ['uuid', 'text', 'int8', 'text', 'text', 'timestamptz', 'bool'])} m
    ), made as (
      insert into task_artifact as a (task_id, artifact_id, position, name, description, extensions, complete,
        update_count, part_count, parts_digest)
      select * from ${sql.unnest(artifacts, ['uuid', 'text', 'int8', 'text', 'text', 'text', 'bool', 'int4', 'int4', 'text'])} n
      on conflict (task_id, artifact_id) do update set name = excluded.name, description = excluded.description,
        extensions = excluded.extensions,
        complete = excluded.complete, update_count = excluded.update_count, part_count = excluded.part_count,
        parts_digest = excluded.parts_digest
    ), trimmed as (
      delete from task_artifact_part p using ${sql.unnest(lengths, ['uuid', 'text', 'int4'])} as n(task_id, artifact_id, part_count)
      where p.task_id = n.task_id and p.artifact_id = n.artifact_id and p.position >= n.part_count
    ), filled as (
      insert into task_artifact_part (task_id, artifact_id, position, part)
      select * from json_to_recordset(${JSON.stringify(parts)}::json)
        as n(task_id uuid, artifact_id text, position int4, part text)
      on conflict (task_id, artifact_id, position) do update set part = excluded.part
    ), passed as (
      insert into task_transition (task_id, position, state, at)
      select * from ${sql.unnest(transitions, ['uuid', 'int4', 'text', 'timestamptz'])} n
    ), referred as (
      insert into task_reference (task_id, remote_id)
      select * from ${sql.unnest(references, ['uuid', 'text'])} n on conflict do nothing
    ), stored as (
      insert into artifact (digest, size, stored_at)
      select n.*, ${at} from ${sql.unnest(sizes, ['text', 'int8'])} n on conflict (digest) do nothing
    )
    insert into task_bytes (task_id, digest)
    select * from ${sql.unnest(bytes, ['uuid', 'text'])} n on conflict do nothing`)
}

export interface FollowedTask {
  readonly id: string
  readonly organizationId: string
  readonly agentId: string
  readonly tenant: string
  readonly remoteId: string
  readonly state: string
  readonly stateAt: string | null
}

/** A task as whoever follows it needs it; null for a direct reply, which nobody can follow. */
export async function readFollowed(db: Connection, taskId: string): Promise<FollowedTask | null> {
  return db.maybeOne(sql.type(z.custom<FollowedTask>())`
    select id, organization_id as "organizationId", agent_id as "agentId", tenant, remote_id as "remoteId", state,
      state_at as "stateAt"
    from task where id = ${taskId} and remote_id is not null`)
}
