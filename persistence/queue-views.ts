/**
 * What waits and who works, for reading: queues, leases and what needs a person, of one organization. Does not claim and
 * does not judge (domain/actor-explanation.ts). Every count stops at a limit or reads only live rows that are scheduled, so that
 * people may look while it is busy.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { mayEver, type Viewer } from '../domain/access.ts'
import { stuckAfterMs } from '../domain/patience.ts'
import { attentionCountLimit, queueCountLimit, type HeldLeases, type QueuesAnswer } from '../domain/queue.ts'
import { isInState, needsPerson, unsettledEnd, type AttentionState } from './actor-views.ts'
import type { ActorRef } from './actors.ts'
import type { Connection } from './connection.ts'
import { hasCount, isUnheld } from './leases.ts'
import { countWorking, isHeardOf, readProcesses } from './processes.ts'

const Clock = z.object({ at: z.string() })
const Due = z.object({ kind: z.string(), due: z.number(), oldestDueAt: z.string().nullable() })
const Held = z.object({
  owner: z.string(),
  kind: z.string(),
  held: z.number(),
  expired: z.number(),
  oldestSince: z.string().nullable(),
  nextEndAt: z.string().nullable(),
})
/** A process works for every organization: there is a row also of what it holds for others alone, without numbers. */
const isOurs = (row: z.infer<typeof Held>): row is HeldLeases => row.held > 0
const Commands = z.object({ pending: z.number(), dispatching: z.number(), oldestPendingAt: z.string().nullable() })
const Busiest = z.object({ kind: z.string(), name: z.string(), held: z.number() })
const Needing = z.object({ kind: z.string(), attention: z.number(), unseen: z.number() })
const nobody = { attention: 0, unseen: 0 }

/** By the database's clock, which is the one that leases and timers live by. */
export async function readQueues(
  db: Connection,
  organizationId: string,
  kinds: readonly string[],
  attention: readonly AttentionState[],
): Promise<QueuesAnswer> {
  const { at } = await db.one(sql.type(Clock)`select now() as at`)
  const due = await readDue(db, organizationId, kinds)
  const held = await readHeld(db, organizationId)
  const busiest = new Map((await readBusiest(db, organizationId)).map(({ kind, ...each }) => [kind, each]))
  const holding = new Set(held.map(({ owner }) => owner))
  const commands = await readOpenCommands(db, organizationId)
  const needing = await countAttention(db, organizationId, attention)
  const processes = await readProcesses(db)
  return {
    at,
    kinds: due.map((row) => ({
      ...row,
      ...(needing.get(row.kind) ?? nobody),
      busiest: busiest.get(row.kind) ?? null,
    })),
    leases: held.filter(isOurs),
    commands,
    processes: processes.map((each) => ({ ...each, holds: holding.has(each.owner) })),
  }
}

/** By the index that claims use. */
const readDue = (db: Connection, organizationId: string, kinds: readonly string[]) =>
  db.any(sql.type(Due)`
    select k.kind, d.due, d."oldestDueAt"
    from unnest(${sql.array([...kinds], 'text')}) with ordinality as k(kind, place)
    cross join lateral (
      select count(*)::int as due, min(wake_at) as "oldestDueAt" from (
        select wake_at from actor
        where kind = k.kind and wake_at <= now() and organization_id = ${organizationId}
          and ${isUnheld(sql.fragment`actor`)}
        order by wake_at limit ${queueCountLimit + 1}) first) d
    order by k.place`)

/** A row with a lease is always scheduled, for its lease's end: so the same index finds them among what only rests. */
const readHeld = (db: Connection, organizationId: string) =>
  db.any(sql.type(Held)`
    select lease_owner as owner, kind, (count(*) filter (where ours))::int as held,
      (count(*) filter (where ours and lease_until <= now()))::int as expired,
      min(work_started_at) filter (where ours) as "oldestSince", min(lease_until) filter (where ours) as "nextEndAt"
    from (
      select lease_owner, kind, work_started_at, lease_until, organization_id = ${organizationId} as ours
      from actor where wake_at is not null and lease_owner is not null) leased
    group by lease_owner, kind order by lease_owner, kind`)

/** Of each kind the agent that most leases are for, of those who are heard of, in the same way. */
const readBusiest = (db: Connection, organizationId: string) =>
  db.any(sql.type(Busiest)`
    select distinct on (of.kind) of.kind, g.name, of.held
    from (
      select kind, lane, count(*)::int as held from actor
      where wake_at is not null and lease_until > now() and organization_id = ${organizationId} and lane is not null
        and ${isHeardOf(sql.fragment`lease_owner`)}
      group by kind, lane) of
    join agent g on g.id = of.lane
    order by of.kind, of.held desc, g.id`)

