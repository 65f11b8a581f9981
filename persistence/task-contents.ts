/**
 * What is in views of tasks: messages, artifacts, transitions. Owns how they are read, for tasks that were weighed and that somebody
 * may see; does not own who may (task-views.ts), how much is read (task-weights.ts) or how a part is put together (part-rows.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Part, TaskArtifact, TaskMessage, Transition } from '../domain/task.ts'
import type { Transaction } from './connection.ts'
import { readPartPages } from './heavy-artifacts.ts'
import { listed, partsOf, wholePart } from './part-rows.ts'
import { artifactsBeyond, artifactsCut, messagesShown, statementBytes, type TaskWeight } from './task-weights.ts'
import { artifactKey } from './told-artifacts.ts'

/** By the ids of their tasks. */
export interface TaskContents {
  readonly messages: ReadonlyMap<string, TaskMessage[]>
  readonly artifacts: ReadonlyMap<string, TaskArtifact[]>
  readonly transitions: ReadonlyMap<string, Transition[]>
}

/** `damaged` is told of a task, once, how many parts of it cannot be read. */
export async function readContents(
  db: Transaction,
  weights: readonly TaskWeight[],
  damaged: (taskId: string, parts: number) => void,
): Promise<TaskContents> {
  const ids = sql.array(
    weights.map(({ id }) => id),
    'uuid',
  )
  const unread = new Map<string, number>()
  const count: Count = (taskId, parts) => unread.set(taskId, (unread.get(taskId) ?? 0) + parts)
  const contents = {
    messages: await readMessages(db, weights, count),
    artifacts: await readArtifacts(db, ids, weights, count),
    transitions: await readTransitions(db, ids),
  }
  for (const [taskId, parts] of unread) damaged(taskId, parts)
  return contents
}

type Count = (taskId: string, parts: number) => void

type Ids = ReturnType<typeof sql.array>

async function readMessages(
  db: Transaction,
  weights: readonly TaskWeight[],
  count: Count,
): Promise<Map<string, TaskMessage[]>> {
  const rows = await db.any(sql.type(z.custom<Omit<TaskMessage, 'parts'> & { taskId: string; parts: string }>())`
    select m.task_id as "taskId", m.message_id as id, m.role, m.parts, m.said_at as timestamp, m.from_status as "fromStatus"
    from (${messagesShown(weights)}) m order by m.task_id, m.position, m.message_id`)
  return grouped(rows, ({ taskId, parts, ...message }) => [
    taskId,
    { ...message, parts: partsOf(message.id, parts, (unread) => count(taskId, unread)) },
  ])
}

async function readArtifacts(
  db: Transaction,
  ids: Ids,
  weights: readonly TaskWeight[],
  count: Count,
): Promise<Map<string, TaskArtifact[]>> {
  const isHeavy = weights.reduce((bytes, { artifacts }) => bytes + artifacts, 0) > statementBytes
  const rows = await db.any(sql.type(
    z.custom<{
      taskId: string
      artifactId: string
      name: string | null
      description: string | null
      extensions: string
      complete: boolean
      updateCount: number
      parts: string | null
      isCut: boolean
    }>(),
  )`
    with beyond as (${artifactsBeyond(weights)})
    select a.task_id as "taskId", a.artifact_id as "artifactId", a.name, a.description, a.extensions, a.complete,
      a.update_count as "updateCount", coalesce(a.artifact_id = b.artifact_id, false) as "isCut",
      case when ${!isHeavy} then (select ${listed(wholePart)}
        from task_artifact_part p where p.task_id = a.task_id and p.artifact_id = a.artifact_id) end as parts
    from task_artifact a left join beyond b on b.task_id = a.task_id
    where a.task_id = any(${ids}) and (b.task_id is null or (a.position, a.artifact_id) <= (b.place, b.artifact_id))
    order by a.task_id, a.position, a.artifact_id`)
  const large = isHeavy ? await readHeavyParts(db, ids, weights, count) : null
  return grouped(rows, ({ taskId, name, description, extensions, parts: json, isCut, ...artifact }) => {
    const { artifactId } = artifact
    const parts =
      large?.get(artifactKey(taskId, artifactId)) ??
      partsOf(artifactId, json ?? '[]', (unread) => count(taskId, unread))
    return [
      taskId,
      {
        ...artifact,
        ...(name === null ? {} : { name }),
        ...(description === null ? {} : { description }),
        ...(extensions === '[]' ? {} : { extensions: JSON.parse(extensions) as string[] }),
        parts: isCut ? [...parts, { id: `${artifactId}:${parts.length}`, ...artifactsCut }] : parts,
      },
    ]
  })
}

async function readHeavyParts(
  db: Transaction,
  ids: Ids,
  weights: readonly TaskWeight[],
  count: Count,
): Promise<ReadonlyMap<string, Part[]>> {
  const read = new Map<string, Part[]>()
  for await (const { taskId, artifactId, parts } of readPartPages(db, ids, artifactsBeyond(weights))) {
    const key = artifactKey(taskId, artifactId)
    const before = read.get(key) ?? []
    read.set(key, before)
    for (const part of partsOf(artifactId, parts, (unread) => count(taskId, unread), before.length)) before.push(part)
  }
  return read
}

async function readTransitions(db: Transaction, ids: Ids): Promise<Map<string, Transition[]>> {
  const rows = await db.any(sql.type(z.custom<Transition & { taskId: string }>())`
    select task_id as "taskId", state, at as timestamp from task_transition where task_id = any(${ids})
    order by task_id, position`)
  return grouped(rows, ({ taskId, ...transition }) => [taskId, transition])
}

function grouped<Row, Value>(rows: readonly Row[], split: (row: Row) => [string, Value]): Map<string, Value[]> {
  const groups = new Map<string, Value[]>()
  for (const row of rows) {
    const [key, value] = split(row)
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return groups
}
