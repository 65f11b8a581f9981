/**
 * Evidence about uncertain commands, as rows: opened when the doubt arises, filled by looks, read for people. Never touches
 * a command's row. Does not look (actors/evidence.ts) and does not choose the words (domain/evidence.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { CommandBody } from '../domain/command-body.ts'
import type { Command } from '../domain/command.ts'
import {
  evidenceSentence,
  isConclusive,
  nextLook,
  type CommandEvidence,
  type EvidenceOutcome,
  type LookedFor,
} from '../domain/evidence.ts'
import { refusals } from '../domain/refusal.ts'
import { isUuid } from '../domain/uuid.ts'
import { commandHeld } from './commands.ts'
import type { Connection, Transaction } from './connection.ts'
import type { ScopeName } from './reconciliation.ts'
import { storable } from '../domain/storable.ts'
import { held } from './visibility.ts'

/** Opens the search for commands that have just become uncertain. */
export async function openEvidence(tx: Transaction, commandIds: readonly string[], at: string): Promise<void> {
  const sinceMs = Date.parse(at)
  const firstLookAt = new Date(nextLook(0, sinceMs, sinceMs) ?? sinceMs).toISOString()
  await tx.query(sql.unsafe`
    insert into command_evidence (command_id, organization_id, agent_id, tenant, since, looks, look_at, outcome, is_whole)
    select id, organization_id, agent_id, tenant, ${at}, 0, ${firstLookAt}, 'pending', false
    from command where id = any(${sql.array([...commandIds], 'uuid')})
    on conflict (command_id) do nothing`)
}

/** A command that is to be looked for, as whoever looks needs it. */
export interface SoughtCommand {
  readonly commandId: string
  readonly action: 'send' | 'cancelTask'
  readonly messageId: string
  /** The agent's own names where the command gave them; null where not. */
  readonly taskId: string | null
  readonly contextId: string | null
  readonly looks: number
}

/** A body may be 16 MiB; of one that is so large the context is not read, and the search is wider for it. */
const bodyLimitBytes = 64 * 1024

/** Commands of a scope whose next look is due, the longest due first. */
export async function readSought(
  db: Connection,
  scope: ScopeName,
  at: string,
  limit: number,
): Promise<readonly SoughtCommand[]> {
  const rows = await db.any(sql.type(z.custom<Omit<SoughtCommand, 'contextId'> & { readonly body: string | null }>())`
    select e.command_id as "commandId", c.action, c.message_id as "messageId", c.remote_task_id as "taskId", e.looks,
      case when octet_length(c.body) <= ${bodyLimitBytes} then c.body end as body
    from command_evidence e join command c on c.id = e.command_id
    where e.agent_id = ${scope.agentId} and e.tenant = ${scope.tenant} and e.look_at <= ${at}
    order by e.look_at limit ${limit}`)
  return rows.map(({ body, ...row }) => {
    const { contextId = null } = body === null ? {} : (JSON.parse(body) as Partial<CommandBody>)
    return { ...row, contextId }
  })
}

/** A command whose message was seen in a task. */
export interface SeenCommand {
  readonly commandId: string
  readonly messageId: string
}

/**
 * Which of them are not the only ones whose message may be what was seen: another that was sent, or may have been, bears the same
 * message id, which a caller may choose. What a person decided of that one since changes nothing of it.
 */
export async function readNamesakes(
  db: Connection,
  scope: ScopeName,
  seen: readonly SeenCommand[],
): Promise<ReadonlySet<string>> {
  if (seen.length === 0) return new Set()
  return new Set(await db.anyFirst(sql.type(z.object({ id: z.string() }))`${namesakesOf(scope, seen)}`))
}

/** Two look-ups of each: ids that were given have an index, and of the others the id is the command's own (migration 24). */
export function namesakesOf({ agentId, tenant }: ScopeName, seen: readonly SeenCommand[]): FragmentSqlToken {
  const isHere = sql.fragment`c.agent_id = ${agentId} and c.tenant = ${tenant} and ${mayBeThere}`
  return sql.fragment`
    select q.command_id as id from ${asSeen(seen)}
    where exists (select from command c where ${isHere} and c.message_id <> c.id::text)
      or exists (select from command c where c.id = q.own_id and ${isHere})`
}

/** One that failed is at the agent only where the answer to it was for another skill. */
const mayBeThere = sql.fragment`
  c.message_id = q.message_id and c.action = 'send' and c.id <> q.command_id
    and (c.status in ('dispatching', 'succeeded', 'uncertain') or (c.status = 'failed' and c.error = ${refusals['skill.crossed']}))`

const asSeen = (seen: readonly SeenCommand[]): FragmentSqlToken => sql.fragment`
  ${sql.unnest(
    seen.map(({ commandId, messageId }) => [commandId, messageId, isUuid(messageId) ? messageId : null]),
    ['uuid', 'text', 'uuid'],
  )} as q(command_id, message_id, own_id)`

/** A command whose message was seen in that task, by the agent's name of it. */
export interface FoundCommand extends SeenCommand {
  readonly taskId: string | null
}

/** Another registration that may have been sent a message under the id of one that was seen. */
export interface NamesakeElsewhere {
  /** Of the one that was seen. */
  readonly commandId: string
  readonly agentId: string
  /** One such message was answered with the very task in which the other was seen. */
  readonly isItsTask: boolean
}

/** One agent may be registered twice: what it was sent by one name stands in the list that is read by the other. */
export async function readNamesakesElsewhere(
  db: Connection,
  scope: ScopeName,
  seen: readonly FoundCommand[],
): Promise<readonly NamesakeElsewhere[]> {
  if (seen.length === 0) return []
  return db.any(sql.type(z.custom<NamesakeElsewhere>())`${namesakesElsewhereOf(scope, seen)}`)
}

