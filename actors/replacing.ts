/**
 * Accepting a command in the place of an earlier one, which failed or is uncertain: one commit takes the new one and settles the
 * other as sent again. So of two people who send it again at once one does, and the other is told; and nobody finds a send that still
 * needs a person though it was sent again. Does not own either half (command.ts, settlement.ts).
 */
import type { Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import { appendAudit } from '../persistence/audit.ts'
import { findByKeys, insertCommands, type NewCommand } from '../persistence/commands.ts'
import { insertSettlement } from '../persistence/settlements.ts'
import { entryOf } from './act.ts'
import { accepted, replayed, type Accepted } from './command.ts'
import type { BatchContext } from './loop/kinds.ts'
import type { Answer, Operation } from './loop/operation.ts'
import { recordOf, toReplace, type Decided } from './settlement.ts'

interface Replacing {
  readonly viewer: Viewer
  readonly command: NewCommand
  /** Id of the command in whose place it goes. */
  readonly replaces: string
}

export const acceptInPlace: Operation<Replacing, Accepted> = {
  name: 'acceptInPlace',
  weigh: ({ command }) => command.characters,
  async run(batch, inputs) {
    const answers = new Map<Replacing, Answer<Accepted>>()
    // In one order, and one after the other: two batches must not wait for each other, and of two for one place the second is refused.
    for (const input of inputs.toSorted((a, b) => (a.replaces < b.replaces ? -1 : 1)))
      answers.set(input, await acceptOne(batch, input).catch(asRefused))
    return inputs.flatMap((input) => answers.get(input) ?? [])
  },
}

async function acceptOne(batch: BatchContext, { viewer, command, replaces }: Replacing): Promise<Answer<Accepted>> {
  const { tx } = batch
  const at = batch.at.toISOString()
  const [earlier] = await findByKeys(tx, [command])
  if (earlier) return replayed(command, earlier)
  const { action, tenant, taskId: remoteTaskId = null } = command.body
  const { agentId, skillId, organizationId } = command
  const settled = await toReplace(tx, viewer, replaces, { action, agentId, tenant, skillId, remoteTaskId })
  const agent = (await insertCommands(tx, [command], at)).get(command.id)
  if (!agent) return replayed(command, (await findByKeys(tx, [command]))[0])
  const decided: Decided = { decision: 'sent-again', note: null, successorId: command.id }
  await insertSettlement(tx, viewer, { commandId: replaces, ...decided, at })
  const record = recordOf('command.settled', viewer, { commandId: replaces, command: settled, decided })
  await appendAudit(tx, entryOf(record, batch.newToken()), at)
  const { effects, ...performed } = accepted(command, () => agent, batch.at)
  const told = [{ organizationId, subjectId: replaces, fact: { type: 'command.settled' } as const }]
  return { ...performed, effects: { ...effects, told } }
}

/** An expected no is an answer; anything else is the batch's. */
function asRefused(error: unknown): Answer<Accepted> {
  if (error instanceof Refusal) return { kind: 'refused', refusal: error }
  throw error
}
