/**
 * Push as rows: which callback stands for which task, and which deliveries were taken lately. Holds no secret and decides
 * nothing about who may deliver (actors/push-receipts.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection, Transaction } from './connection.ts'
import { inQuestion } from './reconciliation.ts'

/** What an agent was told, and what a delivery is measured by. */
export interface PushRegistration {
  readonly id: string
  readonly taskId: string
  /** As it was said in the registration: the person's, or the one of the card's interface; empty for none. */
  readonly tenant: string
}

const Registration = z.object({ id: z.string(), taskId: z.string(), tenant: z.string() })

/** The task's registration: the one it has, or a new one under `id`. */
export async function openRegistration(
  db: Connection,
  wanted: PushRegistration,
  at: string,
): Promise<PushRegistration> {
  return db.one(sql.type(Registration)`
    insert into push_registration as r (id, task_id, tenant, created_at)
    values (${wanted.id}, ${wanted.taskId}, ${wanted.tenant}, ${at})
    on conflict (task_id) do update set tenant = excluded.tenant
    returning id, task_id as "taskId", tenant`)
}

/** Null where the agent was never told of one. */
export async function registrationOf(db: Connection, taskId: string): Promise<PushRegistration | null> {
  return db.maybeOne(sql.type(Registration)`
    select id, task_id as "taskId", tenant from push_registration where task_id = ${taskId}`)
}

/** Where a task stands among those that are unfinished, scope by scope. */
export interface TaskPlace {
  readonly agentId: string
  readonly tenant: string
  readonly id: string
}

export interface UnannouncedTask {
  readonly id: string
  readonly organizationId: string
  readonly agentId: string
}

const Walked = z.object({
  id: z.string(),
  organizationId: z.string(),
  agentId: z.string(),
  tenant: z.string(),
  isUnannounced: z.boolean(),
})

/**
 * Of the next `limit` unfinished tasks after a place, in the order of the index that knows them: those that never had an actor of push.
 * `last`: to go on after; null where there are no more.
 */
export async function readUnannounced(
  db: Connection,
  after: TaskPlace | null,
  limit: number,
): Promise<{ readonly tasks: readonly UnannouncedTask[]; readonly last: TaskPlace | null }> {
  const from = after
    ? sql.fragment`(t.agent_id, t.tenant, t.id) > (${after.agentId}, ${after.tenant}, ${after.id})`
    : sql.fragment`true`
  const walked = await db.any(sql.type(Walked)`
    select t.id, t.organization_id as "organizationId", t.agent_id as "agentId", t.tenant,
      exists (select 1 from agent a where a.id = t.agent_id and a.enabled)
      and not exists (select 1 from actor p where p.kind = 'push' and p.id = t.id)
      and not exists (select 1 from actor_archive p where p.kind = 'push' and p.id = t.id) as "isUnannounced"
    from (
      select t.id, t.organization_id, t.agent_id, t.tenant from task t where ${inQuestion} and ${from}
      order by t.agent_id, t.tenant, t.id limit ${limit}) t
    order by t.agent_id, t.tenant, t.id`)
  const tasks = walked.filter(({ isUnannounced }) => isUnannounced)
  return { tasks, last: walked.length === limit ? (walked.at(-1) ?? null) : null }
}

/** A registration with the task that its deliveries must speak of. */
export interface PushTarget extends PushRegistration {
  readonly organizationId: string
  readonly agentId: string
  /** The task's own tenant, half of its identity. */
  readonly taskTenant: string
  readonly remoteId: string
  readonly contextId: string | null
}

const Target = z.object({
  id: z.string(),
  taskId: z.string(),
  tenant: z.string(),
  organizationId: z.string(),
  agentId: z.string(),
  taskTenant: z.string(),
  remoteId: z.string(),
  contextId: z.nullable(z.string()),
})

/** Null for an id that no agent was told, and for an agent that was removed. */
export async function findTarget(db: Connection, id: string): Promise<PushTarget | null> {
  return db.maybeOne(sql.type(Target)`
    select r.id, r.task_id as "taskId", r.tenant, t.organization_id as "organizationId", t.agent_id as "agentId",
      t.tenant as "taskTenant", t.remote_id as "remoteId", t.context_id as "contextId"
    from push_registration r join task t on t.id = r.task_id join agent a on a.id = t.agent_id
    where r.id = ${id} and t.remote_id is not null and a.enabled`)
}

/** What makes a delivery the same as an earlier one: the sender's own id of it, or its content where it has none. */
export interface DeliveryKey {
  readonly registrationId: string
  readonly key: string
}

const keyOf = ({ registrationId, key }: DeliveryKey): string => `${registrationId} ${key}`

/** Notes deliveries, and returns for each whether it is the first. To be called in the transaction that commits what they say. */
export async function noteDeliveries(
  tx: Transaction,
  deliveries: readonly DeliveryKey[],
  at: string,
): Promise<readonly boolean[]> {
  // In one order: two batches that bring the same deliveries must not wait for each other in a circle.
  const all = new Map(deliveries.map((delivery) => [keyOf(delivery), delivery]))
  const ordered = [...all].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const rows = await tx.any(sql.type(z.object({ registrationId: z.string(), key: z.string() }))`
    insert into push_delivery (registration_id, key, received_at)
    select n.*, ${at} from ${sql.unnest(
      ordered.map(([, { registrationId, key }]) => [registrationId, key]),
      ['uuid', 'text'],
    )} n on conflict do nothing
    returning registration_id as "registrationId", key`)
  const fresh = new Set(rows.map(keyOf))
  // Of two in one batch the first.
  return deliveries.map((delivery) => fresh.delete(keyOf(delivery)))
}

/** How long a delivery is remembered, seconds: longer than senders repeat. What comes later folds to nothing new anyway. */
const rememberedSeconds = 3600
const forgottenAtOnce = 10_000

/** Forgets old deliveries, some thousands at a time. It waits for no other replica that does, so that the two never wait for each other. */
export async function forgetDeliveries(db: Connection): Promise<void> {
  await db.query(sql.unsafe`
    delete from push_delivery where (registration_id, key) in (
      select registration_id, key from push_delivery
      where received_at < now() - ${rememberedSeconds} * interval '1 second'
      order by received_at limit ${forgottenAtOnce}
      for update skip locked)`)
}

/** Whether any task's push is still to be ended. */
export async function hasPushActors(db: Connection): Promise<boolean> {
  return db.oneFirst(sql.type(z.object({ yes: z.boolean() }))`
    select exists (select 1 from actor where kind = 'push') as yes`)
}
