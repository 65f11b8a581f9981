/**
 * A front before any other test agent: requests pass to it and answers come back, except where a fault is queued. So the
 * published SDK's servers, of both versions and over both bindings, misbehave as only raw sockets can. Owns forwarding,
 * the queue of faults and the faults of an answer on its way; whole answers that are faults are raw-faults.ts.
 */
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { operationOf, recordOf } from './operations.ts'
import { Countdown, listenOnLoopback, type Peer } from './peer.ts'
import { answerWith, interimHeads, type AnswerFault, type InterimFault } from './raw-faults.ts'

/** What happens to the agent's true answer on its way. */
export type CarriedFault =
  | InterimFault
  /** Ends after so many bytes of the body: by a reset, by our half of the connection, properly, or never. */
  | {
      readonly fault: 'cut-body'
      readonly afterBytes: number
      readonly how: 'reset' | 'half-close' | 'end' | 'hang'
    }
  /** Arrives in pieces of so many bytes, a turn of the event loop apart. */
  | { readonly fault: 'drip'; readonly bytes: number }
  /** These bytes stand before it, so many times. */
  | { readonly fault: 'prefix'; readonly text: string; readonly times?: number }
  /** Line ends are CR, LF and CRLF by turns. */
  | { readonly fault: 'line-ends' }
  /** A word of the answer is another: what an agent's own JSON writer would not let through. One chunk holds it whole. */
  | { readonly fault: 'replace'; readonly word: string; readonly by: string }

export type FrontFault = AnswerFault | CarriedFault

export interface Front {
  readonly origin: string
  readonly cardUrl: string
  /** The next `times` requests of an operation (its 1.0 name, `GetAgentCard`) meet this fault. */
  fault(operation: string, fault: FrontFault, times?: number): void
  /** Resolves when an operation was asked for n times in all, faulty answers included. */
  asked(operation: string, n: number): Promise<void>
  close(): Promise<void>
}

const carried: ReadonlySet<string> = new Set(['interim', 'cut-body', 'drip', 'prefix', 'line-ends', 'replace'])
const isCarried = (fault: FrontFault): fault is CarriedFault => carried.has(fault.fault)

export async function startFront(peer: Pick<Peer, 'origin' | 'cardUrl'>): Promise<Front> {
  const queue: { readonly operation: string; readonly fault: FrontFault; left: number }[] = []
  const asked = new Map<string, Countdown>()
  const countOf = (operation: string): Countdown => {
    const count = asked.get(operation) ?? new Countdown(`requests for ${operation}`)
    asked.set(operation, count)
    return count
  }
  const ends = new AbortController()
  const listening = await listenOnLoopback((request, response) => {
    pass(request, response).catch((error: unknown) => {
      // The product hung up on a fault, or the test is over; anything else must be seen.
      if (request.destroyed || ends.signal.aborted) return
      response.destroy(error instanceof Error ? error : new Error(String(error)))
    })
  })

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request)
    const { pathname } = new URL(request.url ?? '/', listening.origin)
    const isCard = request.method === 'GET' && pathname.startsWith('/.well-known/')
    const json = body.length === 0 ? undefined : (JSON.parse(body.toString()) as unknown)
    const operation = isCard ? 'GetAgentCard' : operationOf(request.method ?? '', pathname, json).method
    const met = queue.find((each) => each.operation === operation && each.left > 0)
    if (met) met.left -= 1
    const rpcId = recordOf(json)['jsonrpc'] === undefined ? undefined : (recordOf(json)['id'] ?? null)
    const fault = met?.fault
    if (fault?.fault === 'interim') request.socket.write(interimHeads(fault))
    if (fault && !isCarried(fault)) answerWith(fault, { request, response, rpcId })
    else await forward(peer.origin, { request, response, body, isCard, origin: listening.origin }, fault)
    countOf(operation).count()
  }

  return {
    origin: listening.origin,
    cardUrl: `${listening.origin}${new URL(peer.cardUrl).pathname}`,
    fault: (operation, fault, times = 1) => void queue.push({ operation, fault, left: times }),
    asked: (operation, n) => countOf(operation).reached(n),
    async close() {
      ends.abort()
      await listening.close()
    },
  }
}

interface Passing {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: Buffer
  readonly isCard: boolean
  readonly origin: string
}

