/**
 * Actors for reading: lists, one actor, its log. Live and archived rows look alike here. Does not move anything.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { StateValue } from '../domain/chart.ts'
import type { Snapshot, Timer } from './actors.ts'
import type { Connection } from './database.ts'

export interface ActorRecord {
  readonly kind: string
  readonly id: string
  readonly snapshot: Snapshot
  readonly work: string | null
  readonly workStartedAt: string | null
  readonly timers: Readonly<Record<string, Timer>>
  readonly leaseOwner: string | null
  readonly leaseUntil: string | null
  readonly revision: number
  readonly machineVersion: string
  readonly createdAt: string
  readonly updatedAt: string
  /** What a person calls it: the task's title, or the first words of the message. */
  readonly title: string | null
  readonly agentId: string | null
  /** The local task it is about. */
  readonly taskId: string | null
}

const Timers = z.record(z.string(), z.object({ event: z.looseObject({ type: z.string() }), dueAt: z.string() }))
const Value: z.ZodType<StateValue> = z.lazy(() => z.union([z.string(), z.record(z.string(), Value)]))
const Record_ = z.object({
  kind: z.string(),
  id: z.string(),
  snapshot: z.object({
    value: Value,
    context: z.record(z.string(), z.unknown()),
    status: z.enum(['active', 'done']),
  }),
  work: z.string().nullable(),
  workStartedAt: z.string().nullable(),
  timers: Timers,
  leaseOwner: z.string().nullable(),
  leaseUntil: z.string().nullable(),
  revision: z.number(),
  machineVersion: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
  title: z.string().nullable(),
  agentId: z.string().nullable(),
  taskId: z.string().nullable(),
})

export interface ActorFilter {
  readonly kind: string | null
  /** A state's name, anywhere in the state value. */
  readonly state: string | null
  /** Only what needs a person's eye: failed, uncertain, stopped, or a lease that ran out. */
  readonly attention: boolean
  /** Part of the id, or of the state. */
  readonly q: string | null
  readonly before: { readonly updatedAt: string; readonly id: string } | null
  readonly limit: number
}

const everyActor = sql.fragment`
  select kind, id, organization_id, machine_version, revision, snapshot, work, work_started_at, timers, lease_owner, lease_until,
    created_at, updated_at from actor
  union all
  select kind, id, organization_id, machine_version, revision, snapshot, null, null, '{}'::jsonb, null, null,
    created_at, updated_at from actor_archive`

const selected = sql.fragment`
  select a.kind, a.id, a.snapshot, a.work, a.work_started_at as "workStartedAt", a.timers, a.lease_owner as "leaseOwner",
    a.lease_until as "leaseUntil", a.revision, a.machine_version as "machineVersion", a.created_at as "createdAt",
    a.updated_at as "updatedAt", coalesce(t.title, c.title) as title, coalesce(t.agent_id, c.agent_id) as "agentId",
    coalesce(t.id, c.task_id) as "taskId"`

const subjects = sql.fragment`
  left join task t on t.id = a.id and a.kind <> 'command'
  left join lateral (
    select command.agent_id, command.task_id, coalesce(owned.title, command.title) as title
    from command left join task owned on owned.id = command.task_id where command.id = a.id and a.kind = 'command'
  ) c on true`

const attentionStates = sql.fragment`(
  a.snapshot->>'value' in ('failed', 'uncertain', 'stopped') or a.snapshot->'value'->'open'->>'deadline' in ('overdue', 'escalated')
  or (a.work is not null and a.lease_until < now()))`

/** Actors of an organization, the last moved first. */
export async function listActors(
  db: Connection,
  organizationId: string,
  filter: ActorFilter,
): Promise<readonly ActorRecord[]> {
  const conditions = [sql.fragment`a.organization_id = ${organizationId}`]
  if (filter.kind !== null) conditions.push(sql.fragment`a.kind = ${filter.kind}`)
  if (filter.state !== null) conditions.push(sql.fragment`a.snapshot->>'value' like ${`%${escapeLike(filter.state)}%`}`)
  if (filter.attention) conditions.push(attentionStates)
  if (filter.q !== null) {
    const pattern = `%${escapeLike(filter.q)}%`
    conditions.push(
      sql.fragment`(a.id::text like ${pattern} or a.kind like ${pattern} or a.snapshot->>'value' like ${pattern})`,
    )
  }
  if (filter.before !== null)
    conditions.push(sql.fragment`(a.updated_at, a.id) < (${filter.before.updatedAt}, ${filter.before.id})`)
  return db.any(
    sql.type(Record_)`${selected} from (${everyActor}) a ${subjects}
      where ${sql.join(conditions, sql.fragment` and `)} order by a.updated_at desc, a.id desc limit ${filter.limit}`,
  )
}

const escapeLike = (text: string): string => text.replace(/[\\%_]/g, (c) => `\\${c}`)

export async function findActor(
  db: Connection,
  organizationId: string,
  kind: string,
  id: string,
): Promise<ActorRecord | null> {
  return db.maybeOne(
    sql.type(Record_)`${selected} from (${everyActor}) a ${subjects}
      where a.organization_id = ${organizationId} and a.kind = ${kind} and a.id = ${id}`,
  )
}

export interface LogRecord {
  readonly revision: number
  readonly machineVersion: string
  /** JSON text. */
  readonly event: string
  readonly value: StateValue
  readonly facts: readonly string[]
  readonly cause: string
  readonly at: string
}

/** Committed steps after a revision, oldest first. */
export async function readActorLog(
  db: Connection,
  kind: string,
  id: string,
  afterRevision: number,
  limit: number,
): Promise<readonly LogRecord[]> {
  return db.any(
    sql.type(
      z.object({
        revision: z.number(),
        machineVersion: z.string(),
        event: z.string(),
        value: Value,
        facts: z.array(z.string()),
        cause: z.string(),
        at: z.string(),
      }),
    )`
      select revision, machine_version as "machineVersion", event, value, facts, cause, at from actor_log
      where actor_id = ${id} and kind = ${kind} and revision > ${afterRevision} order by revision limit ${limit}`,
  )
}
