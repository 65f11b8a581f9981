/**
 * An actor while a batch holds its row: what it was, what the batch has made of it, the row it becomes, and the lease under
 * which its next work begins. Does not move anything (batch.ts) and does not know whose room it is (worker.ts).
 */
import type { ActorRef, ActorRow, ActorWrite, LeaseWrite, Snapshot } from '../../persistence/actors.ts'
import { isDoubted, type Kind } from './kinds.ts'
import type { Intake, Launch, Spawn } from './step.ts'

export interface Living {
  readonly ref: ActorRef
  readonly organizationId: string
  readonly lane: string | null
  readonly createdAt: string
  readonly fresh: boolean
  readonly carry?: unknown
  snapshot: Snapshot
  revision: number
  work: string | null
  workStartedAt: string | null
  timers: ActorWrite['timers']
  lease: LeaseWrite
  moved: boolean
  /** The step's own lease goes on to the state's next work. */
  continuing: { token: string } | null
}

const unmoved = { moved: false, continuing: null } as const

/** As its locked row says. */
export function livingOf(row: ActorRow): Living {
  const { kind, id, organizationId, lane, createdAt, snapshot, revision, work, workStartedAt, timers } = row
  const lease: LeaseWrite =
    row.leaseToken === null || row.leaseOwner === null
      ? { kind: 'none' }
      : { kind: 'keep', token: row.leaseToken, owner: row.leaseOwner }
  const known = {
    organizationId,
    lane,
    createdAt,
    fresh: false,
    snapshot,
    revision,
    work,
    workStartedAt,
    timers,
    lease,
  }
  return { ref: { kind, id }, ...known, ...unmoved }
}

/** As it is spawned, before anything has happened to it. */
export function newborn({ ref, organizationId, lane, carry }: Spawn, snapshot: Snapshot, createdAt: string): Living {
  const born = { ref, organizationId, lane, createdAt, fresh: true, carry, snapshot, revision: 0 }
  return { ...born, work: null, workStartedAt: null, timers: {}, lease: { kind: 'none' }, ...unmoved }
}

/** The row that it becomes. */
export function rowOf(actor: Living, machineVersion: string): ActorWrite {
  const { ref, organizationId, lane, revision, snapshot, work, workStartedAt, timers, lease, createdAt, fresh } = actor
  const where = { ...ref, organizationId, lane, machineVersion, createdAt, fresh }
  return { ...where, revision, snapshot, work, workStartedAt, timers, lease }
}

/** Of the batch: when it is, and monotonic milliseconds before its transaction began. */
export interface BatchTimes {
  readonly at: Date
  readonly startedAt: number
}

/**
 * Work that became due is begun here and now when there is room: the claim's round trip is saved, its meaning kept. `leftDue`:
 * there is none, and it waits in its row for whoever has. Null: there is no work, or it is under way.
 */
export function leaseForWork(
  actor: Living,
  kind: Kind,
  intake: Intake,
  { at, startedAt }: BatchTimes,
): Launch | 'leftDue' | null {
  if (actor.work === null || actor.lease.kind !== 'none') return null
  const { ref, organizationId, lane, carry, work, continuing, snapshot } = actor
  const reserved = continuing === null
  const { context } = snapshot
  const seat = { lane, isDoubted: isDoubted(kind, context) }
  if (reserved && !intake.takeRoom({ kind: ref.kind, ...seat })) return 'leftDue'
  const token = continuing?.token ?? intake.newToken()
  actor.lease = { kind: 'take', token, owner: intake.owner, leaseMs: kind.leaseMs }
  actor.workStartedAt = at.toISOString()
  return { ref, organizationId, context, work, token, ...seat, trustedFrom: startedAt, carry, reserved }
}
