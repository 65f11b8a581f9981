/**
 * Commands as rows: the idempotency record, the input archive and what people read of the outcome, in one row each.
 * Does not own a command's life (machines/command.ts); the status here is a projection of it.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { CommandBody } from '../domain/command-body.ts'
import type { Command, CommandStatus } from '../domain/command.ts'
import type { GrantPermission } from '../domain/grant.ts'
import { decodeText, isLong, type JsonText } from '../domain/json-text.ts'
import { actorExpressions, type ActorBatch } from './actors.ts'
import { textValue } from './drivers/bind-message.ts'
import type { Connection, Transaction } from './connection.ts'
import { stands } from './presumptions.ts'
import { storable } from '../domain/storable.ts'
import { held } from './visibility.ts'

export interface NewCommand {
  readonly id: string
  readonly auditId: string
  readonly organizationId: string
  readonly agentId: string
  readonly personId: string
  readonly idempotencyKey: string
  /** SHA-256, hex, of the canonical content: the same key with another digest is another command. */
  readonly contentDigest: string
  /** Of that content: nearly all that is written of the command, and so its weight in a commit. */
  readonly characters: number
  readonly messageId: string
  /** The first words of what was asked, for lists; null where there are none. */
  readonly title: string | null
  readonly body: CommandBody
  /** The local task it continues or cancels, where it is known already. */
  readonly taskId: string | null
  /** The skill that it is restricted to: named by it, or its task's. Who holds that skill sees the command. */
  readonly skillId: string | null
  readonly status: CommandStatus
}

const columns = sql.fragment`
  c.id, c.agent_id as "agentId", c.tenant, c.action, c.message_id as "messageId", c.status, c.error, c.reply,
  c.task_id as "taskId", t.remote_id as "remoteId", c.created_at as "createdAt", c.updated_at as "updatedAt"`

interface CommandRow {
  readonly id: string
  readonly agentId: string
  readonly tenant: string
  readonly action: 'send' | 'cancelTask'
  readonly messageId: string
  readonly status: CommandStatus
  readonly error: string | null
  readonly reply: string | null
  readonly taskId: string | null
  readonly remoteId: string | null
  readonly createdAt: string
  readonly updatedAt: string
}

const Row = z.custom<CommandRow>()

const commandOf = (row: CommandRow): Command => ({
  id: row.id,
  agentId: row.agentId,
  tenant: row.tenant,
  action: row.action,
  messageId: row.messageId,
  status: row.status,
  result:
    row.status === 'succeeded' && row.reply !== null && row.taskId !== null
      ? { event: JSON.parse(row.reply), localId: row.taskId, taskId: row.remoteId, tenant: row.tenant }
      : null,
  error: row.error,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
})

// Schemas stand outside of functions: building one costs up to 45 µs, as much as the rest of a small query here.
const InsertedRow = z.object({ id: z.string(), cardUrl: z.string(), bound: z.boolean() })
const bound = sql.fragment`exists (select 1 from credential k where k.agent_id = a.id)`
/** Of the agent, as the commit that accepted found it. `bound`: it has a credential binding, usable or not. */
export type AcceptedAgent = Omit<z.infer<typeof InsertedRow>, 'id'>

/** One a line, which JSON does not break: in an array's literal 15 MiB that are full of quotes took a second to be written. */
const bodiesOf = (commands: readonly NewCommand[]): string =>
  commands.map(({ body }) => JSON.stringify(body)).join('\n')

/**
 * Inserts what is new, each with its audit row, as the common table expression `accepted` of a statement. Keys are taken in one
 * order: two batches that bring the same ones (a caller that asks again elsewhere) must not wait for each other in a circle.
 */
