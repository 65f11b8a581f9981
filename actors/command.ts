/**
 * Commands: accepting them (many in one commit) and doing their work under a lease. Does not own their life
 * (machines/command.ts), their rows (persistence/commands.ts) or their routes (http/commands.ts).
 */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../a2a/canonical-json.ts'
import { commandMachine, type DiscoverOutcome } from '../machines/command.ts'
import type { Viewer } from '../domain/access.ts'
import { wordsOf, type CommandBody } from '../domain/command-body.ts'
import type { Command, CommandStatus } from '../domain/command.ts'
import { titleFrom } from '../domain/task.ts'
import { Refusal } from '../domain/refusal.ts'
import {
  findByKeys,
  insertCommands,
  insertCommandsAndActors,
  projectCommands,
  type AcceptedAgent,
  type NewCommand,
  type TakenKey,
} from '../persistence/commands.ts'
import type { Flight } from '../persistence/drivers/flight.ts'
import { holdPresumptions, type Presumption } from '../persistence/presumptions.ts'
import type { StateValue } from '../domain/chart.ts'
import { JustAccepted, type Deliveries } from './delivery.ts'
import type { BatchContext, Kind, Projected } from './loop/kinds.ts'
import type { Answer, Operation, Performed } from './loop/operation.ts'

export interface AcceptInput {
  readonly command: NewCommand
  /** What is presumed of who sends it; the commit holds it against what is there. Absent: they were asked for before. */
  readonly presumption?: Presumption
}

/** A presumption does not stand, or nobody knows: who sends it is to be asked for, and then to send again. */
export class Unproven extends Error {
  override readonly name = 'Unproven'
  constructor(options?: ErrorOptions) {
    super('Who sent it is not known, or not who they were taken for.', options)
  }
}

/** Whether a presumption stood when it was looked at, once that is known: for what goes the longer way, which does not look. */
const looks = new WeakMap<AcceptInput, boolean>()

export interface Accepted {
  readonly command: Command
  /** The key was known with the same content: this is the earlier command, as it is now. */
  readonly replayed: boolean
}

/** The content a key stands for: everything the caller said, except what the console would have made up itself. */
const contentOf = (agentId: string, body: CommandBody): string => canonicalJson({ agentId, body })
const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex')

export const contentDigest = (agentId: string, body: CommandBody): string => digestOf(contentOf(agentId, body))

export function newCommand(
  viewer: Viewer,
  of: Pick<NewCommand, 'agentId' | 'body' | 'idempotencyKey' | 'taskId' | 'skillId' | 'status'>,
  newToken: () => string,
): NewCommand {
  const content = contentOf(of.agentId, of.body)
  const id = newToken()
  return {
    id,
    auditId: newToken(),
    organizationId: viewer.organizationId,
    personId: viewer.userId,
    agentId: of.agentId,
    idempotencyKey: of.idempotencyKey,
    contentDigest: digestOf(content),
    characters: content.length,
    // So that it is found without an index of its own (migration 20).
    messageId: of.body.messageId ?? id,
    title: titleFrom(wordsOf(of.body)),
    body: of.body,
    taskId: of.taskId,
    skillId: of.skillId,
    status: of.status,
  }
}

/** Accept = one commit: the idempotency record, the input archive, the audit row and the actor. */
export const acceptCommand: Operation<AcceptInput, Accepted> = {
  name: 'acceptCommand',
  atOnce(batch, inputs) {
    const commands = inputs.map((input) => input.command)
    const agents = new Map<string, AcceptedAgent>()
    const presuming = inputs.filter(({ presumption }) => presumption)
    return {
      answers: commands.map((command) => accepted(command, () => agents.get(command.id) ?? null, batch.at)),
      write: async (actors, tx) => {
        const looking = presuming.length > 0 ? look(tx.before, presuming) : undefined
        const ids = new Set(presuming.map(({ command }) => command.id))
        const [inserted] = await Promise.all([insertCommandsAndActors(tx, commands, actors, ids), looking])
        for (const [id, agent] of inserted) agents.set(id, agent)
        return new Set(agents.keys())
      },
    }
  },
  refusal: (input) => (looks.get(input) === false ? new Unproven() : null),
  weigh: ({ command }) => command.characters,
  async askAgain(db, inputs) {
    const open = inputs.filter((input) => input.presumption && !looks.has(input))
    if (open.length > 0) await look(db, open)
  },
  async run(batch, inputs) {
    const standing = new Set(inputs.filter((input) => !input.presumption || looks.get(input)))
    const insertable = [...standing].map((input) => input.command)
    const inserted = await insertCommands(batch.tx, insertable, batch.at.toISOString())
    const others = inputs.map((input) => input.command).filter((command) => !inserted.has(command.id))
    const taken = new Map((await findByKeys(batch.tx, others)).map((found) => [keyOf(found), found]))
    return inputs.map((input) => {
      const { command } = input
      const agent = inserted.get(command.id)
      if (agent) return accepted(command, () => agent, batch.at)
      const found = taken.get(keyOf(command))
      // Its own was accepted by an attempt that nobody acknowledged, when what it presumed stood.
      const isTold = standing.has(input) || found?.command.id === command.id
      return isTold ? replayed(command, found) : { kind: 'refused', refusal: new Unproven() }
    })
  },
}