/** Commands' ids grow with time, so the first by id are the oldest: no index by age is needed. */
const readOpenCommands = (db: Connection, organizationId: string) =>
  db.one(sql.type(Commands)`
    select (count(*) filter (where waits))::int as pending, (count(*) filter (where not waits))::int as dispatching,
      min(created_at) filter (where waits) as "oldestPendingAt"
    from (
      select jsonb_exists(snapshot->'value', 'pending') as waits, created_at from actor
      where kind = 'command' and organization_id = ${organizationId} order by id limit ${queueCountLimit + 1}) first`)

async function countAttention(
  db: Connection,
  organizationId: string,
  states: readonly AttentionState[],
): Promise<ReadonlyMap<string, Omit<z.infer<typeof Needing>, 'kind'>>> {
  const rows = await db.any(sql.type(Needing)`
    select kind, count(*)::int as attention, (count(*) filter (where unseen))::int as unseen from (
      (select a.kind, a.kind in ('subscription', 'reconciliation')
          and exists (select 1 from agent g where g.id = a.lane and g.enabled) as unseen from actor a
        where a.organization_id = ${organizationId} and ${needsPerson(states)}
        limit ${attentionCountLimit + 1})
      union all
      (select a.kind, false as unseen from actor_archive a
        where a.organization_id = ${organizationId} and ${unsettledEnd} and ${isInState(states)}
        order by a.updated_at desc, a.id desc limit ${attentionCountLimit + 1})
    ) found group by kind`)
  return new Map(rows.map(({ kind, ...counts }) => [kind, counts]))
}

/**
 * Who holds the places that an actor waits for, by leases that have not run out, and lives: by process, of its own lane (an agent) and of
 * its kind. For whichever organization, for a process has one set of places; of another's nothing is told but that they are taken.
 */
const Taken = z.object({
  owner: z.string(),
  taken: z.number(),
  ofLane: z.number(),
  ofDoubted: z.number(),
  requestSince: z.string().nullable(),
})
const Waiting = z.object({ lane: z.string().nullable(), dueAt: z.string(), ahead: z.number() })

export interface StoredWait {
  readonly dueAt: string
  /** How many of its kind and its organization have waited longer. */
  readonly ahead: number
  readonly taken: Omit<z.infer<typeof Taken>, 'requestSince'>[]
  /** Processes that told lately that they work. */
  readonly working: number
  /** When the oldest request of the same lane began that is on its way. */
  readonly requestSince: string | null
}

/** `doubt`: the counts by which its kind tells what failed or was slow last. Null unless its work is due and nobody does it, its lease ran out, or its timer is over for longer than any loop needs; also for who is no administrator, for what is before it is others'. */
export async function readWait(
  db: Connection,
  { organizationId, role }: Viewer,
  { kind, id }: ActorRef,
  doubt?: readonly string[],
): Promise<StoredWait | null> {
  if (!mayEver(role, 'administer')) return null
  const waiting = await db.maybeOne(sql.type(Waiting)`
    select a.lane, a.wake_at as "dueAt", (
      select count(*)::int from (
        select 1 from actor b where b.kind = a.kind and b.wake_at < a.wake_at and ${isUnheld(sql.fragment`b`)}
          and b.organization_id = a.organization_id limit ${queueCountLimit + 1}) earlier) as ahead
    from actor a
    where a.kind = ${kind} and a.id = ${id} and a.organization_id = ${organizationId}
      and ${isUnheld(sql.fragment`a`)}
      and a.wake_at <= now() - case when a.work is null then ${stuckAfterMs} else 0 end * interval '1 millisecond'`)
  if (!waiting) return null
  const { lane, dueAt, ahead } = waiting
  const doubted = doubt === undefined ? sql.fragment`false` : hasCount(doubt)
  const taken = await db.any(sql.type(Taken)`
    select lease_owner as owner, count(*)::int as taken, (count(*) filter (where lane = ${lane}))::int as "ofLane",
      (count(*) filter (where ${doubted}))::int as "ofDoubted",
      min(work_started_at) filter (where lane = ${lane} and kind = 'command' and work = 'deliver') as "requestSince"
    from actor
    where kind = ${kind} and wake_at is not null and lease_until > now()
      and ${isHeardOf(sql.fragment`lease_owner`)}
    group by lease_owner order by lease_owner`)
  const working = await countWorking(db)
  const [requestSince = null] = taken.flatMap((each) => each.requestSince ?? []).toSorted()
  return { dueAt, ahead, working, taken: taken.map(({ requestSince: _, ...each }) => each), requestSince }
}
