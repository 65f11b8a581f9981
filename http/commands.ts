/**
 * Sending and cancelling: `/commands` answers when the command is durable, `/messages` and `/cancel` when it is finished. Does
 * not own acceptance (actors/acceptance.ts) or the stream (stream.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { instruments } from '../actors/system.ts'
import type { Accepted } from '../actors/command.ts'
import type { CommandBody } from '../domain/command-body.ts'
import { isFinished, type Command } from '../domain/command.ts'
import { Refusal } from '../domain/refusal.ts'
import { withEvidence } from '../persistence/evidence.ts'
import { acceptFor } from './accepting.ts'
import { CommandAnswer, OutcomeAnswer } from './answers.ts'
import { CommandRequest } from './command-body.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'
import { Standing } from './standing.ts'
import { goneSignal, openWindow, patienceMs, progress } from './watch.ts'

const OfAgent = z.object({ agentId: z.string() })
const OfCommand = z.object({ commandId: z.string() })
const OfTask = z.object({ agentId: z.string(), taskId: z.string() })
const Tenant = z.object({ tenant: z._default(z.string(), '') })

const keyLimit = 255

/** The caller's key; null when there is none. One that is empty or too long is refused wherever it stands. */
export function givenKey(request: FastifyRequest): string | null {
  const key = request.headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key !== 'string' || key === '' || key.length > keyLimit) throw new Refusal('command.key.missing')
  return key
}

/** For routes where a key is optional: a retry is safe with a key or a message id, and only then. */
export const keyFor = (request: FastifyRequest, body: CommandBody): string =>
  givenKey(request) ?? body.messageId ?? instruments.newToken()

const waitingStopped = (id: string): Refusal =>
  new Refusal(
    'command.waiting',
    `Command accepted; waiting stopped. Query /api/commands/${id} for its outcome before submitting again.`,
  )

/** What `/messages` and `/cancel` answer. `result` is the task or the message itself, without its envelope. */
function outcomeOf(command: Command, requestId: string) {
  const { id: commandId, result } = command
  if (!result) throw new Refusal('command.failed', command.error ?? undefined)
  const { task, message } = result.event as { readonly task?: unknown; readonly message?: unknown }
  const event = task ?? message ?? null
  return {
    result: event,
    localId: result.localId,
    commandId,
    sessionId: sessionOf(event, commandId),
    requestId,
    telemetry: [],
  }
}

/** A session is the agent's conversation: its context, or the command where the agent named none. */
function sessionOf(event: unknown, otherwise: string): string {
  const contextId = (event as { readonly contextId?: unknown } | null)?.contextId
  return typeof contextId === 'string' && contextId !== '' ? contextId : otherwise
}

/** Apart from the wait for its outcome, which would keep the body. */
async function accept(door: Door, request: FastifyRequest, reply: FastifyReply, agentId: string, body: CommandBody) {
  const asked = { agentId: localId(agentId, 'agent.unknown'), body, idempotencyKey: keyFor(request, body) }
  return acceptFor(door, request, reply, asked)
}

async function outcome(door: Door, request: FastifyRequest, reply: FastifyReply, accepted: Promise<Accepted>) {
  const { command } = await accepted
  const standing = new Standing(request)
  const window = openWindow(patienceMs, goneSignal(reply), door.drain)
  try {
    for await (const told of progress(door, standing, { commandId: command.id }, window.signal))
      if (told.kind === 'command' && isFinished(told.command.status)) return outcomeOf(told.command, request.id)
  } finally {
    window.close()
  }
  throw waitingStopped(command.id)
}

/** As the document shows it; `givenKey` reads it. */
export const IdempotencyKey = z.object({
  'idempotency-key': z.optional(z.string().check(z.minLength(1), z.maxLength(keyLimit))),
})
/** With which codes anything that is sent can be refused. */
export const sendRefusals = [
  'command.key.missing',
  'command.key.taken',
  'command.failed',
  'agent.unknown',
  'task.reference.unknown',
  'task.context',
  'skill.context',
  'skill.fixed',
  'skill.unsupported',
  'skill.crossed',
  'command.unknown',
  'settlement.replaces',
  'settlement.early',
  'settlement.taken',
] as const
const accepting = {
  summary: 'Send or cancel: answered when it cannot be lost any more',
  params: OfAgent,
  body: CommandRequest,
  accepts: { headers: z.required(IdempotencyKey) },
  response: { 202: CommandAnswer },
  refuses: [...sendRefusals, 'task.unknown'],
} as const
const looking = {
  summary: 'What became of a command',
  params: OfCommand,
  response: { 200: CommandAnswer },
  refuses: ['command.unknown'],
} as const
const sending = {
  summary: 'Send and wait for the answer, 50 s at most',
  params: OfAgent,
  body: CommandRequest,
  accepts: { headers: IdempotencyKey },
  response: { 200: OutcomeAnswer },
  refuses: [...sendRefusals, 'task.unknown', 'command.waiting'],
} as const
const cancelling = {
  summary: 'Cancel a task and wait for the answer, 50 s at most',
  params: OfTask,
  querystring: Tenant,
  accepts: { headers: IdempotencyKey },
  response: { 200: OutcomeAnswer },
  refuses: [...sendRefusals, 'task.unknown', 'command.waiting'],
} as const

export const commandRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  const operate = { permission: 'operate', proves: 'with its commit' } as const
  app.post('/api/agents/:agentId/commands', { config: operate, schema: accepting }, async (request, reply) => {
    const idempotencyKey = givenKey(request)
    if (idempotencyKey === null) throw new Refusal('command.key.missing')
    const agentId = localId(request.params.agentId, 'agent.unknown')
    const asked = { agentId, body: request.body, idempotencyKey }
    const { command } = await acceptFor(door, request, reply, asked)
    return reply.code(202).header('location', `/api/commands/${command.id}`).send({ command })
  })
  app.get('/api/commands/:commandId', { config: { permission: 'read' }, schema: looking }, async (request) => {
    const id = localId(request.params.commandId, 'command.unknown')
    const viewer = viewerOf(request)
    const command = await door.system.commands.find(viewer, id)
    const [told = command] = await withEvidence(door.db.pool, viewer, [command])
    return { command: told }
  })
  app.post('/api/agents/:agentId/messages', { config: operate, schema: sending }, (request, reply) =>
    outcome(door, request, reply, accept(door, request, reply, request.params.agentId, request.body)),
  )
  app.post('/api/agents/:agentId/tasks/:taskId/cancel', { config: operate, schema: cancelling }, (request, reply) => {
    const { agentId, taskId } = request.params
    // Names from an address follow the same rules as names from a body.
    const body = CommandRequest.safeParse({ action: 'cancelTask', taskId, tenant: request.query.tenant })
    if (!body.success) throw new Refusal('task.unknown')
    return outcome(door, request, reply, accept(door, request, reply, agentId, body.data))
  })
  done()
}