/** Asks whether what is presumed stands, and keeps the answer: who stood had their place taken. */
async function look(db: Pick<Flight, 'any'>, inputs: readonly AcceptInput[]): Promise<void> {
  const presumed = inputs.flatMap(({ command: { id }, presumption }) => (presumption ? [{ id, ...presumption }] : []))
  const standing = await holdPresumptions(db, presumed)
  for (const input of inputs) looks.set(input, standing.has(input.command.id))
}

const keyOf = (of: { readonly organizationId: string; readonly idempotencyKey: string }): string =>
  `${of.organizationId} ${of.idempotencyKey}`

/** Accepted and discovered in one commit: one commit less before the first byte, and a third less work in all. */
const discoveryDone = { type: 'xstate.done.actor.discover', output: { kind: 'found' } satisfies DiscoverOutcome }

/** `agentOf`: what the commit found of the agent; null while nobody knows it. */
export function accepted(command: NewCommand, agentOf: () => AcceptedAgent | null, instant: Date): Performed<Accepted> {
  const at = instant.toISOString()
  const { id, agentId, messageId, body, skillId, organizationId, personId } = command
  const record: Command = {
    id,
    agentId,
    tenant: body.tenant,
    action: body.action,
    messageId,
    status: 'pending',
    result: null,
    error: null,
    createdAt: at,
    updatedAt: at,
  }
  const ref = { kind: 'command', id }
  const carry = new JustAccepted({ agentId, bytes: command.characters }, () => {
    const agent = agentOf()
    return agent && { ...agent, agentId, agentEnabled: true, messageId, createdAt: at, skillId, body }
  })
  const spawns = [{ ref, lane: agentId, isNew: true, organizationId, cause: personId, carry }]
  const sends = command.status === 'dispatching' ? [{ ref, event: discoveryDone }] : []
  return { kind: 'done', result: { command: record, replayed: false }, effects: { spawns, sends } }
}

export function replayed(command: NewCommand, found: TakenKey | undefined): Answer<Accepted> {
  // Neither inserted nor there: the insert found no enabled agent to join.
  if (!found) return { kind: 'refused', refusal: new Refusal('agent.unknown') }
  if (found.contentDigest !== command.contentDigest)
    return { kind: 'refused', refusal: new Refusal('command.key.taken') }
  // Its own id: it was written by an attempt that nobody acknowledged, and nobody has been answered yet.
  return { kind: 'done', result: { command: found.command, replayed: found.command.id !== command.id }, effects: {} }
}

/** A command's status is its state; `pending` has inner states that people need not know. */
const statusOf = (value: StateValue): CommandStatus =>
  typeof value === 'string' ? (value as CommandStatus) : 'pending'

async function project(batch: BatchContext, moved: readonly Projected[]): Promise<void> {
  const commands = moved.flatMap(({ ref, snapshot, fresh }) => {
    const status = statusOf(snapshot.value)
    // Accepting wrote the row, and every state inside `pending` reads the same.
    if (fresh || status === 'pending') return []
    const reply = batch.replies.get(ref.id)
    const { error: ended } = snapshot.context
    const error = typeof ended === 'string' ? ended : (reply?.remark ?? null)
    return [{ id: ref.id, status, error, reply: reply?.reply ?? null, taskId: reply?.taskId ?? null }]
  })
  if (commands.length > 0) await projectCommands(batch.tx, commands, batch.at.toISOString())
}

export const commandKind = (deliveries: Deliveries): Kind => ({
  machine: commandMachine,
  pollMs: 250,
  leaseMs: 60_000,
  concurrency: 256,
  laneLimit: 64,
  claimLimit: 10,
  work: {
    discover: (actor, held) => deliveries.discover(actor, held),
    deliver: (actor, held) => deliveries.deliver(actor, held),
  },
  repeatable: new Set(['discover']),
  project,
})
