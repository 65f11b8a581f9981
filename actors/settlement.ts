/**
 * Settling and reopening: the operations behind `POST /api/sends/{commandId}/settle` and `/reopen`. A person has looked at a send that
 * failed or is uncertain, and decides what that means; the decision, its audit row and the fact that wakes whoever shows it are one
 * transaction. It stands until somebody takes it back; both are kept, with their notes. Moves no actor and sends nothing: the command
 * stays what it is. Sending again in its place settles it, too: then the commit that accepts the other one does (replacing.ts).
 */
import { createHash } from 'node:crypto'
import type { Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import { needsPerson, type Reopening, type Settlement } from '../domain/settlement.ts'
import type { Connection, Transaction } from '../persistence/connection.ts'
import {
  findCommandToSettle,
  findSettlement,
  insertReopening,
  insertSettlement,
  lockCommand,
  mayReplace,
  type SettledCommand,
} from '../persistence/settlements.ts'
import { act, type Act, type Acted, type ActTools } from './act.ts'

/** What a person says of a send. */
export type Decided = Pick<Settlement, 'decision' | 'note' | 'successorId'>

export class Settlements {
  readonly #tools: ActTools

  constructor(tools: ActTools) {
    this.#tools = tools
  }

  /** The settlement that is in force, which is the earlier one where somebody has said the same already. */
  async settle(viewer: Viewer, commandId: string, decided: Decided): Promise<Settlement> {
    return act(this.#tools, (tx, at) => settle(tx, viewer, commandId, decided, at.toISOString()))
  }

  /** A wrong decision must not silence what is found out later. */
  async reopen(viewer: Viewer, commandId: string, note: string | null): Promise<Reopening> {
    return act(this.#tools, (tx, at) => reopen(tx, viewer, commandId, note, at.toISOString()))
  }
}

/** The command, locked, for somebody who may decide about it. */
async function toDecide(
  tx: Transaction,
  viewer: Viewer,
  commandId: string,
  read = lockCommand,
): Promise<SettledCommand> {
  const command = await read(tx, viewer, commandId)
  if (!command) throw new Refusal('command.unknown')
  if (!command.isOperable) throw new Refusal('action.forbidden')
  return command
}

/** The command, locked, which waits for somebody's decision or had one. */
async function toSettle(
  tx: Transaction,
  viewer: Viewer,
  commandId: string,
  read = lockCommand,
): Promise<SettledCommand> {
  const command = await toDecide(tx, viewer, commandId, read)
  if (!needsPerson(command.status)) throw new Refusal('settlement.early')
  return command
}

/** The same, which nobody has decided about, and in whose place a command may go that asks this. */
export async function toReplace(
  tx: Transaction,
  viewer: Viewer,
  commandId: string,
  by: Pick<SettledCommand, 'action' | 'agentId' | 'tenant' | 'skillId' | 'remoteTaskId'>,
): Promise<SettledCommand> {
  // A batch takes locks of actors behind this one: of a command that has not ended its actor's holder would want both the other way round.
  await toSettle(tx, viewer, commandId, findCommandToSettle)
  const command = await toSettle(tx, viewer, commandId)
  if (await findSettlement(tx, viewer, commandId)) throw new Refusal('settlement.taken')
  const asksTheSame =
    by.action === command.action &&
    by.agentId === command.agentId &&
    by.tenant === command.tenant &&
    by.skillId === command.skillId &&
    (by.action === 'send' || by.remoteTaskId === command.remoteTaskId)
  if (!asksTheSame) throw new Refusal('settlement.replaces')
  return command
}

async function settle(
  tx: Connection,
  viewer: Viewer,
  commandId: string,
  decided: Decided,
  at: string,
): Promise<Acted<Settlement>> {
  const command = await toSettle(tx, viewer, commandId)
  const earlier = await findSettlement(tx, viewer, commandId)
  if (earlier) {
    if (!isSame(earlier, decided)) throw new Refusal('settlement.taken')
    return { result: earlier, acts: [] }
  }
  const { decision, note, successorId } = decided
  if (successorId !== null && !(await mayReplace(tx, viewer, commandId, successorId)))
    throw new Refusal('settlement.successor')
  await insertSettlement(tx, viewer, { commandId, decision, note, successorId, at })
  const { userId: id, displayName: name } = viewer
  const acts = [recordOf('command.settled', viewer, { commandId, command, decided })]
  return { result: { decision, note, successorId, at, by: { id, name } }, acts }
}

async function reopen(
  tx: Connection,
  viewer: Viewer,
  commandId: string,
  note: string | null,
  at: string,
): Promise<Acted<Reopening>> {
  const command = await toDecide(tx, viewer, commandId)
  const settlement = await findSettlement(tx, viewer, commandId)
  if (!settlement) throw new Refusal('settlement.open')
  await insertReopening(tx, viewer, { commandId, note, at })
  const { decision, successorId } = settlement
  const { userId: id, displayName: name } = viewer
  return {
    result: { settlement, note, at, by: { id, name } },
    acts: [recordOf('command.reopened', viewer, { commandId, command, decided: { decision, successorId, note } })],
  }
}

interface Settling {
  readonly commandId: string
  readonly command: SettledCommand
  readonly decided: Decided
}

/** `decided`: what was decided, or what is taken back, with the note of who does it now. */
export function recordOf(
  kind: 'command.settled' | 'command.reopened',
  { organizationId, userId }: Viewer,
  { commandId, command, decided }: Settling,
): Act {
  const { decision, successorId, note } = decided
  return {
    organizationId,
    personId: userId,
    kind,
    subjectId: commandId,
    ...(command.taskId === null ? {} : { taskId: command.taskId }),
    data: { agentId: command.agentId, decision, successorId, noteDigest: note === null ? null : digestOf(note) },
    wakes: commandId,
  }
}

/** A note that is not the one that stands would be lost without a word: so that is not the same. */
const isSame = (earlier: Settlement, { decision, note, successorId }: Decided): boolean =>
  earlier.decision === decision && earlier.successorId === successorId && (note === null || note === earlier.note)

/** The trail has no words of people, and proves them all the same: what a note says now is what it said then. */
const digestOf = (note: string): string => createHash('sha256').update(note).digest('hex')