const insertion = (
  commands: readonly NewCommand[],
  at: string,
  presuming: ReadonlySet<string> = new Set(),
) => sql.fragment`
    asked as (
      select * from rows from (${sql.unnest(
        commands.map((c) => [
          c.id,
          c.auditId,
          c.organizationId,
          c.agentId,
          c.personId,
          c.idempotencyKey,
          c.contentDigest,
          c.body.action,
          c.body.tenant,
          c.messageId,
          c.body.taskId ?? null,
          c.taskId,
          c.status,
          c.title === null ? null : storable(c.title),
          c.skillId,
          presuming.has(c.id),
        ]),
        [
          'uuid',
          'uuid',
          'uuid',
          'uuid',
          'uuid',
          'text',
          'text',
          'text',
          'text',
          'text',
          'text',
          'uuid',
          'text',
          'text',
          'text',
          'bool',
        ],
      )}, string_to_table(${bodiesOf(commands)}, E'\n')) as q(id, audit_id, organization_id, agent_id, person_id, idempotency_key,
        content_digest, action, tenant, message_id, remote_task_id, task_id, status, title, skill_id, presumes, body)
    ), accepted as (
      insert into command (id, organization_id, agent_id, person_id, idempotency_key, content_digest, action, tenant, message_id,
        remote_task_id, title, body, status, skill_id, created_at, updated_at)
      select q.id, q.organization_id, q.agent_id, q.person_id, q.idempotency_key, q.content_digest, q.action, q.tenant,
        q.message_id, q.remote_task_id, q.title, q.body, q.status, q.skill_id, ${at}, ${at}
      from asked q join agent a on a.id = q.agent_id and a.organization_id = q.organization_id and a.enabled
      ${presuming.size > 0 ? sql.fragment`where ${stands}` : sql.fragment``}
      order by q.organization_id, q.idempotency_key
      on conflict (organization_id, idempotency_key) do nothing
      returning id, agent_id
    ), audited as (
      insert into audit (id, organization_id, at, kind, actor_type, actor_person_id, task_id, subject_id, data)
      select q.audit_id, q.organization_id, ${at}, case q.action when 'send' then 'task.send.accepted' else 'task.cancel.accepted' end,
        'user', q.person_id, q.task_id, q.id::text,
        jsonb_build_object('agentId', q.agent_id, 'messageId', q.message_id, 'contentDigest', q.content_digest)
      from asked q join accepted on accepted.id = q.id
    )`
const insertedOnes = sql.fragment`
    select c.id, a.card_url as "cardUrl", ${bound} as bound from accepted c join agent a on a.id = c.agent_id`
type Inserted = ReadonlyMap<string, AcceptedAgent>
const byId = (rows: readonly z.infer<typeof InsertedRow>[]): Inserted =>
  new Map(rows.map(({ id, ...agent }) => [id, agent]))

/**
 * One statement. Returns the ids that were inserted, with what is known of each one's agent: the others' keys are taken, or
 * their agent is unknown or disabled.
 */
export async function insertCommands(tx: Transaction, commands: readonly NewCommand[], at: string): Promise<Inserted> {
  if (commands.length === 0) return new Map()
  return byId(await tx.any(sql.type(InsertedRow)`with ${insertion(commands, at)} ${insertedOnes}`))
}

const isAccepted = (id: FragmentSqlToken) => sql.fragment`${id} in (select accepted.id from accepted)`

/**
 * The same together with their actors, in one statement: of those that are not inserted nothing is written. `presuming`: the ids of
 * those that are inserted only where holdPresumptions, in the same exchange before, found what they presume to stand.
 */
export async function insertCommandsAndActors(
  tx: Transaction,
  commands: readonly NewCommand[],
  actors: ActorBatch,
  presuming: ReadonlySet<string> = new Set(),
): Promise<Inserted> {
  return byId(
    await tx.any(sql.type(InsertedRow)`
    with ${insertion(commands, actors.at, presuming)}, ${actorExpressions(actors, isAccepted)} ${insertedOnes}`),
  )
}

export interface TakenKey {
  readonly organizationId: string
  readonly idempotencyKey: string
  readonly contentDigest: string
  readonly command: Command
}

