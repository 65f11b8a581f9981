/**
 * Tasks as whoever folds and follows them needs them: one statement locks, one reads what is touched, for any number of tasks.
 * Does not write them (task-writes.ts), decide what an observation means (domain/fold.ts) or read for people (task-views.ts).
 */
import { createHash } from 'node:crypto'
import { sql } from 'slonik'
import { z } from 'zod'
import type { Chain, KnownArtifact, KnownTask } from '../domain/fold.ts'
import { longText } from '../domain/json-text.ts'
import { namesOf, type KnownMessage, type SaidMessage } from '../domain/same-id.ts'
import { storable } from '../domain/storable.ts'
import type { Connection, Transaction } from './connection.ts'

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
/** Of UTF-8: whatever is short enough to be compared (domain/same-id.ts) has fewer. */
const comparedBytes = 4 * longText

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
  names: {
    messages: readonly Told[]
    artifacts: readonly (readonly [string, string])[]
  },
): Promise<ReadonlyMap<string, Pick<KnownTask, 'messages' | 'artifacts'>>> {
  const known = new Map<string, { messages: Map<string, KnownMessage>; artifacts: Map<string, KnownArtifact> }>()
  const of = (taskId: string) => {
    const task = known.get(taskId) ?? { messages: new Map(), artifacts: new Map() }
    known.set(taskId, task)
    return task
  }
  if (names.messages.length > 0)
    for (const { taskId, messageId, role, position, parts } of await readMessages(tx, names.messages)) {
      const { messages } = of(taskId)
      // Where it is asked for twice, once is enough to know what it says.
      if (parts !== null || !messages.has(messageId))
        messages.set(messageId, { role, position, ...(parts === null ? { digest: null } : { parts }) })
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

const KnownMessageRow = z.custom<{
  readonly taskId: string
  readonly messageId: string
  readonly role: 'user' | 'agent'
  readonly position: number
  readonly parts: string | null
}>()

type Told = readonly [taskId: string, message: SaidMessage, isOwn: boolean]

/** Messages of one statement. One history may show a hundred thousand: as one, they would keep the process from all else for seconds. */
const toldAtOnce = 5_000

async function readMessages(tx: Transaction, told: readonly Told[]) {
  const rows: z.infer<typeof KnownMessageRow>[] = []
  for (let from = 0; from < told.length; from += toldAtOnce)
    rows.push(...(await readMessagesAtOnce(tx, told.slice(from, from + toldAtOnce))))
  return rows
}

/** What it says is read where it is short, and may be other words than those that are told now (domain/same-id.ts). */
const readMessagesAtOnce = (tx: Transaction, told: readonly Told[]) =>
  tx.any(sql.type(KnownMessageRow)`
    select m.task_id as "taskId", m.message_id as "messageId", m.role, m.position,
      case when (n.is_compared or m.role <> n.role) and octet_length(m.parts) < ${comparedBytes} then m.parts end as parts
    from ${sql.unnest(
      told.flatMap(([taskId, message, isOwn]) =>
        namesOf(message, chainParts, isOwn).map((name) => [taskId, name, message.role, message.fromStatus || isOwn]),
      ),
      ['uuid', 'text', 'text', 'bool'],
    )} n(task_id, message_id, role, is_compared)
    join task_message m on m.task_id = n.task_id and m.message_id = n.message_id`)

/**
 * Content of an artifact as a chain over its parts, so that a snapshot and the updates that led to it compare equal. A large
 * part enters by its digest, which the thread that parsed it has made: hashing 24 MiB here is a stall of 30 ms.
 */
export const chainParts: Chain = (previous, ...part) => {
  const hash = createHash('sha256').update(previous).update('\n')
  for (const piece of part) hash.update(piece)
  return hash.digest('base64url')
}

/** Whether an event names another context than its task's, which is kept as `storable` made it. Either may name none. */
export const isOfAnother = (contextId: string | null, kept: string | null): boolean =>
  contextId !== null && contextId !== '' && kept !== null && kept !== '' && storable(contextId) !== kept

/** The skill of a task, by the agent's name of it; null for one that is not known. */
export async function readTaskSkill(db: Connection, task: RemoteTask): Promise<Pick<LockedTask, 'skillId'> | null> {
  return db.maybeOne(sql.type(z.object({ skillId: z.string().nullable() }))`
    select skill_id as "skillId" from task
    where agent_id = ${task.agentId} and tenant = ${task.tenant} and remote_id = ${task.remoteId}`)
}

/** A task's version, by the agent's name of it; null for one that is not known. */
export async function readTaskVersion(db: Connection, task: RemoteTask): Promise<number | null> {
  return db.maybeOneFirst(sql.type(z.object({ version: z.number() }))`
    select version from task
    where agent_id = ${task.agentId} and tenant = ${task.tenant} and remote_id = ${task.remoteId}`)
}

export interface FollowedTask {
  readonly id: string
  readonly organizationId: string
  readonly agentId: string
  readonly tenant: string
  readonly remoteId: string
  readonly contextId: string | null
  readonly state: string
  readonly stateAt: string | null
  readonly version: number
}

/** A task as whoever follows it needs it; null for a direct reply, which nobody can follow. */
export async function readFollowed(db: Connection, taskId: string): Promise<FollowedTask | null> {
  return db.maybeOne(sql.type(z.custom<FollowedTask>())`
    select id, organization_id as "organizationId", agent_id as "agentId", tenant, remote_id as "remoteId",
      context_id as "contextId", state, state_at as "stateAt", version
    from task where id = ${taskId} and remote_id is not null`)
}