/** Two look-ups of each, as above. Of many to one agent, as where all are given one id, one is told: of its task, if there is such a one. */
export function namesakesElsewhereOf({ agentId, tenant }: ScopeName, seen: readonly FoundCommand[]): FragmentSqlToken {
  const isElsewhere = sql.fragment`c.agent_id <> ${agentId} and c.tenant = ${tenant} and ${mayBeThere}`
  return sql.fragment`
    select distinct on (1, 2) n.seen as "commandId", n.agent_id as "agentId", coalesce(t.remote_id = f.task_id, false) as "isItsTask"
    from (
      select q.command_id as seen, c.agent_id, c.task_id
      from ${asSeen(seen)} join command c on ${isElsewhere} and c.message_id <> c.id::text
      union all
      select q.command_id as seen, c.agent_id, c.task_id from ${asSeen(seen)} join command c on c.id = q.own_id and ${isElsewhere}
    ) n join ${sql.unnest(
      seen.map(({ commandId, taskId }) => [commandId, taskId]),
      ['uuid', 'text'],
    )} as f(command_id, task_id) on f.command_id = n.seen left join task t on t.id = n.task_id
    order by 1, 2, 3 desc`
}

const Open = z.object({ commandId: z.string(), since: z.string(), looks: z.number() })

/** Stores looks. Returns the commands of which they are news: a look that was stored already is left alone. */
export async function storeLooks(
  tx: Transaction,
  told: readonly LookedFor[],
  at: string,
): Promise<ReadonlySet<string>> {
  const looks = new Map(told.map((look) => [look.commandId, look]))
  const open = await tx.any(sql.type(Open)`
    select command_id as "commandId", since, looks from command_evidence
    where command_id = any(${sql.array([...looks.keys()], 'uuid')}) order by command_id for update`)
  const rows = open.flatMap(({ commandId, since, looks: before }) => {
    const look = looks.get(commandId)
    if (look?.looksBefore !== before) return []
    const nextMs = isConclusive(look) ? null : nextLook(before + 1, Date.parse(since), Date.parse(at))
    const next = nextMs === null ? null : new Date(nextMs).toISOString()
    const { outcome, isWhole, taskId, taskState, reason } = look
    const texts = [taskId, taskState, reason].map((text) => (text === null ? null : storable(text)))
    return [[commandId, before + 1, next, outcome, isWhole, ...texts]]
  })
  await tx.query(sql.unsafe`
    update command_evidence e set looks = n.looks, looked_at = ${at}, look_at = n.look_at, outcome = n.outcome,
      is_whole = n.is_whole, remote_task_id = n.remote_task_id, task_state = n.task_state, reason = n.reason
    from ${sql.unnest(rows, ['uuid', 'int4', 'timestamptz', 'text', 'bool', 'text', 'text', 'text'])}
      as n(command_id, looks, look_at, outcome, is_whole, remote_task_id, task_state, reason)
    where e.command_id = n.command_id`)
  return new Set(rows.map(([commandId]) => String(commandId)))
}

interface EvidenceRow {
  readonly commandId: string
  readonly action: 'send' | 'cancelTask'
  readonly messageId: string
  readonly outcome: EvidenceOutcome
  readonly looks: number
  readonly lookedAt: string | null
  readonly nextLookAt: string | null
  readonly isWhole: boolean
  readonly taskId: string | null
  readonly localId: string | null
  readonly localState: string | null
  readonly taskState: string | null
  readonly reason: string | null
}

/**
 * What is known of uncertain commands, by command id; those that are not uncertain, or not the viewer's to read, are left
 * out. A task that was found is named locally only to who may read it.
 */
export async function readEvidence(
  db: Connection,
  viewer: Viewer,
  commandIds: readonly string[],
): Promise<ReadonlyMap<string, CommandEvidence>> {
  if (commandIds.length === 0) return new Map()
  const rows = await db.any(sql.type(z.custom<EvidenceRow>())`
    select e.command_id as "commandId", c.action, c.message_id as "messageId", e.outcome, e.looks, e.looked_at as "lookedAt",
      case when a.enabled then e.look_at end as "nextLookAt", e.is_whole as "isWhole", e.remote_task_id as "taskId", t.id as "localId",
      t.state as "localState", e.task_state as "taskState", e.reason
    from command_evidence e join command c on c.id = e.command_id join agent a on a.id = e.agent_id
    left join task t on t.agent_id = e.agent_id and t.tenant = e.tenant and t.remote_id = e.remote_task_id
      and ${held(viewer, 'read', sql.fragment`t.agent_id`, sql.fragment`t.skill_id`)}
    where e.organization_id = ${viewer.organizationId} and e.command_id = any(${sql.array([...commandIds], 'uuid')})
      and ${commandHeld(viewer, 'read')}`)
  return new Map(
    rows.map(({ commandId, action, reason, ...row }) => [
      commandId,
      { ...row, sentence: evidenceSentence({ action, reason, ...row }) },
    ]),
  )
}

/** An addition to the specified record of those that are uncertain: what a person needs who has to decide what follows. */
export async function withEvidence(db: Connection, viewer: Viewer, commands: readonly Command[]): Promise<Command[]> {
  const uncertain = commands.filter(({ status }) => status === 'uncertain').map(({ id }) => id)
  const known = await readEvidence(db, viewer, uncertain)
  return commands.map((command) => {
    const evidence = known.get(command.id)
    return evidence ? { ...command, evidence } : command
  })
}