/** The commands that hold these keys. */
export async function findByKeys(
  tx: Transaction,
  keys: readonly { readonly organizationId: string; readonly idempotencyKey: string }[],
): Promise<readonly TakenKey[]> {
  if (keys.length === 0) return []
  const rows = await tx.any(sql.type(
    z.custom<CommandRow & { organizationId: string; idempotencyKey: string; contentDigest: string }>(),
  )`
    select ${columns}, c.organization_id as "organizationId", c.idempotency_key as "idempotencyKey",
      c.content_digest as "contentDigest"
    from command c left join task t on t.id = c.task_id
    where (c.organization_id, c.idempotency_key) in (select * from ${sql.unnest(
      keys.map((key) => [key.organizationId, key.idempotencyKey]),
      ['uuid', 'text'],
    )})`)
  return rows.map((row) => ({
    organizationId: row.organizationId,
    idempotencyKey: row.idempotencyKey,
    contentDigest: row.contentDigest,
    command: commandOf(row),
  }))
}

const ofAgent = sql.fragment`c.agent_id`
const ofSkill = sql.fragment`c.skill_id`
/** Of `command c`: the viewer holds what it was sent to. */
export const commandHeld = (viewer: Viewer, permission: GrantPermission) => held(viewer, permission, ofAgent, ofSkill)

export async function findCommand(db: Connection, viewer: Viewer, id: string): Promise<Command | null> {
  const row = await db.maybeOne(sql.type(Row)`
    select ${columns} from command c left join task t on t.id = c.task_id
    where c.organization_id = ${viewer.organizationId} and c.id = ${id} and ${commandHeld(viewer, 'read')}`)
  return row && commandOf(row)
}

/** The command that holds a key, for somebody who could send it today: a key is no way around a grant. */
export async function findByKey(
  db: Connection,
  viewer: Viewer,
  idempotencyKey: string,
): Promise<Omit<TakenKey, 'organizationId' | 'idempotencyKey'> | null> {
  const row = await db.maybeOne(sql.type(z.custom<CommandRow & { contentDigest: string }>())`
    select ${columns}, c.content_digest as "contentDigest" from command c left join task t on t.id = c.task_id
    where c.organization_id = ${viewer.organizationId} and c.idempotency_key = ${idempotencyKey}
      and ${commandHeld(viewer, 'operate')}`)
  return row && { contentDigest: row.contentDigest, command: commandOf(row) }
}

/**
 * What a person should see beside a task: commands about it that are not delivered, or of which nobody knows, unless somebody has
 * settled them. Those that need a person come first, however many wait behind them.
 */
export async function unsettledCommands(
  db: Connection,
  viewer: Viewer,
  task: { readonly agentId: string; readonly tenant: string; readonly remoteId: string },
): Promise<readonly Command[]> {
  const rows = await db.any(sql.type(Row)`
    select ${columns} from command c left join task t on t.id = c.task_id
    where c.agent_id = ${task.agentId} and c.tenant = ${task.tenant} and c.remote_task_id = ${task.remoteId}
      and (c.status in ('pending', 'dispatching') or c.unsettled_at is not null) and c.organization_id = ${viewer.organizationId} and ${commandHeld(viewer, 'read')}
    order by c.unsettled_at is null, c.created_at desc, c.id desc limit 20`)
  return rows.map(commandOf)
}

/** Where a command goes, as its agent is now. */
export interface Destination {
  readonly agentId: string
  readonly agentEnabled: boolean
  readonly cardUrl: string
  /** The agent has a credential binding, usable or not. */
  readonly bound: boolean
}

/** What the worker needs to deliver a command. */
export interface Delivery extends Destination {
  /** The skill that it is restricted to; null: none. */
  readonly skillId: string | null
  readonly messageId: string
  readonly createdAt: string
  readonly body: CommandBody
}

const DestinationRow = z.custom<Destination & { readonly id: string }>()
/** As it is saved; a large body is left where it is. */
export interface SavedDelivery extends Omit<Delivery, 'body'> {
  readonly bytes: number
  readonly body: CommandBody | null
}

