/**
 * The audit trail for reading: pages of records, newest first, and the tasks they speak of. Does not write (audit.ts)
 * and does not decide who may read the whole of it (http/audit.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import { kindsOf, type AuditContext, type AuditGroup, type AuditRecord } from '../domain/audit.ts'
import type { Connection } from './connection.ts'
import { held } from './visibility.ts'

/** A place in the order of pages. `at` has microseconds: a page that ends between two of one millisecond must not repeat them. */
export interface AuditPlace {
  readonly at: string
  readonly id: string
}

export interface AuditFilter {
  /** Null: everything that the organization did. */
  readonly taskId: string | null
  readonly group: AuditGroup | 'all'
  readonly personId: string | null
  /** ISO 8601; both ends belong to the range. */
  readonly since: string | null
  readonly until: string | null
  readonly before: AuditPlace | null
  readonly limit: number
}

export type PlacedRecord = AuditRecord & { readonly place: AuditPlace }

const everything = sql.fragment`true`
const uncommon = sql.fragment`a.kind not in ('task.send.accepted', 'task.cancel.accepted')`
const kindIn = (kinds: readonly string[]): FragmentSqlToken =>
  sql.fragment`a.kind = any(${sql.array([...kinds], 'text')})`

/** Of `audit a`. What is about people and access is nobody's business who only reads a task. */
function conditions({ taskId, group, personId, since, until, before }: AuditFilter): FragmentSqlToken {
  const wanted = [
    taskId === null ? everything : sql.fragment`not ${kindIn(kindsOf('access'))}`,
    group === 'all' ? everything : kindIn(kindsOf(group)),
    // As the partial index has it, so that it is used.
    group === 'all' || group === 'commands' ? everything : uncommon,
    personId === null ? everything : sql.fragment`a.actor_person_id = ${personId}`,
    since === null ? everything : sql.fragment`a.at >= ${since}::timestamptz`,
    until === null ? everything : sql.fragment`a.at <= ${until}::timestamptz`,
    before === null ? everything : sql.fragment`(a.at, a.id) < (${before.at}::timestamptz, ${before.id}::uuid)`,
  ]
  return sql.fragment`${sql.join(wanted, sql.fragment` and `)}`
}

/** A task's records are those that name it, and that of the command that brought it, which is older than the task. */
function page(organizationId: string, filter: AuditFilter): FragmentSqlToken {
  const wanted = conditions(filter)
  const newest = sql.fragment`order by at desc, id desc limit ${filter.limit}`
  if (filter.taskId === null)
    return sql.fragment`select a.* from audit a where a.organization_id = ${organizationId} and ${wanted} ${newest}`
  return sql.fragment`
    (select a.* from audit a
      where a.task_id = ${filter.taskId} and a.organization_id = ${organizationId} and ${wanted} ${newest})
    union all
    (select a.* from task t join command c on c.id = t.command_id
      join audit a on a.organization_id = t.organization_id and a.at = c.created_at and a.subject_id = c.id::text
      where t.id = ${filter.taskId} and t.organization_id = ${organizationId} and a.task_id is null and ${wanted})
    ${newest}`
}

/** A row that somebody tampered with must not take the page along: the page is where that is told. */
const uuidPattern = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
const Stored = z.custom<AuditRecord & { readonly exactAt: string }>()

/** Newest first. The page is cut before anything is joined. */
export async function listAudit(
  db: Connection,
  organizationId: string,
  filter: AuditFilter,
): Promise<readonly PlacedRecord[]> {
  const rows = await db.any(sql.type(Stored)`
    with page as (${page(organizationId, filter)})
    select p.id as key, p.at, to_char(p.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "exactAt", p.kind,
      p.actor_type as "actorType", p.actor_person_id as "actorUserId", coalesce(p.task_id, c.task_id) as "taskId",
      p.subject_id as "subjectId", p.data
    from page p left join command c on c.id =
      case when p.kind in ('task.send.accepted', 'task.cancel.accepted') and p.subject_id ~ ${uuidPattern}
        then p.subject_id::uuid end
    order by p.at desc, p.id desc`)
  return rows.map(({ exactAt, ...record }) => ({ ...record, place: { at: exactAt, id: record.key } }))
}

const Context = z.custom<AuditContext & { readonly id: string }>()
const untitled = 'Untitled task'

/** Tasks that the viewer may read, by id: what they are called and where they stand. */
export async function contextOf(
  db: Connection,
  viewer: Viewer,
  taskIds: readonly string[],
): Promise<ReadonlyMap<string, AuditContext>> {
  if (taskIds.length === 0) return new Map()
  const rows = await db.any(sql.type(Context)`
    select t.id, coalesce(t.title, ${untitled}) as title, a.name as "agentName", t.state
    from task t join agent a on a.id = t.agent_id
    where t.organization_id = ${viewer.organizationId} and t.id = any(${sql.array([...new Set(taskIds)], 'uuid')})
      and ${held(viewer, 'read', sql.fragment`t.agent_id`, sql.fragment`t.skill_id`)}`)
  return new Map(rows.map(({ id, ...context }) => [id, context]))
}
