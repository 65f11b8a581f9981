/**
 * Starts an agent on plain node:http that can misbehave in every way the SDK cannot. Owns routing, the queue of faults
 * and the answers of a healthy A2A 1.0 agent over JSON-RPC or HTTP+JSON. Does not own the faults themselves
 * (raw-faults.ts, raw-stream.ts) or the turns (raw-agent.ts).
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { interfaceEntry, laidOver, type CardOverlay } from './card.ts'
import { operationOf, recordOf } from './operations.ts'
import { listenOnLoopback, openReceiptLog, openScript, type Peer, type PeerScript } from './peer.ts'
import { isEnd, isTerminal, openRawAgent, type RawAgent } from './raw-agent.ts'
import { answerWith, interimHeads, type AnswerFault, type Exchange, type InterimFault } from './raw-faults.ts'
import { openEvents, type StreamFault, type WireEvent } from './raw-stream.ts'

export type RawFault = AnswerFault | InterimFault | StreamFault

export interface RawScript extends PeerScript {
  /**
   * Queues a fault for the next `times` requests of an operation: its 1.0 name, `GetAgentCard` for the card, or `any`.
   * Faults of a stream queued together for one request act together. Infinity keeps it until `heal`.
   */
  fault(operation: string, fault: RawFault, times?: number): void
  heal(): void
  /** Says something to all open streams of a task. */
  emit(taskId: string, event: WireEvent): void
}

export interface RawPeer extends Peer {
  readonly script: RawScript
  /** The ids of the tasks the agent knows, oldest first. */
  taskIds(): readonly string[]
  /** The ids of the tasks whose stream was asked for, in order. */
  subscribed(): readonly string[]
}

export interface RawPeerOptions {
  readonly binding?: 'JSONRPC' | 'HTTP+JSON'
  readonly streaming?: boolean
  /** Laid over the card's top level, or made from the card and the agent's origin. */
  readonly card?: CardOverlay
  /** Said in the card's interface entry. */
  readonly tenant?: string
  readonly receiptFile?: string
  /** Told of each request that was read whole, by its operation; the answer closes when it was given, or given up. */
  readonly asked?: (operation: string, answer: ServerResponse) => void
}

interface Queued {
  readonly operation: string
  readonly fault: RawFault
  left: number
}

const streamFaults: ReadonlySet<string> = new Set(['framing', 'cut', 'inject', 'duplicate', 'foreign', 'huge'])
const isStreamFault = (fault: RawFault): fault is StreamFault => streamFaults.has(fault.fault)

/** What the next request of an operation meets. */
function taken(queue: readonly Queued[], operation: string): RawFault[] {
  const due = queue.filter((q) => q.left > 0 && (q.operation === operation || q.operation === 'any'))
  // One whole-response fault answers one request; the next stays for the next request.
  const answer = due.find((q) => !isStreamFault(q.fault))
  const used = answer ? [answer] : due
  for (const q of used) q.left -= 1
  return used.map((q) => q.fault)
}

export async function startRawPeer(options: RawPeerOptions = {}): Promise<RawPeer> {
  const log = openReceiptLog(options.receiptFile)
  const stagehand = openScript()
  const agent = openRawAgent(stagehand)
  const queue: Queued[] = []
  const subscribed: string[] = []
  const ends = new AbortController()

  const listening = await listenOnLoopback((request, response) => {
    answer(request, response).catch((error: unknown) => {
      // The reader hung up while we read; anything else is a defect of this agent and must be seen.
      if (request.errored || ends.signal.aborted) return
      response.destroy(error instanceof Error ? error : new Error(String(error)))
    })
  })
  const card = cardOf(options, listening.origin)

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', listening.origin).pathname
    const body = await readJson(request)
    const isCard = path === '/.well-known/agent-card.json'
    const { method, messageId } = isCard ? { method: 'GetAgentCard' } : operationOf(request.method ?? '', path, body)
    log.note(method, { headers: request.headers, body })
    options.asked?.(method, response)
    if (method === 'SubscribeToTask') subscribed.push(String(paramsOf({ method, body, path })['id']))
    if (messageId !== undefined) {
      log.record({ messageId, at: Date.now(), method })
      await stagehand.gate()
    }
    const rpcId = recordOf(body)['jsonrpc'] === undefined ? undefined : (recordOf(body)['id'] ?? null)
    const exchange: Exchange = { request, response, rpcId }
    const faults = taken(queue, method)
    const whole = faults.find((f) => !isStreamFault(f))
    if (whole?.fault === 'delay') await pass(whole.delayMs, ends.signal)
    else if (whole?.fault === 'interim') request.socket.write(interimHeads(whole))
    else if (whole?.fault === 'reset' && whole.performed) await performSend(agent, method, body, path)
    if (whole && whole.fault !== 'delay' && whole.fault !== 'interim') return answerWith(whole, exchange)
    if (isCard) return writeJson(response, 200, card)
    await serve(agent, exchange, { method, body, path, faults: faults.filter(isStreamFault) })
  }

  return {
    cardUrl: `${listening.origin}/.well-known/agent-card.json`,
    origin: listening.origin,
    receipts: log.receipts,
    receiptsOf: log.receiptsOf,
    received: log.received,
    callsOf: log.callsOf,
    seen: log.seen,
    taskIds: () => [...agent.tasks.keys()],
    subscribed: () => subscribed,
    script: {
      ...stagehand,
      fault: (operation, fault, times = 1) => void queue.push({ operation, fault, left: times }),
      heal: () => void queue.splice(0),
      emit: agent.emit,
    },
    async close() {
      ends.abort()
      stagehand.release()
      await listening.close()
      log.close()
    },
  }
}

