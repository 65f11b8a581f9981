/**
 * Tasks for reading: list rows, whole views, stored events. Does not write. Every list is one indexed query, however many
 * tasks there are.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { GrantPermission } from '../domain/grant.ts'
import type {
  TaskArtifact,
  TaskFilter,
  TaskMessage,
  TaskRow,
  TaskView,
  Transition,
  Part,
  WorkflowSummary,
} from '../domain/task.ts'
import type { Database } from './database.ts'
import type { Connection, Transaction } from './connection.ts'
import { wholePart } from './part-rows.ts'
import { messageCut, messagesBeyond, partCut, partsBeyond, weighTasks, type TaskWeight } from './task-weights.ts'
import { held, heldScopes } from './visibility.ts'

/** Of `task t`: the viewer holds its agent, or its skill. */
export const taskHeld = (viewer: Viewer, permission: GrantPermission): FragmentSqlToken =>
  held(viewer, permission, sql.fragment`t.agent_id`, sql.fragment`t.skill_id`)

interface HeadRow {
  readonly localId: string
  readonly taskId: string | null
  readonly tenant: string
  readonly agentId: string
  readonly agentName: string
  readonly state: string
  readonly kind: 'task' | 'message'
  readonly title: string | null
  readonly contextId: string | null
  readonly skillId: string | null
  readonly version: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly references: readonly { readonly taskId: string; readonly localId: string | null }[]
  readonly workflow: WorkflowSummary | null
}
const Head = z.custom<HeadRow>()

/** A task that another refers to is named locally only to who may read it: they share an agent, but not always a skill. */
const headFor = (viewer: Viewer): FragmentSqlToken => sql.fragment`
  t.id as "localId", t.remote_id as "taskId", t.tenant, t.agent_id as "agentId", a.name as "agentName", t.state, t.kind, t.title,
  t.context_id as "contextId", t.skill_id as "skillId", t.version, t.created_at as "createdAt", t.updated_at as "updatedAt",
  coalesce((
    select jsonb_agg(jsonb_build_object('taskId', r.remote_id, 'localId', o.id) order by r.remote_id)
    from task_reference r left join task o on o.agent_id = t.agent_id and o.tenant = t.tenant and o.remote_id = r.remote_id
      and ${held(viewer, 'read', sql.fragment`o.agent_id`, sql.fragment`o.skill_id`)}
    where r.task_id = t.id), '[]'::jsonb) as "references",
  case when w.task_id is null then null else jsonb_build_object('assigneeMembershipId', w.assignee_membership_id,
    'assigneeName', p.display_name, 'dueAt', to_char(w.due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'escalationLevel', w.escalation_level) end as workflow`
const joins = sql.fragment`
  join agent a on a.id = t.agent_id
  left join ownership w on w.task_id = t.id
  left join membership m on m.id = w.assignee_membership_id
  left join person p on p.id = m.person_id`

const untitled = 'Untitled task'

const rowOf = ({ references, skillId: _skill, version: _version, title, ...row }: HeadRow): TaskRow => ({
  ...row,
  title: title ?? untitled,
  referenceLinks: [...references],
  messages: [],
  artifacts: [],
})

const filters = {
  all: sql.fragment`true`,
  active: sql.fragment`t.state not in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY')`,
  'needs-input': sql.fragment`t.state in ('TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED')`,
  done: sql.fragment`t.state in ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED', 'MESSAGE_ONLY')`,
}

export interface ListPage {
  readonly filter: TaskFilter
  readonly limit: number
  readonly offset: number
  /** Due times before this are overdue. */
  readonly now: string
}

