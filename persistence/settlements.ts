/**
 * Settlements as rows: what people decided about sends that failed or are uncertain and took back, and which send took whose place. A settled
 * command leaves the lists of what needs a person; its own status, error and chart are not touched. Does not own who may decide
 * (actors/settlement.ts) or the words (domain/settlement.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { CommandStatus } from '../domain/command.ts'
import { endsForPerson, reopeningsShown, type Asking, type Settlement } from '../domain/settlement.ts'
import { commandHeld } from './commands.ts'
import type { Connection, Transaction } from './connection.ts'
import { held } from './visibility.ts'

/** Of a column with a command's id: whether the viewer may see that command. */
const isSeen = (viewer: Viewer, id: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  exists (select 1 from command n where n.id = ${id} and n.organization_id = ${viewer.organizationId}
    and ${held(viewer, 'read', sql.fragment`n.agent_id`, sql.fragment`n.skill_id`)})`

const isoOf = (at: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** Of `person p` and a decision `s` that was made `at`. */
const decisionOf = (viewer: Viewer, at: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  jsonb_build_object('decision', s.decision, 'note', s.note, 'by', jsonb_build_object('id', p.id, 'name', p.display_name),
    'at', ${isoOf(at)},
    'successorId', case when ${isSeen(viewer, sql.fragment`s.successor_id`)} then s.successor_id end)`

/** Of `command c`: what was decided about it, as JSON; null while nobody has. */
export const settlementOf = (viewer: Viewer): FragmentSqlToken => sql.fragment`(
  select ${decisionOf(viewer, sql.fragment`s.at`)}
  from command_settlement s join person p on p.id = s.person_id where s.command_id = c.id)`

/** Of `command c`: the decisions about it that were taken back, as a JSON list, the newest first. */
export const reopeningsOf = (viewer: Viewer): FragmentSqlToken => sql.fragment`(
  select coalesce(jsonb_agg(jsonb_build_object('settlement', ${decisionOf(viewer, sql.fragment`s.settled_at`)}, 'note', s.reopened_note,
    'by', jsonb_build_object('id', r.id, 'name', r.display_name), 'at', ${isoOf(sql.fragment`s.reopened_at`)}) order by s.reopened_at desc), '[]')
  from (select * from command_reopening o where o.command_id = c.id order by o.reopened_at desc limit ${reopeningsShown}) s
  join person p on p.id = s.person_id join person r on r.id = s.reopened_by)`

/** Of `command c`: the command in whose place it was sent, the newest where it was sent for several; null where there is none to see. */
export const replacedBy = (viewer: Viewer): FragmentSqlToken => sql.fragment`(
  select s.command_id from command_settlement s where s.successor_id = c.id and ${isSeen(viewer, sql.fragment`s.command_id`)}
  order by s.at desc, s.command_id desc limit 1)`

const Found = z.custom<{ readonly settlement: Settlement | null }>()

/** Null while nobody has settled it, and where it is not the viewer's to see. */
export async function findSettlement(db: Transaction, viewer: Viewer, commandId: string): Promise<Settlement | null> {
  const row = await db.maybeOne(sql.type(Found)`
    select ${settlementOf(viewer)} as settlement from command c
    where c.organization_id = ${viewer.organizationId} and c.id = ${commandId} and ${commandHeld(viewer, 'read')}`)
  return row?.settlement ?? null
}

export interface SettledCommand extends Asking {
  readonly status: CommandStatus
  readonly createdAt: string
  /** The local task that it continued or was to cancel; null where none is known here. */
  readonly taskId: string | null
  /** Whether the viewer may act on it, and not only look. */
  readonly isOperable: boolean
}

/** A command that the viewer may see, as it stands. */
export const findCommandToSettle = (tx: Transaction, viewer: Viewer, id: string): Promise<SettledCommand | null> =>
  tx.maybeOne(sql.type(z.custom<SettledCommand>())`${commandOf(viewer, id)}`)

/**
 * The same of one that has ended so that a person may say more of it, locked until the transaction ends: of two people who settle it at
 * once the second reads what the first decided. The lock is not that of a deletion, so a send that names it as its successor does not
 * wait. Null also of one that has not ended, which is not locked: it belongs to whoever holds its actor, and a batch takes locks of
 * actors behind this one, so that both would wait for each other.
 */
export const lockEndedCommand = (tx: Transaction, viewer: Viewer, id: string): Promise<SettledCommand | null> =>
  tx.maybeOne(sql.type(z.custom<SettledCommand>())`
    ${commandOf(viewer, id)} and c.status = any(${sql.array([...endsForPerson], 'text')}) for no key update of c`)

const commandOf = (viewer: Viewer, id: string): FragmentSqlToken => sql.fragment`
    select c.agent_id as "agentId", c.tenant, c.action, c.skill_id as "skillId", c.remote_task_id as "remoteTaskId", c.status,
      c.created_at as "createdAt", ${commandHeld(viewer, 'operate')} as "isOperable", (
        select t.id from task t
        where t.agent_id = c.agent_id and t.tenant = c.tenant and t.remote_id = c.remote_task_id) as "taskId"
    from command c where c.organization_id = ${viewer.organizationId} and c.id = ${id} and ${commandHeld(viewer, 'read')}`

export interface NewSettlement extends Pick<Settlement, 'decision' | 'note' | 'successorId' | 'at'> {
  readonly commandId: string
}

/**
 * Writes a decision about a locked command that has none. A command's end archives its actor in the same commit, so whoever sees the end
 * finds the archived row; one that was forgotten since has no list to leave.
 */
export async function insertSettlement(tx: Transaction, viewer: Viewer, settlement: NewSettlement): Promise<void> {
  const { commandId, decision, note, successorId, at } = settlement
  await tx.query(sql.unsafe`
    with decided as (
      insert into command_settlement (command_id, organization_id, person_id, decision, note, successor_id, at)
      values (${commandId}, ${viewer.organizationId}, ${viewer.userId}, ${decision}, ${note}, ${successorId}, ${at})
    ), listed as (
      update command set unsettled_at = null where id = ${commandId}
    )
    update actor_archive set settled_at = ${at} where kind = 'command' and id = ${commandId}`)
}

export interface NewReopening {
  readonly commandId: string
  readonly note: string | null
  readonly at: string
}

/** Takes back the decision about a locked command that has one, and keeps both: it needs a person again, as it did since it ended. */
export async function insertReopening(tx: Connection, viewer: Viewer, reopening: NewReopening): Promise<void> {
  const { commandId, note, at } = reopening
  await tx.query(sql.unsafe`
    with undecided as (
      delete from command_settlement where command_id = ${commandId} returning *
    ), kept as (
      insert into command_reopening (command_id, organization_id, person_id, decision, note, successor_id, settled_at,
        reopened_by, reopened_note, reopened_at)
      select u.command_id, u.organization_id, u.person_id, u.decision, u.note, u.successor_id, u.at, ${viewer.userId}, ${note}, ${at}
      from undecided u
    ), listed as (
      update command set unsettled_at = updated_at where id = ${commandId}
    )
    update actor_archive set settled_at = null where kind = 'command' and id = ${commandId}`)
}