const DeliveryRow = z.custom<Omit<Delivery, 'body'> & { readonly body: string }>()
const SavedRow = z.custom<Omit<SavedDelivery, 'body'> & { readonly id: string; readonly body: string | null }>()
const destination = sql.fragment`
  c.id, c.agent_id as "agentId", a.enabled as "agentEnabled", a.card_url as "cardUrl", ${bound} as bound`
const destined = (ids: readonly string[]) => sql.fragment`
  command c join agent a on a.id = c.agent_id where c.id = any(${sql.array([...ids], 'uuid')})`

/** By command id; the ids of unknown commands are left out. Nothing of what is sent is read: that may be 16 MiB. */
export async function readDestinations(
  db: Connection,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Destination>> {
  const rows = await db.any(sql.type(DestinationRow)`select ${destination} from ${destined(ids)}`)
  return new Map(rows.map(({ id, ...row }) => [id, row]))
}

const deliverable = sql.fragment`
  ${destination}, c.message_id as "messageId", c.created_at as "createdAt", c.skill_id as "skillId"`

/** By command id; the ids of unknown commands are left out. Of bodies over `mostBytes` only the length is read, which costs nothing. */
export async function readDeliveries(
  db: Connection,
  ids: readonly string[],
  mostBytes: number,
): Promise<ReadonlyMap<string, SavedDelivery>> {
  const rows = await db.any(sql.type(SavedRow)`
    select ${deliverable}, octet_length(c.body) as bytes,
      case when octet_length(c.body) <= ${mostBytes} then c.body end as body
    from ${destined(ids)}`)
  return new Map(rows.map(({ id, body, ...row }) => [id, { ...row, body: body === null ? null : parsed(body) }]))
}

/** One alone, however large it is. */
export async function readDelivery(db: Connection, id: string): Promise<Delivery | null> {
  const row = await db.maybeOne(sql.type(DeliveryRow)`select ${deliverable}, c.body from ${destined([id])}`)
  return row && { ...row, body: parsed(row.body) }
}

const parsed = (body: string): CommandBody => JSON.parse(body) as CommandBody

export interface CommandProjection {
  readonly id: string
  readonly status: CommandStatus
  readonly error: string | null
  readonly reply: JsonText | null
  readonly taskId: string | null
}

/**
 * Writes what people read of commands that moved. A status never goes back: a finished row is left alone. Of a success nothing
 * changes that an index knows, and that is to stay so: no index is written then (migration 11).
 */
export async function projectCommands(
  tx: Transaction,
  commands: readonly CommandProjection[],
  at: string,
): Promise<void> {
  const isAlone = ({ reply }: CommandProjection): boolean => reply !== null && isLong(reply)
  const together = commands.filter((command) => !isAlone(command))
  const projections = commands.filter(isAlone).map(alone)
  if (together.length > 0) projections.push(sql.fragment`${inOneSet(together)}`)
  const statements = projections.map(
    (projected) => sql.unsafe`
    update command c set status = p.status, error = p.error, reply = p.reply, task_id = p.task_id, updated_at = ${at},
      unsettled_at = case when p.status in ('failed', 'uncertain') then ${at}::timestamptz end
    from ${projected} as p(id, status, error, reply, task_id)
    where c.id = p.id and c.status in ('pending', 'dispatching') and c.status <> p.status`,
  )
  await Promise.all(statements.map((statement) => tx.query(statement)))
}

const inOneSet = (commands: readonly CommandProjection[]) =>
  sql.unnest(
    commands.map((c) => [c.id, c.status, c.error, c.reply === null ? null : decodeText(c.reply), c.taskId]),
    ['uuid', 'text', 'text', 'text', 'uuid'],
  )

/** A long reply goes as a plain value: in a list it would be searched for quotes, and copied. */
const alone = ({ id, status, error, reply, taskId }: CommandProjection): FragmentSqlToken => sql.fragment`
  (values (${id}::uuid, ${status}::text, ${error}::text, ${textValue(reply ?? '')}::text, ${taskId}::uuid))`