/** Ids of a page and what orders them. What is owned begins at the owners, which are few; everything else at the tasks. */
function candidates(page: ListPage, viewer: Viewer): FragmentSqlToken {
  const { organizationId, membershipId } = viewer
  const owned = sql.fragment`
    select w.task_id as id, w.task_created_at as created_at from ownership w
    where w.organization_id = ${organizationId} and ${held(viewer, 'read', sql.fragment`w.agent_id`, sql.fragment`w.skill_id`)}`
  switch (page.filter) {
    case 'mine':
      return sql.fragment`${owned} and w.assignee_membership_id = ${membershipId}`
    case 'overdue':
      return sql.fragment`${owned} and w.due_at < ${page.now} and w.open`
    case 'unassigned':
      return tasksOf(viewer, page, {
        from: sql.fragment`task t left join ownership w on w.task_id = t.id`,
        where: sql.fragment`w.assignee_membership_id is null and ${filters.active} and t.kind = 'task'`,
      })
    default:
      return tasksOf(viewer, page, { from: sql.fragment`task t`, where: filters[page.filter] })
  }
}

/**
 * Tasks of everything that the viewer holds. For an administrator that is the organization, in its own order. For anybody else
 * the beginning of each agent's and each skill's own list, as long as the page could need of it: among a million tasks of others a
 * walk through the organization's order would read most of them to fill a page.
 */
function tasksOf(
  viewer: Viewer,
  { limit, offset }: Pick<ListPage, 'limit' | 'offset'>,
  { from, where }: { readonly from: FragmentSqlToken; readonly where: FragmentSqlToken },
): FragmentSqlToken {
  const { organizationId } = viewer
  const scopes = heldScopes(viewer, 'read')
  const listed = sql.fragment`select t.id, t.created_at from ${from} where t.organization_id = ${organizationId} and ${where}`
  if (scopes === null) return listed
  const first = sql.fragment`order by t.created_at desc, t.id desc limit ${Math.min(limit + offset, Number.MAX_SAFE_INTEGER)}`
  return sql.fragment`
    select c.id, c.created_at from (${scopes}) s cross join lateral (
      (${listed} and s.skill_id is null and t.agent_id = s.agent_id ${first})
      union all
      (${listed} and t.agent_id = s.agent_id and t.skill_id = s.skill_id ${first})
    ) c`
}

/** Newest first. The page is cut before anything is joined, so its cost does not grow with the number of tasks. */
export async function listTasks(db: Connection, viewer: Viewer, page: ListPage): Promise<readonly TaskRow[]> {
  const rows = await db.any(sql.type(Head)`
    with page as (
      ${candidates(page, viewer)} order by created_at desc, id desc limit ${page.limit} offset ${page.offset}
    )
    select ${headFor(viewer)} from page join task t on t.id = page.id ${joins} order by t.created_at desc, t.id desc`)
  return rows.map(rowOf)
}

/**
 * Whole views of tasks, in the order of the ids; those that the viewer may not read are left out. One database snapshot for all statements: a
 * commit between two of them would show the state of one version with the artifacts of the next.
 */
export async function readViews(
  db: Database['pool'],
  viewer: Viewer,
  ids: readonly string[],
): Promise<readonly TaskView[]> {
  if (ids.length === 0) return []
  return db.transaction(async (tx) => {
    await tx.query(sql.unsafe`set transaction isolation level repeatable read, read only`)
    return viewsIn(tx, viewer, ids)
  })
}

async function viewsIn(db: Transaction, viewer: Viewer, ids: readonly string[]): Promise<readonly TaskView[]> {
  const wanted = sql.array([...ids], 'uuid')
  const heads = await db.any(sql.type(Head)`
    select ${headFor(viewer)} from task t ${joins}
    where t.organization_id = ${viewer.organizationId} and t.id = any(${wanted}) and ${taskHeld(viewer, 'read')}`)
  if (heads.length === 0) return []
  const known = sql.array(
    heads.map((row) => row.localId),
    'uuid',
  )
  const weights = await weighTasks(
    db,
    heads.map((row) => row.localId),
  )
  const messages = await readMessages(db, known, weights)
  const artifacts = await readArtifacts(db, known, weights)
  const transitions = await readTransitions(db, known)
  const views = new Map(
    heads.map((row): [string, TaskView] => [
      row.localId,
      {
        ...rowOf(row),
        skillId: row.skillId,
        version: row.version,
        messages: messages.get(row.localId) ?? [],
        artifacts: artifacts.get(row.localId) ?? [],
        transitions: transitions.get(row.localId) ?? [],
      },
    ]),
  )
  return ids.flatMap((id) => views.get(id) ?? [])
}

