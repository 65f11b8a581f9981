/**
 * Sends that ended failed or uncertain and that nobody has settled, for reading: what a person should see who did not wait for the
 * end, and the words to send again. Does not move anything (actors/command.ts) and does not say what it means
 * (domain/command-explanation.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import { wordsOf, type CommandBody } from '../domain/command-body.ts'
import type { CommandStatus } from '../domain/command.ts'
import type { Reopening, Settlement } from '../domain/settlement.ts'
import type { UnsettledSend } from '../domain/unsettled-send.ts'
import { commandHeld } from './commands.ts'
import type { Connection } from './connection.ts'
import { readEvidence } from './evidence.ts'
import { reopeningsOf, replacedBy, settlementOf } from './settlements.ts'

const Counted = z.object({ messages: z.number(), cancels: z.number() })
const Row = z.custom<Omit<UnsettledSend, 'evidence'>>()

/** The task that a command continued or cancelled: known by the agent's name of it, for the command has no local one. */
export const aboutTask = sql.fragment`
  left join task t on t.agent_id = c.agent_id and t.tenant = c.tenant and t.remote_id = c.remote_task_id`

const unsettledOf = (viewer: Viewer, since: string, agentId: string | null) => sql.fragment`
  c.organization_id = ${viewer.organizationId} and c.unsettled_at > ${since}
    and ${agentId === null ? sql.fragment`true` : sql.fragment`c.agent_id = ${agentId}`}
    and ${commandHeld(viewer, 'read')}`

/** Of the newest, `limit` at most; by the same index. */
export const countUnsettledSends = (
  db: Connection,
  viewer: Viewer,
  since: string,
  limit: number,
  agentId: string | null,
): Promise<z.infer<typeof Counted>> =>
  db.one(sql.type(Counted)`
    select (count(*) filter (where action = 'send'))::int as messages,
      (count(*) filter (where action = 'cancelTask'))::int as cancels
    from (select c.action from command c where ${unsettledOf(viewer, since, agentId)}
      order by c.unsettled_at desc, c.id desc limit ${limit}) newest`)

/** Newest first, by the index `command_unsettled`. */
export async function listUnsettledSends(
  db: Connection,
  viewer: Viewer,
  since: string,
  limit: number,
  agentId: string | null,
): Promise<readonly UnsettledSend[]> {
  const rows = await db.any(sql.type(Row)`
    select c.id, c.agent_id as "agentId", a.name as "agentName", c.action, c.status, c.error,
      coalesce(c.title, t.title, '') as title, t.id as "localId", c.created_at as "createdAt", c.updated_at as "updatedAt",
      ${commandHeld(viewer, 'operate')} as operable
    from command c join agent a on a.id = c.agent_id ${aboutTask}
    where ${unsettledOf(viewer, since, agentId)}
    order by c.unsettled_at desc, c.id desc limit ${limit}`)
  const doubtful = rows.flatMap(({ id, status }) => (status === 'uncertain' ? [id] : []))
  const evidence = await readEvidence(db, viewer, doubtful)
  return rows.map((row) => ({ ...row, evidence: evidence.get(row.id) ?? null }))
}

export interface SendRecord {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly action: 'send' | 'cancelTask'
  readonly status: CommandStatus
  readonly error: string | null
  readonly localId: string | null
  /** The agent's own name of the task that it continued or was to cancel; null where it named none. */
  readonly taskId: string | null
  readonly tenant: string
  /** The skill that it is restricted to; null: none. */
  readonly skillId: string | null
  readonly messageId: string
  /** Its first words, or its task's title. */
  readonly title: string
  readonly createdAt: string
  /** Whether whoever asks may act on it. */
  readonly operable: boolean
  /** Null while nobody has settled it. */
  readonly settlement: Settlement | null
  readonly reopenings: readonly Reopening[]
  /** The command in whose place it was sent. */
  readonly replaces: string | null
  /** What was to be said; empty where it was no words. */
  readonly text: string
  /** Parts besides the words: files, data. */
  readonly otherParts: number
}

const Stored = z.custom<Omit<SendRecord, 'text' | 'otherParts'> & { readonly body: string }>()

export async function findSend(db: Connection, viewer: Viewer, id: string): Promise<SendRecord | null> {
  const row = await db.maybeOne(sql.type(Stored)`
    select c.id, c.agent_id as "agentId", a.name as "agentName", c.action, c.status, c.error, t.id as "localId",
      c.remote_task_id as "taskId", c.tenant, c.skill_id as "skillId", c.message_id as "messageId", coalesce(c.title, t.title, '') as title,
      c.created_at as "createdAt", c.body, ${commandHeld(viewer, 'operate')} as operable, ${settlementOf(viewer)} as settlement,
      ${reopeningsOf(viewer)} as reopenings, ${replacedBy(viewer)} as replaces
    from command c join agent a on a.id = c.agent_id ${aboutTask}
    where c.organization_id = ${viewer.organizationId} and c.id = ${id} and ${commandHeld(viewer, 'read')}`)
  if (!row) return null
  const { body: stored, ...send } = row
  const body = JSON.parse(stored) as CommandBody
  const text = wordsOf(body)
  const parts = body.parts ?? []
  const wordsAmongParts = body.text || text === '' ? 0 : 1
  return { ...send, text, otherParts: parts.length - wordsAmongParts }
}
