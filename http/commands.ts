/**
 * Sending and cancelling: `/commands` answers when the command is durable, `/messages` and `/cancel` when it is finished. Does
 * not own acceptance (actors/acceptance.ts) or the stream (stream.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { instruments } from '../actors/system.ts'
import { isFinished, type Command, type CommandBody } from '../domain/command.ts'
import { Refusal } from '../domain/refusal.ts'
import { readEvidence } from '../persistence/evidence.ts'
import { CommandRequest } from './command-body.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'
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

async function sendAndWait(
  door: Door,
  request: FastifyRequest,
  reply: FastifyReply,
  agentId: string,
  body: CommandBody,
) {
  const viewer = viewerOf(request)
  const asked = { agentId: localId(agentId, 'agent.unknown'), body, idempotencyKey: keyFor(request, body) }
  const { command } = await door.system.commands.accept(viewer, asked)
  const window = openWindow(patienceMs, goneSignal(reply), door.drain)
  try {
    for await (const told of progress(door, viewer, { commandId: command.id }, window.signal))
      if (told.kind === 'command' && isFinished(told.command.status)) return outcomeOf(told.command, request.id)
  } finally {
    window.close()
  }
  throw waitingStopped(command.id)
}

export const commandRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  const operate = { permission: 'operate' } as const
  app.post(
    '/api/agents/:agentId/commands',
    { config: operate, schema: { params: OfAgent, body: CommandRequest } },
    async (request, reply) => {
      const idempotencyKey = givenKey(request)
      if (idempotencyKey === null) throw new Refusal('command.key.missing')
      const agentId = localId(request.params.agentId, 'agent.unknown')
      const asked = { agentId, body: request.body, idempotencyKey }
      const { command } = await door.system.commands.accept(viewerOf(request), asked)
      return reply.code(202).header('location', `/api/commands/${command.id}`).send({ command })
    },
  )
  app.get(
    '/api/commands/:commandId',
    { config: { permission: 'read' }, schema: { params: OfCommand } },
    async (request) => {
      const id = localId(request.params.commandId, 'command.unknown')
      const viewer = viewerOf(request)
      const command = await door.system.commands.find(viewer, id)
      if (command.status !== 'uncertain') return { command }
      // An addition to the specified record: what a person needs who has to decide what follows.
      const evidence = (await readEvidence(door.db.pool, viewer.organizationId, [id])).get(id)
      return { command: evidence === undefined ? command : { ...command, evidence } }
    },
  )
  app.post(
    '/api/agents/:agentId/messages',
    { config: operate, schema: { params: OfAgent, body: CommandRequest } },
    (request, reply) => sendAndWait(door, request, reply, request.params.agentId, request.body),
  )
  app.post(
    '/api/agents/:agentId/tasks/:taskId/cancel',
    { config: operate, schema: { params: OfTask, querystring: Tenant } },
    (request, reply) => {
      const { agentId, taskId } = request.params
      // Names from an address follow the same rules as names from a body.
      const body = CommandRequest.safeParse({ action: 'cancelTask', taskId, tenant: request.query.tenant })
      if (!body.success) throw new Refusal('task.unknown')
      return sendAndWait(door, request, reply, agentId, body.data)
    },
  )
  done()
}