export async function readView(db: Database['pool'], viewer: Viewer, id: string): Promise<TaskView | null> {
  return (await readViews(db, viewer, [id]))[0] ?? null
}

type Ids = ReturnType<typeof sql.array>

/** Ids of views after one, in id order: what `GET /api/task-views` pages over. */
export async function listViewIds(
  db: Connection,
  viewer: Viewer,
  after: string | null,
  limit: number,
): Promise<readonly string[]> {
  const from = after === null ? sql.fragment`true` : sql.fragment`t.id > ${after}`
  const listed = sql.fragment`select t.id from task t where t.organization_id = ${viewer.organizationId} and ${from}`
  const first = sql.fragment`order by t.id limit ${limit}`
  const scopes = heldScopes(viewer, 'read')
  const found =
    scopes === null
      ? listed
      : sql.fragment`
          select c.id from (${scopes}) s cross join lateral (
            (${listed} and s.skill_id is null and t.agent_id = s.agent_id ${first})
            union all
            (${listed} and t.agent_id = s.agent_id and t.skill_id = s.skill_id ${first})
          ) c`
  return db.anyFirst(sql.type(z.object({ id: z.string() }))`${found} order by id limit ${limit}`)
}

/**
 * The stored parts have no ids: a part's id is its owner's and its place. They come as one JSON text: node-postgres reads an array
 * of texts by the character, half a second for what JSON.parse reads in some thirty milliseconds.
 */
const partsOf = (owner: string, json: string): Part[] =>
  (JSON.parse(json) as Omit<Part, 'id'>[]).map((part, index) => ({ id: `${owner}:${index}`, ...part }))

async function readMessages(
  db: Transaction,
  ids: Ids,
  weights: readonly TaskWeight[],
): Promise<Map<string, TaskMessage[]>> {
  const rows = await db.any(sql.type(z.custom<Omit<TaskMessage, 'parts'> & { taskId: string; parts: string }>())`
    with beyond as (${messagesBeyond(weights)})
    select m.task_id as "taskId", m.message_id as id, m.role, case when b.task_id is null then m.parts else ${messageCut} end as parts,
      m.said_at as timestamp, m.from_status as "fromStatus"
    from task_message m left join beyond b on b.task_id = m.task_id and b.message_id = m.message_id
    where m.task_id = any(${ids}) and coalesce(b.others, 0) = 0 order by m.task_id, m.position, m.message_id`)
  return grouped(rows, ({ taskId, parts, ...message }) => [taskId, { ...message, parts: partsOf(message.id, parts) }])
}

async function readArtifacts(
  db: Transaction,
  ids: Ids,
  weights: readonly TaskWeight[],
): Promise<Map<string, TaskArtifact[]>> {
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
    }>(),
  )`
    with beyond as (${partsBeyond(weights)})
    select a.task_id as "taskId", a.artifact_id as "artifactId", a.name, a.description, a.extensions, a.complete,
      a.update_count as "updateCount",
      (select '[' || string_agg(case when p.position = b.position then ${partCut} else ${wholePart} end, ',' order by p.position) || ']'
        from task_artifact_part p where p.task_id = a.task_id and p.artifact_id = a.artifact_id
          and (b.position is null or p.position <= b.position)) as parts
    from task_artifact a left join beyond b on b.task_id = a.task_id and b.artifact_id = a.artifact_id
    where a.task_id = any(${ids}) order by a.task_id, a.position, a.artifact_id`)
  return grouped(rows, ({ taskId, name, description, extensions, parts, ...artifact }) => [
    taskId,
    {
      ...artifact,
      ...(name === null ? {} : { name }),
      ...(description === null ? {} : { description }),
      ...(extensions === '[]' ? {} : { extensions: JSON.parse(extensions) as string[] }),
      parts: partsOf(artifact.artifactId, parts ?? '[]'),
    },
  ])
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