interface Asked {
  readonly method: string
  readonly body: unknown
  readonly path: string
  readonly faults: readonly StreamFault[]
}

async function serve(agent: RawAgent, exchange: Exchange, asked: Asked): Promise<void> {
  const { method } = asked
  const { response, rpcId } = exchange
  const params = paramsOf(asked)
  const reply = (result: unknown): void =>
    writeJson(response, 200, rpcId === undefined ? result : { jsonrpc: '2.0', id: rpcId, result })
  const refuse = (code: number, message: string): void => answerWith({ fault: 'error', code, message }, exchange)
  if (method === 'SendMessage') return reply(await firstOrLast(agent, params))
  if (method === 'SendStreamingMessage') return stream(agent, exchange, asked)
  if (method === 'ListTasks') {
    const tasks = [...agent.tasks.values()]
    return reply({ tasks, nextPageToken: '', pageSize: tasks.length, totalSize: tasks.length })
  }
  // It keeps nothing and never calls: whoever delivers in its name is the test.
  if (method.endsWith('TaskPushNotificationConfig')) return reply(params)
  const task = agent.tasks.get(String(params['id'] ?? ''))
  if (!task) return refuse(-32001, 'Task not found')
  if (method === 'GetTask') return reply(task)
  if (method === 'CancelTask') return reply(agent.cancel(task.id))
  if (method !== 'SubscribeToTask') return refuse(-32601, `No method ${method}`)
  if (isTerminal(task.status.state)) return refuse(-32004, 'The task has ended.')
  const events = openEvents(response, asked.faults, (event) => enveloped(event, rpcId))
  events.write({ task })
  const unsubscribe = agent.subscribe(task.id, (event) => {
    events.write(event)
    if (isEnd(stateIn(event))) events.end()
  })
  response.on('close', unsubscribe)
}

/** `returnImmediately` answers with the first event of the turn, which goes on; otherwise the turn is waited for. */
async function firstOrLast(agent: RawAgent, params: Record<string, unknown>): Promise<WireEvent> {
  const { promise, resolve, reject } = Promise.withResolvers<WireEvent>()
  const turn = agent.send(recordOf(params['message']), resolve)
  if (recordOf(params['configuration'])['returnImmediately'] !== true) return turn
  turn.catch(reject)
  return promise
}

async function stream(agent: RawAgent, { response, rpcId }: Exchange, asked: Asked): Promise<void> {
  const events = openEvents(response, asked.faults, (event) => enveloped(event, rpcId))
  await agent.send(recordOf(paramsOf(asked)['message']), (event) => events.write(event))
  events.end()
}

async function performSend(agent: RawAgent, method: string, body: unknown, path: string): Promise<void> {
  const params = paramsOf({ method, body, path })
  if (method === 'CancelTask') agent.cancel(String(params['id'] ?? ''))
  else await firstOrLast(agent, { ...params, configuration: { returnImmediately: true } })
}

function paramsOf({ method, body, path }: Pick<Asked, 'method' | 'body' | 'path'>): Record<string, unknown> {
  const envelope = recordOf(body)
  if ('jsonrpc' in envelope) return recordOf(envelope['params'])
  const id = /\/tasks\/([^/:]+)/.exec(path)?.[1]
  return id === undefined || method.startsWith('Send') ? envelope : { ...envelope, id: decodeURIComponent(id) }
}

const enveloped = (event: WireEvent, rpcId: unknown): unknown =>
  rpcId === undefined ? event : { jsonrpc: '2.0', id: rpcId, result: event }

function stateIn(event: WireEvent): string {
  const status = recordOf(recordOf(event['statusUpdate'])['status'])
  return String(status['state'] ?? '')
}

function writeJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const bodyLimitBytes = 64 * 1024 * 1024

/** The body as JSON; undefined when it is empty or not JSON, which this agent then does not understand. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > bodyLimitBytes) throw new Error(`a test sent more than ${bodyLimitBytes} bytes`)
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  return text === '' ? undefined : (JSON.parse(text) as unknown)
}

/** Lets time pass, for the faults that are about time; ends early when the agent closes. */
const pass = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })

function cardOf({ binding = 'JSONRPC', streaming = true, card, tenant }: RawPeerOptions, origin: string) {
  const url = binding === 'JSONRPC' ? `${origin}/a2a/jsonrpc` : `${origin}/a2a/rest`
  const plain = {
    name: 'Raw test agent',
    description: 'Misbehaves on demand.',
    version: '1.0.0',
    supportedInterfaces: [interfaceEntry(url, binding, tenant)],
    capabilities: { streaming, pushNotifications: false },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'act', name: 'Act', description: 'Plays a scene.', tags: ['test'] }],
  }
  return laidOver(plain, card, origin)
}
