/**
 * Settling: the operation behind `POST /api/sends/{commandId}/settle`. A person has looked at a send that failed or is uncertain, and
 * decides what that means; the decision, its audit row and the fact that wakes whoever shows it are one transaction. Once decided it
 * stays. Moves no actor and sends nothing: the command stays what it is.
 */
import { createHash } from 'node:crypto'
import type { Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import { needsPerson, type Settlement } from '../domain/settlement.ts'
import type { Connection } from '../persistence/connection.ts'
import { findSettlement, insertSettlement, lockCommand, mayReplace } from '../persistence/settlements.ts'
import { act, type Acted, type ActTools } from './act.ts'

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
}

async function settle(
  tx: Connection,
  viewer: Viewer,
  commandId: string,
  decided: Decided,
  at: string,
): Promise<Acted<Settlement>> {
  const command = await lockCommand(tx, viewer, commandId)
  if (!command) throw new Refusal('command.unknown')
  if (!command.isOperable) throw new Refusal('action.forbidden')
  if (!needsPerson(command.status)) throw new Refusal('settlement.early')
  const earlier = await findSettlement(tx, viewer, commandId)
  if (earlier) {
    if (!isSame(earlier, decided)) throw new Refusal('settlement.taken')
    return { result: earlier, acts: [] }
  }
  const { decision, note, successorId } = decided
  if (successorId !== null && !(await mayReplace(tx, viewer, commandId, successorId)))
    throw new Refusal('settlement.successor')
  await insertSettlement(tx, viewer, { commandId, decision, note, successorId, at })
  const { organizationId, userId, displayName } = viewer
  const recorded = {
    organizationId,
    personId: userId,
    kind: 'command.settled',
    subjectId: commandId,
    ...(command.taskId === null ? {} : { taskId: command.taskId }),
    data: { agentId: command.agentId, decision, successorId, noteDigest: note === null ? null : digestOf(note) },
    wakes: commandId,
  } as const
  return { result: { decision, note, successorId, at, by: { id: userId, name: displayName } }, acts: [recorded] }
}

/** A note that is not the one that stands would be lost without a word: so that is not the same. */
const isSame = (earlier: Settlement, { decision, note, successorId }: Decided): boolean =>
  earlier.decision === decision && earlier.successorId === successorId && (note === null || note === earlier.note)

/** The trail has no words of people, and proves them all the same: what a note says now is what it said then. */
const digestOf = (note: string): string => createHash('sha256').update(note).digest('hex')