/** Where a task stands, for a route that waits for it to move. */
export interface TaskPulse {
  readonly localId: string
  readonly taskId: string | null
  readonly tenant: string
  readonly agentId: string
  readonly state: string
  readonly version: number
  readonly events: number
  /** The viewer may do more than look. */
  readonly isOperable: boolean
}

const pulseFor = (viewer: Viewer): FragmentSqlToken => sql.fragment`
  t.id as "localId", t.remote_id as "taskId", t.tenant, t.agent_id as "agentId", t.state, t.version, t.events,
  ${taskHeld(viewer, 'operate')} as "isOperable"`

export async function readPulse(db: Connection, viewer: Viewer, id: string): Promise<TaskPulse | null> {
  return db.maybeOne(sql.type(z.custom<TaskPulse>())`
    select ${pulseFor(viewer)} from task t
    where t.organization_id = ${viewer.organizationId} and t.id = ${id} and ${taskHeld(viewer, 'read')}`)
}

export interface TaskAddress extends TaskPulse {
  readonly contextId: string | null
  readonly skillId: string | null
}

/** A task by the agent's own name for it. */
export async function findRemoteTask(
  db: Connection,
  viewer: Viewer,
  task: { readonly agentId: string; readonly tenant: string; readonly remoteId: string },
): Promise<TaskAddress | null> {
  return db.maybeOne(sql.type(z.custom<TaskAddress>())`
    select ${pulseFor(viewer)}, t.context_id as "contextId", t.skill_id as "skillId" from task t
    where t.organization_id = ${viewer.organizationId} and t.agent_id = ${task.agentId} and t.tenant = ${task.tenant}
      and t.remote_id = ${task.remoteId} and ${taskHeld(viewer, 'read')}`)
}

/** A task by our name for it. */
export async function findTask(db: Connection, viewer: Viewer, id: string): Promise<TaskAddress | null> {
  return db.maybeOne(sql.type(z.custom<TaskAddress>())`
    select ${pulseFor(viewer)}, t.context_id as "contextId", t.skill_id as "skillId" from task t
    where t.organization_id = ${viewer.organizationId} and t.id = ${id} and ${taskHeld(viewer, 'read')}`)
}

/** Which of these remote tasks are known, and the viewer's to read. */
export async function knownRemoteTasks(
  db: Connection,
  viewer: Viewer,
  agentId: string,
  tenant: string,
  remoteIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db.anyFirst(sql.type(z.object({ id: z.string() }))`
    select t.remote_id as id from task t
    where t.organization_id = ${viewer.organizationId} and t.agent_id = ${agentId} and t.tenant = ${tenant}
      and t.remote_id = any(${sql.array([...remoteIds], 'text')}) and ${taskHeld(viewer, 'read')}`)
  return new Set(rows)
}

export interface StoredEvent {
  readonly position: number
  readonly source: string
  /** JSON text of the event in its 1.0 shape. */
  readonly event: string
  readonly receivedAt: string
}

/** Stored events of a task from a position on, oldest first; none of a task that the viewer may not read. */
export async function readEvents(
  db: Connection,
  viewer: Viewer,
  { localId, position, limit }: { readonly localId: string; readonly position: number; readonly limit: number },
): Promise<readonly StoredEvent[]> {
  return db.any(sql.type(z.custom<StoredEvent>())`
    select position, source, event, received_at as "receivedAt" from task_event
    where task_id = ${localId} and position >= ${position} and exists (
      select 1 from task t
      where t.id = ${localId} and t.organization_id = ${viewer.organizationId} and ${taskHeld(viewer, 'read')})
    order by position limit ${limit}`)
}
