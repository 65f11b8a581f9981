/**
 * Settling and reopening: the operations behind `POST /api/sends/{commandId}/settle` and `/reopen`. A person has looked at a send that
 * failed or is uncertain, and decides what that means; the decision, its audit row and the fact that wakes whoever shows it are one
 * transaction. It stands until somebody takes it back; both are kept, with their notes. Moves no actor and sends nothing: the command
 * stays what it is. Sending again in its place settles it, too: then the commit that accepts the other one does (replacing.ts).
 */
import { createHash } from 'node:crypto'
import type { Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import { asksTheSame, isLater, type Asking, type Reopening, type Settlement } from '../domain/settlement.ts'
import type { Connection, Transaction } from '../persistence/connection.ts'
import {
  findCommandToSettle,
  findSettlement,
  insertReopening,
  insertSettlement,
  lockEndedCommand,
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

/** The command, locked, for somebody who may decide about it. `early`: what is said of one that has not ended so that they may. */
async function toDecide(
  tx: Transaction,
  viewer: Viewer,
  commandId: string,
  early: 'settlement.early' | 'settlement.open' = 'settlement.early',
): Promise<SettledCommand> {
  const locked = await lockEndedCommand(tx, viewer, commandId)
  const command = locked ?? (await findCommandToSettle(tx, viewer, commandId))
  if (!command) throw new Refusal('command.unknown')
  if (!command.isOperable) throw new Refusal('action.forbidden')
  if (!locked) throw new Refusal(early)
  return locked
}

/** The same, which nobody has decided about, and in whose place a command may go that asks this. */
export async function toReplace(
  tx: Transaction,
  viewer: Viewer,
  commandId: string,
  asked: Asking,
): Promise<SettledCommand> {
  const command = await toDecide(tx, viewer, commandId)
  if (await findSettlement(tx, viewer, commandId)) throw new Refusal('settlement.taken')
  if (!asksTheSame(asked, command)) throw new Refusal('settlement.replaces')
  return command
}

/** Whether a person may say of another command that it went in the place of this one: a later one, and not in whose place this one went. */
async function isSuccessor(tx: Transaction, viewer: Viewer, { commandId, command }: Settling, successorId: string) {
  const successor = successorId === commandId ? null : await findCommandToSettle(tx, viewer, successorId)
  if (!successor || !asksTheSame(successor, command) || !isLater(successor, command)) return false
  return (await findSettlement(tx, viewer, successorId))?.successorId !== commandId
}

async function settle(
  tx: Connection,
  viewer: Viewer,
  commandId: string,
  decided: Decided,
  at: string,
): Promise<Acted<Settlement>> {
  const { decision, note, successorId } = decided
  // Both, where both have ended, and by their ids: of two decisions that each name the other's the second sees the first.
  if (successorId !== null && successorId < commandId) await lockEndedCommand(tx, viewer, successorId)
  const command = await toDecide(tx, viewer, commandId)
  if (successorId !== null && successorId > commandId) await lockEndedCommand(tx, viewer, successorId)
  const earlier = await findSettlement(tx, viewer, commandId)
  if (earlier) {
    if (!isSame(earlier, decided)) throw new Refusal('settlement.taken')
    return { result: earlier, acts: [] }
  }
  const settling = { commandId, command, decided }
  if (successorId !== null && !(await isSuccessor(tx, viewer, settling, successorId)))
    throw new Refusal('settlement.successor')
  await insertSettlement(tx, viewer, { commandId, decision, note, successorId, at })
  const { userId: id, displayName: name } = viewer
  const acts = [recordOf('command.settled', viewer, settling)]
  return { result: { decision, note, successorId, at, by: { id, name } }, acts }
}

async function reopen(
  tx: Connection,
  viewer: Viewer,
  commandId: string,
  note: string | null,
  at: string,
): Promise<Acted<Reopening>> {
  const command = await toDecide(tx, viewer, commandId, 'settlement.open')
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
