/**
 * One demo agent on the network: the card, JSON-RPC and HTTP+JSON, streams with keep-alives. Owns the joint between
 * Fastify, the codec (a2a/server.ts) and the tasks (tasks.ts). Does not own any of the three.
 */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Declined } from '../../a2a/server-errors.ts'
import { cardFor, cardVary } from '../../a2a/server-card.ts'
import type { Call } from '../../a2a/server-params.ts'
import {
  decodeRest,
  decodeRpc,
  encodeError,
  encodeEvent,
  encodeResult,
  keepAlive,
  streamHeaders,
  versionOf,
} from '../../a2a/server.ts'
import type { Decoded, Dialect, ServerRequest, ServerResponse as Answer } from '../../a2a/server.ts'
import type { StreamResponse } from '../../a2a/messages.ts'
import { isSettled, isTerminal } from '../../domain/task.ts'
import { cardOf } from './card.ts'
import { listTasks, withHistory } from './listing.ts'
import { TaskBook } from './tasks.ts'
import type { DemoAgent } from './turn.ts'

const keepAliveMs = 15_000
/** A reader that lets this much wait is gone or asleep: its stream ends, and the task does not care. */
const unreadLimitBytes = 4 * 1024 * 1024

interface Served {
  readonly agent: DemoAgent
  readonly book: TaskBook
}

/** Mounts an agent under `/<variant>`. `originOf` is asked when the card is read, once the port is known. */
export function serveAgent(app: FastifyInstance, variant: string, agent: DemoAgent, originOf: () => string): TaskBook {
  const book = new TaskBook(agent)
  const served: Served = { agent, book }
  const card = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const asked = versionOf(read(request, ''))
    const body = JSON.stringify(cardFor(cardOf(agent, `${originOf()}/${variant}`), asked))
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    reply.headers({ etag, 'cache-control': 'no-cache', vary: cardVary })
    if (request.headers['if-none-match'] === etag) return reply.code(304).send()
    return reply.type('application/json').send(body)
  }
  app.get(`/${variant}/card.json`, card)
  app.get(`/${variant}/.well-known/agent-card.json`, card)
  app.post(`/${variant}/a2a/jsonrpc`, (request, reply) => answer(served, decodeRpc(read(request, '')), reply))
  const mount = `/${variant}/a2a/rest`
  app.all(`${mount}/*`, (request, reply) => answer(served, decodeRest(read(request, mount)), reply))
  return book
}

function read(request: FastifyRequest, mount: string): ServerRequest {
  const [path = '', query = ''] = request.url.split('?', 2)
  return {
    method: request.method,
    path: path.slice(mount.length),
    query: new URLSearchParams(query),
    headers: request.headers,
    body: typeof request.body === 'string' ? request.body : '',
  }
}

async function answer(served: Served, decoded: Decoded, reply: FastifyReply): Promise<FastifyReply> {
  if (decoded.kind === 'declined') return write(reply, encodeError(decoded.dialect, decoded.error))
  const { call, dialect } = decoded
  const extensions = optedInto(call, decoded.extensions)
  // Only what this agent declares can be in use.
  const activated = served.agent.extensions.map(({ uri }) => uri).filter((uri) => extensions.has(uri))
  try {
    if (call.operation === 'stream' || call.operation === 'subscribe')
      return stream(served.book, call, reply, { dialect, extensions, activated })
    return write(reply, await perform(served.book, call, { dialect, extensions, activated }))
  } catch (error) {
    if (error instanceof Declined) return write(reply, encodeError(dialect, error))
    throw error
  }
}

function write(reply: FastifyReply, { status, headers, body }: Answer): FastifyReply {
  return reply.code(status).headers(headers).send(body)
}

/** 1.0 clients opt in by header, and the console also names URIs in the message. */
function optedInto(call: Call, requested: readonly string[]): ReadonlySet<string> {
  const inMessage =
    call.operation === 'send' || call.operation === 'stream' ? call.params.message.extensions : undefined
  return new Set([...requested, ...(inMessage ?? [])])
}

interface Circumstances {
  readonly dialect: Dialect
  readonly extensions: ReadonlySet<string>
  readonly activated: readonly string[]
}

async function perform(book: TaskBook, call: Call, { dialect, extensions, activated }: Circumstances): Promise<Answer> {
  switch (call.operation) {
    case 'send': {
      const { message, configuration } = call.params
      const { task, played } = book.send({ message, extensions })
      if (!configuration?.returnImmediately) await played
      const now = configuration?.returnImmediately ? task : book.get(task.id)
      return encodeResult(dialect, 'send', { task: withHistory(now, configuration?.historyLength) }, activated)
    }
    case 'get':
      return encodeResult(dialect, 'get', withHistory(book.get(call.params.id), call.params.historyLength))
    case 'list':
      return encodeResult(dialect, 'list', listTasks(book.all(), call.params))
    case 'cancel':
      return encodeResult(dialect, 'cancel', book.cancel(call.params.id))
    case 'extendedCard':
      throw new Declined('UNSUPPORTED_OPERATION', 'This agent has no extended card.')
    case 'pushCreate':
    case 'pushGet':
    case 'pushList':
    case 'pushDelete':
      throw new Declined('PUSH_NOTIFICATION_NOT_SUPPORTED', 'This agent sends no push notifications.')
    default:
      throw new Declined('UNSUPPORTED_OPERATION', 'This operation is a stream.')
  }
}

type StreamCall = Extract<Call, { operation: 'stream' | 'subscribe' }>

/**
 * Writes events as they happen. A client that leaves only stops listening: the turn is played by the book, not by the
 * stream.
 */
function stream(book: TaskBook, call: StreamCall, reply: FastifyReply, around: Circumstances): FastifyReply {
  const { dialect, extensions, activated } = around
  const { raw } = reply
  let taskId = ''
  const timer = setInterval(() => raw.write(keepAlive), keepAliveMs)
  const leave = (): void => {
    clearInterval(timer)
    book.unsubscribe(taskId, listen)
  }
  const listen = (event: StreamResponse): void => {
    taskId ||= 'task' in event ? event.task.id : ''
    if (!raw.headersSent) begin(reply, streamHeaders(dialect, activated))
    if (!raw.destroyed) raw.write(encodeEvent(dialect, event))
    if (raw.writableLength > unreadLimitBytes) raw.destroy()
    if (!closes(call, event)) return
    leave()
    raw.end()
  }
  raw.once('close', leave)
  try {
    if (call.operation === 'subscribe') book.subscribe(call.params.id, listen)
    else book.send({ message: call.params.message, extensions }, listen)
  } catch (error) {
    // Declined before the first event: the answer is an ordinary error, not a stream.
    leave()
    raw.off('close', leave)
    throw error
  }
  return reply
}

function begin(reply: FastifyReply, headers: Record<string, string>): void {
  reply.hijack()
  // Errors of the socket end in `close`, which is where the stream is left; without a listener they would end the
  // process.
  reply.raw.on('error', (error: Error) => reply.log.debug(error))
  reply.raw.writeHead(200, headers)
}

/** A send's stream has said all when the task has ended or waits; a subscriber may be waiting for somebody's reply. */
function closes(call: StreamCall, event: StreamResponse): boolean {
  if (!('statusUpdate' in event)) return false
  const { state } = event.statusUpdate.status
  return call.operation === 'stream' ? isSettled(state) : isTerminal(state)
}
