/**
 * Actors as rows: lock, write, move to the archive. Owns the live table, its archive and the log; knows nothing of machines, of
 * what a snapshot means, or of leases (leases.ts). Every function here is one statement, for any number of actors.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { StateValue } from '../domain/chart.ts'
import type { Connection, Transaction } from './connection.ts'
import { drawnId, hadEnded } from './transaction-ids.ts'

export interface ActorRef {
  readonly kind: string
  readonly id: string
}

/** In a log's line and as a key: `command/0190…`. */
export const actorKey = ({ kind, id }: ActorRef): string => `${kind}/${id}`

export interface Snapshot {
  readonly value: StateValue
  readonly context: Record<string, unknown>
  readonly status: 'active' | 'done'
}

/** A delayed event, due at an instant (ISO 8601 UTC). */
export interface Timer {
  readonly event: { readonly type: string }
  readonly dueAt: string
}

export interface ActorRow extends ActorRef {
  readonly organizationId: string
  /** Whose queue its work is in: an agent, for work that talks to one. */
  readonly lane: string | null
  readonly machineVersion: string
  readonly revision: number
  readonly snapshot: Snapshot
  /** The one thing this state wants done outside, by name. */
  readonly work: string | null
  /** Set by the commit that allows the work to begin; what had begun is never simply begun again. */
  readonly workStartedAt: string | null
  readonly timers: Readonly<Record<string, Timer>>
  readonly leaseToken: string | null
  readonly leaseOwner: string | null
  readonly leaseUntil: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

// Runtime rows are our own writes, hundreds a second: they are typed here and not validated again on every read.
const Row = z.custom<ActorRow>()
const Ref = z.custom<ActorRef>()
const Written = z.object({ number: z.number().nullable() })
const Fate = z.object({ fate: z.enum(['committed', 'aborted', 'unknown']) })

/** Of `actor a`, as an ActorRow. */
export const actorColumns = sql.fragment`
  a.kind, a.id, a.organization_id as "organizationId", a.lane, a.machine_version as "machineVersion", a.revision, a.snapshot, a.work,
  a.work_started_at as "workStartedAt", a.timers, a.lease_token as "leaseToken", a.lease_owner as "leaseOwner",
  a.lease_until as "leaseUntil", a.created_at as "createdAt", a.updated_at as "updatedAt"`

/** Locks live actors until the transaction ends, in one order (kind, id), so that two batches cannot wait for each other. */
export async function lockActors(tx: Transaction, refs: readonly ActorRef[]): Promise<readonly ActorRow[]> {
  if (refs.length === 0) return []
  return tx.any(sql.type(Row)`
    select ${actorColumns} from actor a
    where (a.kind, a.id) in (select * from ${sql.unnest(
      refs.map((ref) => [ref.kind, ref.id]),
      ['text', 'uuid'],
    )})
    order by a.kind, a.id for update`)
}

/** The lease a write leaves behind: none, the one it had, or a new one for `leaseMs` from now (database time). */
export type LeaseWrite =
  | { readonly kind: 'none' }
  | { readonly kind: 'keep'; readonly token: string; readonly owner: string }
  | { readonly kind: 'take'; readonly token: string; readonly owner: string; readonly leaseMs: number }

export interface ActorWrite extends ActorRef {
  readonly organizationId: string
  readonly lane: string | null
  readonly machineVersion: string
  readonly revision: number
  readonly snapshot: Snapshot
  readonly work: string | null
  readonly workStartedAt: string | null
  readonly timers: Readonly<Record<string, Timer>>
  readonly lease: LeaseWrite
  readonly createdAt: string
  /** It has no row yet. */
  readonly fresh: boolean
}

export interface LogEntry extends ActorRef {
  readonly revision: number
  readonly machineVersion: string
  /** JSON text of the event, payloads left out. */
  readonly event: string
  readonly value: StateValue
  readonly facts: readonly string[]
  readonly cause: string
}

export interface OutboxEntry {
  readonly organizationId: string
  readonly kind: string
  readonly subjectId: string
  readonly data: Record<string, unknown>
}

const asInput = (write: ActorWrite) => ({
  kind: write.kind,
  id: write.id,
  organization_id: write.organizationId,
  lane: write.lane,
  machine_version: write.machineVersion,
  revision: write.revision,
  snapshot: write.snapshot,
  work: write.work,
  work_started_at: write.workStartedAt,
  timers: write.timers,
  timer_at: Object.values(write.timers).reduce<string | null>(
    (least, { dueAt }) => (least === null || dueAt < least ? dueAt : least),
    null,
  ),
  lease_token: write.lease.kind === 'none' ? null : write.lease.token,
  lease_owner: write.lease.kind === 'none' ? null : write.lease.owner,
  lease_ms: write.lease.kind === 'take' ? write.lease.leaseMs : null,
  fresh: write.fresh,
  final: write.snapshot.status === 'done',
  created_at: write.createdAt,
})

/** Which of these finished and are in the archive. */
export async function findArchived(tx: Transaction, refs: readonly ActorRef[]): Promise<readonly ActorRef[]> {
  if (refs.length === 0) return []
  return tx.any(sql.type(Ref)`
    select kind, id from actor_archive where (kind, id) in (select * from ${sql.unnest(
      refs.map((ref) => [ref.kind, ref.id]),
      ['text', 'uuid'],
    )})`)
}

export interface ActorBatch {
  readonly writes: readonly ActorWrite[]
  readonly log: readonly LogEntry[]
  readonly outbox: readonly OutboxEntry[]
  /** Names this write, once: found in a row, it proves that the row was committed by it. */
  readonly batchId: string
  readonly at: string
}

const everybody = sql.fragment`true`

/**
 * A batch as common table expressions of a statement: live rows, the archive, the log and, as `told`, the outbox. An actor is
 * due when its work may be claimed, when its lease runs out, or when its earliest timer rings, whichever comes first.
 * `only`: of `id`, whether that actor is written at all.
 */
export function actorExpressions(
  batch: ActorBatch,
  only: (id: FragmentSqlToken) => FragmentSqlToken = () => everybody,
) {
  const log = batch.log.map(({ id: actor_id, machineVersion: machine_version, ...entry }) => ({
    ...entry,
    actor_id,
    machine_version,
  }))
  const outbox = batch.outbox.map(({ organizationId: organization_id, subjectId: subject_id, ...entry }) => ({
    ...entry,
    organization_id,
    subject_id,
  }))
  return sql.fragment`
    input as (
      select i.*,
        case when i.lease_token is null then null
             when i.lease_ms is not null then now() + i.lease_ms * interval '1 millisecond' end as new_until
      from jsonb_to_recordset(${JSON.stringify(batch.writes.map(asInput))}::jsonb) as i(
        kind text, id uuid, organization_id uuid, lane uuid, machine_version text, revision int, snapshot jsonb, work text,
        work_started_at timestamptz, timers jsonb, timer_at timestamptz, lease_token uuid, lease_owner text, lease_ms int,
        fresh boolean, final boolean, created_at timestamptz)
      where ${only(sql.fragment`i.id`)}
    ), updated as (
      update actor a set
        machine_version = i.machine_version, revision = i.revision, snapshot = i.snapshot, work = i.work,
        work_started_at = i.work_started_at, timers = i.timers, lease_token = i.lease_token, lease_owner = i.lease_owner,
        lease_until = case when i.lease_token is null then null else coalesce(i.new_until, a.lease_until) end,
        wake_at = least(i.timer_at, case when i.work is null then null when i.lease_token is null then now()
                                         else coalesce(i.new_until, a.lease_until) end),
        updated_at = ${batch.at}
      from input i where not i.fresh and not i.final and a.kind = i.kind and a.id = i.id
    ), inserted as (
      insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        lease_token, lease_owner, lease_until, created_at, updated_at)
      select kind, id, organization_id, lane, machine_version, revision, snapshot, work, work_started_at, timers,
        least(timer_at, case when work is null then null else coalesce(new_until, now()) end),
        lease_token, lease_owner, new_until, created_at, ${batch.at}
      from input where fresh and not final
    ), removed as (
      delete from actor a using input i where i.final and not i.fresh and a.kind = i.kind and a.id = i.id
    ), archived as (
      insert into actor_archive (kind, id, organization_id, machine_version, revision, snapshot, created_at, updated_at)
      select kind, id, organization_id, machine_version, revision, snapshot, created_at, ${batch.at} from input where final
    ), logged as (
      insert into actor_log (actor_id, kind, revision, machine_version, event, value, facts, cause, at, batch_id)
      select l.actor_id, l.kind, l.revision, l.machine_version, l.event, l.value, l.facts, l.cause, ${batch.at}, ${batch.batchId}
      from jsonb_to_recordset(${JSON.stringify(log)}::jsonb) as l(
        actor_id uuid, kind text, revision int, machine_version text, event text, value jsonb, facts text[], cause text)
      where ${only(sql.fragment`l.actor_id`)}
    ), told as (
      insert into fact (organization_id, kind, subject_id, data, at, batch_id)
      select o.organization_id, o.kind, o.subject_id, o.data, ${batch.at}, ${batch.batchId}
      from jsonb_to_recordset(${JSON.stringify(outbox)}::jsonb) as o(
        organization_id uuid, kind text, subject_id text, data jsonb)
      where ${only(sql.fragment`o.subject_id::uuid`)}
      returning number
    )`
}

/** Writes a batch in one statement. Returns the number of the last fact that it told, or null where it told none. */
export async function writeActors(tx: Transaction, batch: ActorBatch): Promise<number | null> {
  if (batch.writes.length + batch.log.length + batch.outbox.length === 0) return null
  const { number } = await tx.one(sql.type(Written)`
    with ${actorExpressions(batch)} select (select max(number) from told) as number`)
  return number
}

/** Where a commit can be found again: by a fact's number, by a log entry's key, or in the row of an actor that it moved. */
export interface Evidence {
  readonly batchId: string
  readonly xid: string
  readonly number: number | null
  readonly entry: Pick<LogEntry, 'kind' | 'id' | 'revision'> | null
  /** For steps that are not logged and told nothing; it proves as long as nobody moves the actor again. */
  readonly moved: Pick<ActorWrite, 'kind' | 'id' | 'revision'> | null
}

/** Those of these actors, all born by one batch, whose birth is in the log: of a batch that may have been written in part. */
export async function findBorn(db: Connection, batchId: string, refs: readonly ActorRef[]): Promise<readonly string[]> {
  const rows = await db.any(sql.type(Ref)`
    select kind, actor_id as id from actor_log where batch_id = ${batchId} and revision = 1
      and (kind, actor_id) in (select * from ${sql.unnest(
        refs.map(({ kind, id }) => [kind, id]),
        ['text', 'uuid'],
      )})`)
  return rows.map(({ id }) => id)
}

/**
 * What became of a transaction whose commit was never acknowledged. Its own rows are the proof: a transaction id alone is
 * none, for a server that crashed before the record was on disk gives the id to somebody else. That the rows are missing proves
 * something only of a transaction that had ended for the snapshot which does not show them, or whose id is still to be given
 * out. `unknown`: of any other, it may be under way in a server that has not noticed.
 */
export async function fateOf(db: Connection, evidence: Evidence): Promise<'committed' | 'aborted' | 'unknown'> {
  const { batchId, xid, number, entry, moved } = evidence
  return db.oneFirst(sql.type(Fate)`
    select case
      when exists (select 1 from fact where number = ${number} and batch_id = ${batchId}) then 'committed'
      when exists (
        select 1 from actor_log where actor_id = ${entry?.id ?? null} and kind = ${entry?.kind ?? null}
          and revision = ${entry?.revision ?? null} and batch_id = ${batchId}) then 'committed'
      when exists (
        select 1 from actor where kind = ${moved?.kind ?? null} and id = ${moved?.id ?? null}
          and revision = ${moved?.revision ?? null} and xmin = ${xid}::xid8::xid) then 'committed'
      when ${xid}::xid8 >= ${drawnId} then 'aborted'
      when not ${hadEnded(xid)} then 'unknown'
      else 'aborted' end as fate`)
}