/** Resolves when the agent's head is here; the body follows by itself. */
async function forward(to: string, passing: Passing, fault: CarriedFault | undefined): Promise<void> {
  const { request, response, body } = passing
  const { host: _, connection: __, ...headers } = request.headers
  const out = httpRequest(new URL(request.url ?? '/', to), { method: request.method ?? 'GET', headers, agent: false })
  // Whoever hangs up on the front hangs up on the agent.
  response.on('close', () => out.destroy())
  const head = new Promise<IncomingMessage>((resolve, reject) => out.on('response', resolve).on('error', reject))
  out.end(body)
  const answer = await head
  const { 'content-length': length, connection: ___, 'transfer-encoding': ____, ...fields } = answer.headers
  if (passing.isCard) {
    const card = (await bodyOf(answer)).toString().replaceAll(to, passing.origin)
    response.writeHead(answer.statusCode ?? 200, fields)
    await writeWith(response, chunksOf(Buffer.from(card)), fault)
    return
  }
  const isCut = fault?.fault === 'cut-body' && fault.how !== 'end'
  response.writeHead(
    answer.statusCode ?? 200,
    isCut && length !== undefined ? { ...fields, 'content-length': length } : fields,
  )
  response.flushHeaders()
  void writeWith(response, answer as AsyncIterable<Buffer>, fault).catch((error: unknown) => {
    if (!response.destroyed) response.destroy(error instanceof Error ? error : new Error(String(error)))
  })
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer, void> {
  yield await Promise.resolve(bytes)
}

async function writeWith(
  response: ServerResponse,
  chunks: AsyncIterable<Buffer>,
  fault: CarriedFault | undefined,
): Promise<void> {
  const rewrite = rewriterOf(fault)
  let sent = 0
  if (fault?.fault === 'prefix')
    for (let i = 0; i < (fault.times ?? 1); i++) await put(response, Buffer.from(fault.text))
  for await (const chunk of chunks) {
    if (response.destroyed) return
    if (fault?.fault === 'drip') await dripped(response, chunk, fault.bytes)
    else if (fault?.fault === 'cut-body' && sent + chunk.length >= fault.afterBytes) {
      await put(response, chunk.subarray(0, fault.afterBytes - sent))
      return sever(response, fault.how)
    } else await put(response, rewrite(chunk))
    sent += chunk.length
  }
  response.end()
}

const lineEnds = ['\r\n', '\r', '\n'] as const

/** Latin-1 keeps every byte as one character, whatever the encoding is. */
function rewriterOf(fault: CarriedFault | undefined): (chunk: Buffer) => Buffer {
  const rewritten = (chunk: Buffer, change: (text: string) => string): Buffer =>
    Buffer.from(change(chunk.toString('latin1')), 'latin1')
  let ends = 0
  if (fault?.fault === 'line-ends')
    return (chunk) => rewritten(chunk, (text) => text.replaceAll('\n', () => lineEnds[ends++ % 3] ?? '\n'))
  if (fault?.fault === 'replace') return (chunk) => rewritten(chunk, (text) => text.replaceAll(fault.word, fault.by))
  return (chunk) => chunk
}

/** On a busy machine each takes some twenty milliseconds: what is met is to be the drip, and not how long an exchange may take. */
const dripsLimit = 64

/** The first half kilobyte or so of a chunk bit by bit, then the rest. */
async function dripped(response: ServerResponse, chunk: Buffer, bytes: number): Promise<void> {
  const piecesEnd = Math.min(chunk.length, dripsLimit * bytes)
  for (let from = 0; from < piecesEnd && !response.destroyed; from += bytes) {
    await put(response, chunk.subarray(from, Math.min(from + bytes, piecesEnd)))
    await new Promise((resolve) => setImmediate(resolve))
  }
  if (piecesEnd < chunk.length) await put(response, chunk.subarray(piecesEnd))
}

/** Resolves when the kernel has it, or the reader is gone. */
const put = (response: ServerResponse, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => {
    if (response.destroyed) resolve()
    else response.write(bytes, () => resolve())
  })

function sever(response: ServerResponse, how: 'reset' | 'half-close' | 'end' | 'hang'): void {
  const { socket } = response
  if (how === 'end') response.end()
  else if (how === 'reset') socket?.resetAndDestroy()
  else if (how === 'half-close') socket?.end()
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}
