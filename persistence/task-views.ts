/**
 * Tasks for reading: list rows, whole views, where one stands. Every list is one indexed query, however many tasks there are. Does not
 * write, and does not own what is in a view (task-contents.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { GrantPermission } from '../domain/grant.ts'
import type { TaskFilter, TaskRow, TaskView, WorkflowSummary } from '../domain/task.ts'
import type { Database } from './database.ts'
import type { Connection, Transaction } from './connection.ts'
import { readContents, type TaskContents } from './task-contents.ts'
import { fitting, shownBytes, weighTasks } from './task-weights.ts'
import { held, heldScopes } from './visibility.ts'

/** Of `task t`: the viewer holds its agent, or its skill. */
export const taskHeld = (viewer: Viewer, permission: GrantPermission): FragmentSqlToken =>
  held(viewer, permission, sql.fragment`t.agent_id`, sql.fragment`t.skill_id`)

/** A task of which so many parts cannot be read. */
export interface Damage {
  readonly organizationId: string
  readonly taskId: string
  readonly parts: number
}
export type OnDamage = (damage: Damage) => void

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

/** A view that was not read: it shows so many bytes. */
export interface HeavyView {
  readonly heavyBytes: number
}

/**
 * The whole view of a task that shows no more than `most` bytes; of another, how many: who asks makes room before it is read. `damaged` is
 * told of a task of which something cannot be read: its view says so where it would stand.
 */
export function readViewUpTo(
  db: Database['pool'],
  viewer: Viewer,
  { localId, most }: { readonly localId: string; readonly most: number },
  damaged: OnDamage = nobody,
): Promise<TaskView | HeavyView | null> {
  return inOneSnapshot(db, async (tx) => {
    const heads = await readHeads(tx, viewer, [localId])
    const [weight] = heads.length > 0 ? await weighTasks(tx, [localId]) : []
    if (!weight) return null
    const heavyBytes = shownBytes(weight)
    if (heavyBytes > most) return { heavyBytes }
    return viewsOf(heads, await readContents(tx, [weight], damagedOf(viewer, damaged)))[0] ?? null
  })
}

export interface ViewsPage {
  readonly tasks: readonly TaskView[]
  /** The page after this one begins behind it; null where there is none. */
  readonly next: string | null
}

/** Views after one, in the order of their ids: as many as asked for, or as many as one page may weigh. `most` as above, of all of them. */
export function readViewsPage(
  db: Database['pool'],
  viewer: Viewer,
  { after, limit, most }: { readonly after: string | null; readonly limit: number; readonly most: number },
  damaged: OnDamage = nobody,
): Promise<ViewsPage | HeavyView> {
  return inOneSnapshot(db, async (tx) => {
    // One more than asked for tells whether there is a next page; heavy ones make the page shorter, and then there is one, too.
    const ids = await listViewIds(tx, viewer, after, limit + 1)
    const weights = await weighTasks(tx, ids.slice(0, limit))
    const page = weights.slice(0, fitting(weights))
    const heavyBytes = page.reduce((bytes, weight) => bytes + shownBytes(weight), 0)
    if (heavyBytes > most) return { heavyBytes }
    const heads = await readHeads(
      tx,
      viewer,
      page.map(({ id }) => id),
    )
    const tasks = viewsOf(heads, await readContents(tx, page, damagedOf(viewer, damaged)))
    return { tasks, next: ids.length > page.length ? (page.at(-1)?.id ?? null) : null }
  })
}

/** One snapshot for all statements: a commit between two of them would show the state of one version with the artifacts of the next. */
const inOneSnapshot = <T>(db: Database['pool'], read: (tx: Connection) => Promise<T>): Promise<T> =>
  db.transaction(async (tx) => {
    await tx.query(sql.unsafe`set transaction isolation level repeatable read, read only`)
    return read(tx)
  })

const nobody: OnDamage = () => undefined
const damagedOf =
  ({ organizationId }: Viewer, damaged: OnDamage) =>
  (taskId: string, parts: number): void =>
    damaged({ organizationId, taskId, parts })

/** In the order of the ids. */
async function readHeads(db: Transaction, viewer: Viewer, ids: readonly string[]): Promise<readonly HeadRow[]> {
  if (ids.length === 0) return []
  const heads = await db.any(sql.type(Head)`
    select ${headFor(viewer)} from task t ${joins}
    where t.organization_id = ${viewer.organizationId} and t.id = any(${sql.array([...ids], 'uuid')}) and ${taskHeld(viewer, 'read')}`)
  const byId = new Map(heads.map((row) => [row.localId, row]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

const viewsOf = (heads: readonly HeadRow[], { messages, artifacts, transitions }: TaskContents): readonly TaskView[] =>
  heads.map((row) => ({
    ...rowOf(row),
    skillId: row.skillId,
    version: row.version,
    messages: messages.get(row.localId) ?? [],
    artifacts: artifacts.get(row.localId) ?? [],
    transitions: transitions.get(row.localId) ?? [],
  }))

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

/** How often a task has moved, and its agent's last message. */
export interface TaskQuestion {
  readonly moves: number
  readonly lastWords: string
}

/** Of a task that somebody may see: without its view, which may be a hundred mebibytes. */
export async function readQuestion(db: Connection, localId: string): Promise<TaskQuestion> {
  return db.one(sql.type(z.custom<TaskQuestion>())`
    select (select count(*)::int from task_transition where task_id = ${localId}) as moves,
      coalesce((select message_id from task_message where task_id = ${localId} and role = 'agent'
        order by position desc, message_id desc limit 1), '') as "lastWords"`)
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
