/**
 * `POST /api/agents/{id}/stream`: a send, or a look at a task that exists, as events from committed state. Order for a send:
 * accepted, persisted, snapshot. The browser never owns the work: a stream that ends leaves it running.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CommandBody } from '../domain/command-body.ts'
import type { Command } from '../domain/command.ts'
import { Refusal } from '../domain/refusal.ts'
import { isSettled, isWaiting } from '../domain/task.ts'
import { findAgent } from '../persistence/agents.ts'
import { findRemoteTask, readQuestion, type TaskPulse } from '../persistence/task-views.ts'
import { acceptFor, proven } from './accepting.ts'
import { media } from './answers.ts'
import { ShownStreamRequest, StreamRequest } from './command-body.ts'
import { IdempotencyKey, keyFor, sendRefusals } from './commands.ts'
import { localId, type Door } from './door.ts'
import { frame, ping, sendEvents } from './event-stream.ts'
import { viewerOf } from './guard.ts'
import { letGoOfBody } from './large-bodies.ts'
import { LargeRoom } from './large-room.ts'
import { logged } from './refusals.ts'
import { Standing } from './standing.ts'
import { questionOf, TaskFeed, type Seen } from './task-feed.ts'
import { goneSignal, patienceMs, progress } from './watch.ts'

/** A comment is sent after this much silence, so that proxies and browsers know the line is open; checked every 5 s. */
const pingAfterMs = 10_000

/** What a stream is about, once everything that can be refused has been. */
interface Followed {
  readonly standing: Standing
  readonly agentId: string
  /** The send that opened it; null for a look at a task. */
  readonly command: Command | null
  /** The task as it stood before; null for a send that will make one. */
  readonly before: TaskPulse | null
  /** The agent's question that this send answers: while the task still shows it, the task is not waiting again. */
  readonly answered: string | null
  /** Stored events from this position on are sent. */
  readonly fromPosition: number
}

/** Somebody who looks again sees this much of what was said before; a page keeps events that it has seen. */
const rememberedEvents = 200

async function lookAgain(
  door: Door,
  request: FastifyRequest,
  reply: FastifyReply,
  agentId: string,
  body: { readonly taskId: string; readonly tenant: string; readonly position?: number | undefined },
): Promise<Followed> {
  const viewer = await proven(request, reply)
  if (!(await findAgent(door.db.pool, viewer, agentId))) throw new Refusal('agent.unknown')
  const address = { agentId, tenant: body.tenant, remoteId: body.taskId }
  const before = await findRemoteTask(door.db.pool, viewer, address)
  if (!before) throw new Refusal('task.unknown')
  if (!before.isOperable) throw new Refusal('action.forbidden')
  // Beyond what there is nothing that comes is left out.
  const fromPosition = Math.min(body.position ?? Math.max(0, before.events - rememberedEvents), before.events)
  letGoOfBody(request)
  return { standing: new Standing(request), agentId, command: null, before, answered: null, fromPosition }
}

async function send(
  door: Door,
  request: FastifyRequest,
  reply: FastifyReply,
  agentId: string,
  body: CommandBody,
): Promise<Followed> {
  const { pool } = door.db
  const { taskId, tenant } = body
  const viewer = taskId === undefined ? viewerOf(request) : await proven(request, reply)
  const before = taskId === undefined ? null : await findRemoteTask(pool, viewer, { agentId, tenant, remoteId: taskId })
  const waits = before !== null && body.action === 'send' && isWaiting(before.state)
  const question = waits ? questionOf(await readQuestion(pool, before.localId)) : null
  const asked = { agentId, body, idempotencyKey: keyFor(request, body) }
  const { command, replayed } = await acceptFor(door, request, reply, asked)
  // A repeated send may have been answered long ago: what the task shows now is news to this caller.
  const answered = replayed ? null : question
  const heard = before?.events ?? 0
  const fromPosition = replayed ? Math.max(0, heard - rememberedEvents) : heard
  return { standing: new Standing(request), agentId, command, before, answered, fromPosition }
}

const isAtRest = ({ state, question }: Seen, { answered }: Followed): boolean =>
  isSettled(state) && !(isWaiting(state) && question === answered)

/** The frames of one stream, in order. Never throws: what fails here is said as `error`, for the answer has begun. */
async function* frames(
  door: Door,
  room: LargeRoom,
  request: FastifyRequest,
  followed: Followed,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { command, before } = followed
  // A session is the agent's conversation; until it is known, what the stream is about stands for it.
  const closing = { sessionId: command?.id ?? before?.localId ?? request.id, requestId: request.id }
  try {
    if (command) yield frame('accepted', { commandId: command.id })
    for await (const { text, contextId } of follow(door, room, followed, signal)) {
      closing.sessionId = contextId ?? closing.sessionId
      yield text
    }
  } catch (error) {
    yield frame('error', { ...closing, message: logged(error, request).message })
  }
  yield frame('end', closing)
}

interface Spoken {
  readonly text: string
  readonly contextId: string | null
}

/** Everything between `accepted` and `end`. Throws a refusal when the command did not succeed. */
async function* follow(door: Door, room: LargeRoom, followed: Followed, signal: AbortSignal): AsyncGenerator<Spoken> {
  const { standing, agentId, command, before, fromPosition } = followed
  const of = command ? { commandId: command.id } : { taskId: before?.localId ?? '' }
  let feed: TaskFeed | null = null
  let spokenAt = performance.now()
  for await (const told of progress(door, standing, of, signal)) {
    if (told.kind === 'command') {
      const { status, error } = told.command
      if (status === 'failed' || status === 'uncertain') throw new Refusal('command.failed', error ?? undefined)
    } else if (told.kind === 'task') {
      const { localId: id, taskId, tenant } = told.pulse
      if (!feed) {
        yield { text: frame('persisted', { localId: id, taskId, tenant }), contextId: null }
        feed = await TaskFeed.open(door, room, { standing, agentId, localId: id, fromPosition })
      }
      for await (const text of feed.read(told.pulse, signal)) yield { text, contextId: feed.seen?.contextId ?? null }
      if (feed.seen && isAtRest(feed.seen, followed)) return
      spokenAt = performance.now()
    } else if (performance.now() - spokenAt >= pingAfterMs) {
      yield { text: ping, contextId: null }
      spokenAt = performance.now()
    }
  }
}

const OfAgent = z.object({ agentId: z.string() })

const schema = {
  summary: 'Send, or look at a task that exists, as events',
  params: OfAgent,
  body: StreamRequest,
  accepts: { body: ShownStreamRequest, headers: IdempotencyKey },
  response: {
    200: media(
      ['text/event-stream'],
      'For 50 s at most: `accepted`, `persisted`, `snapshot` (a TaskView), `meta` and `a2a`, `sideband`, `error`, `end`.',
    ),
  },
  refuses: [...sendRefusals, 'task.unknown'],
} as const

export const streamRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  const config = { permission: 'operate', proves: 'with its commit' } as const
  const room = new LargeRoom()
  app.post('/api/agents/:agentId/stream', { config, schema }, async (request, reply) => {
    const agentId = localId(request.params.agentId, 'agent.unknown')
    const { body } = request
    const followed = await ('resubscribe' in body
      ? lookAgain(door, request, reply, agentId, body)
      : send(door, request, reply, agentId, body))
    const limit = { windowMs: patienceMs, until: [goneSignal(reply), door.drain] }
    return sendEvents(request, reply, limit, (signal) => frames(door, room, request, followed, signal))
  })
  done()
}
