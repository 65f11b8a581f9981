/**
 * The one door to the network: every byte that leaves this process for an agent goes through here. Owns the limits, the
 * deadlines and the verdict (answered, unsent, lost). Does not own who may be reached (outbound/policy.ts), how a socket
 * is opened (outbound/connector.ts), what the bytes mean (a2a/), or whether to try again: nothing here retries.
 *
 * Always undici's own Agent: Node's global fetch follows redirects, and refuses a dispatcher of undici 8 besides.
 */
import { errors, type Agent } from 'undici'
import type { WireRequest } from '../a2a/client.ts'
import { answerDeadlineMs, type LostAnswer } from '../domain/lost-answer.ts'
import { requestFailed } from './diagnostics.ts'
import { collect, decoded } from './outbound/body.ts'
import { Call } from './outbound/call.ts'
import type { Head } from './outbound/call.ts'
import type { ClientCertificate } from './outbound/connector.ts'
import { admit, OutboundFailure } from './outbound/policy.ts'
import type { OutboundCode, OutboundPolicy } from './outbound/policy.ts'
import { Sockets, type SocketWiring } from './outbound/sockets.ts'

export type { OutboundCode, OutboundPolicy } from './outbound/policy.ts'

const MiB = 1024 * 1024

/** Bytes are counted decoded, and as received. Deadlines are totals: no drip of bytes prolongs them; only our own want of room does. */
export const limits = {
  card: { maxBytes: 2 * MiB, deadlineMs: 15_000, overflow: 'Agent Card exceeds the 2 MB safety limit.' },
  answer: { maxBytes: 25 * MiB, deadlineMs: answerDeadlineMs },
  /** The head may wait as long as a silence: some frameworks hold it back until the first event. */
  stream: { maxBytes: 25 * MiB, headDeadlineMs: 60_000, idleMs: 60_000, deadlineMs: 30 * 60_000 },
} as const satisfies Record<string, ExchangeLimits | StreamLimits>

export interface ExchangeLimits {
  readonly maxBytes: number
  /** From the call to the last byte of the answer; stands still while it waits for `room`. */
  readonly deadlineMs: number
  /** The sentence for an answer over `maxBytes`. */
  readonly overflow?: string
  /**
   * `kept` may reuse an idle socket, which the peer may just have closed: for reads, which may be repeated. `warm` reuses
   * one only within half a second. Everything but GET is `fresh` unless it says otherwise.
   */
  readonly connection?: 'fresh' | 'warm' | 'kept'
  /** Asked when a connection is there, before the first byte: whoever waited for it may have stood still. Where it says no, nothing leaves. */
  readonly mayBegin?: () => boolean
  /** Where a large answer waits for room before it is read on; the deadline stands still meanwhile. */
  readonly room?: Room
}

export interface Room {
  /** So much has come: null where it may be read on at once, otherwise once there is room (large-answers.ts). */
  readonly read: (bytes: number) => Promise<void> | null
  /** Who has waited for so long altogether is hung up on by us, and not late. */
  readonly withinMs: number
}

export interface StreamLimits {
  readonly maxBytes: number
  /** From the call to the head; and to the end of an answer that turns out not to be a stream. */
  readonly headDeadlineMs: number
  /** The longest silence between two chunks, while somebody waits for one. */
  readonly idleMs: number
  readonly deadlineMs: number
}

export interface Answered {
  readonly kind: 'answered'
  readonly status: number
  /** The field as sent, parameters included; empty when absent. */
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export type Sent =
  | Answered
  /** Nothing left this process: the policy said no, the name did not resolve, or no connection could be opened. */
  | { readonly kind: 'unsent'; readonly code: OutboundCode; readonly message: string; readonly cause?: unknown }
  /** The head or more may have reached the agent, and no whole answer came back. */
  | Lost

export interface Lost {
  readonly kind: 'lost'
  readonly code: OutboundCode
  readonly message: string
  /** What came instead, where that is more than the code says: how far the answer was, or that it was we who had no room. */
  readonly instead: LostAnswer | null
  readonly cause?: unknown
}

export interface Streaming {
  readonly kind: 'streaming'
  readonly status: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  /** To be read once. Ends where the agent ended the stream; throws StreamBroken when it did not. */
  readonly chunks: AsyncIterable<Uint8Array>
  /** Hangs up; the reader, if any, sees `aborted`. */
  close(): Promise<void>
}

/** A stream ended otherwise than by the agent's own end of it. */
export class StreamBroken extends Error {
  override readonly name = 'StreamBroken'
  readonly code: OutboundCode
  constructor(failure: OutboundFailure) {
    super(failure.message, { cause: failure.cause })
    this.code = failure.code
  }
}

/** What goes along with one request to prove who is calling. Decided by actors/credentials.ts, for the request's own origin. */
export interface Attachment {
  readonly headers: Readonly<Record<string, string>>
  /** A client certificate's; absent: everybody's. */
  readonly sockets?: Sockets
}

/** For tests: a resolver that lies, an authority nobody trusts, and less time than the world has. */
export interface OutboundWiring extends SocketWiring {
  /** No wait for an answer, a head or a chunk is longer; how long a whole stream may last stays. */
  readonly longestMs?: number
}

const nothing: Attachment = { headers: {} }

export class Outbound {
  readonly #policy: OutboundPolicy
  readonly #longestMs: number
  readonly #wiring: SocketWiring
  readonly #sockets: Sockets
  /** Of client certificates, with the end of their last request once they are given back. */
  readonly #certified = new Map<Sockets, Promise<void>>()

  constructor(policy: OutboundPolicy, wiring: OutboundWiring = {}) {
    const { longestMs = Infinity, ...sockets } = wiring
    this.#policy = policy
    this.#longestMs = longestMs
    this.#wiring = sockets
    this.#sockets = new Sockets(policy, sockets)
  }

  /** Why nothing may be sent there, by the URL alone; null where only its addresses can tell, when it is connected to. */
  refusal(target: string): OutboundFailure | null {
    const admitted = admit(this.#policy, target)
    return admitted instanceof OutboundFailure ? admitted : null
  }

  /** Sockets that show a client certificate, under the same policy. To be given back by `retire`. */
  socketsFor(certificate: ClientCertificate): Sockets {
    const sockets = new Sockets(this.#policy, this.#wiring, certificate)
    this.#certified.set(sockets, Promise.resolve())
    return sockets
  }

  /** Closes them once what is under way on them has ended; `close` ends that at once. */
  retire(sockets: Sockets): void {
    const retiring = sockets.retire().finally(() => this.#certified.delete(sockets))
    this.#certified.set(sockets, retiring)
  }

  /** One request, one bounded answer of any status but a redirect. Never throws for a reason of the network. */
  async exchange(
    request: WireRequest,
    bounds: ExchangeLimits,
    signal?: AbortSignal,
    attachment: Attachment = nothing,
  ): Promise<Sent> {
    const connection = bounds.connection ?? (request.method === 'GET' ? 'kept' : 'fresh')
    const call = new Call(bounds.maxBytes, bounds.mayBegin)
    const leash = new Leash(call, signal)
    try {
      leash.endAfter(Math.min(bounds.deadlineMs, this.#longestMs))
      const { sockets = this.#sockets, headers } = attachment
      const head = await this.#headOf(call, sockets[connection], request, headers)
      const { maxBytes, room } = bounds
      const waits = room && {
        room: (bytes: number) => {
          const wait = room.read(bytes)
          return wait && leash.standsStill(wait, Math.min(room.withinMs, this.#longestMs))
        },
      }
      return answered(head, await collect(head, call, { maxBytes, ...waits }))
    } catch (error) {
      return verdict(call, told(asFailure(error)), bounds.overflow)
    } finally {
      leash.release()
    }
  }

  /** Opens an event stream. An answer that is none (an error as JSON, say) comes back whole, bounded, as `answered`. */
  async openStream(
    request: WireRequest,
    bounds: StreamLimits,
    signal?: AbortSignal,
    attachment: Attachment = nothing,
  ): Promise<Sent | Streaming> {
    const call = new Call(bounds.maxBytes)
    const leash = new Leash(call, signal)
    try {
      leash.endAfter(Math.min(bounds.headDeadlineMs, this.#longestMs))
      const { sockets = this.#sockets, headers } = attachment
      const head = await this.#headOf(call, sockets.streams, request, headers)
      if (isEventStream(head)) {
        leash.endAfter(bounds.deadlineMs)
        return streaming(head, call, leash, { ...bounds, idleMs: Math.min(bounds.idleMs, this.#longestMs) })
      }
      const answer = answered(head, await collect(head, call, bounds))
      leash.release()
      return answer
    } catch (error) {
      leash.release()
      return verdict(call, told(asFailure(error)))
    }
  }

  /** Cuts every connection; what was under way ends as `aborted`. */
  async close(): Promise<void> {
    const reason = new OutboundFailure('aborted')
    const retiring = [...this.#certified.values()]
    await Promise.all([this.#sockets, ...this.#certified.keys()].map((sockets) => sockets.destroy(reason)))
    await Promise.all(retiring)
  }

  async #headOf(call: Call, agent: Agent, request: WireRequest, proof: Attachment['headers']): Promise<Head> {
    const url = admit(this.#policy, request.url)
    if (url instanceof OutboundFailure) throw url
    const head = await call.send(agent, {
      origin: url.origin,
      path: url.pathname + url.search,
      method: request.method,
      headers: { 'user-agent': 'signalbox', ...request.headers, ...proof, 'accept-encoding': 'identity' },
      body: request.body ?? null,
    })
    // 304 included: no request of ours is conditional.
    if (head.status >= 300 && head.status < 400) throw new OutboundFailure('redirect')
    return head
  }
}

/** A shorter wait for room does not make a deadline in seconds untrue. */
const noticedMs = 100

/** Ends a call at a time or by a signal, whichever is first; until released it holds a timer. */
class Leash {
  readonly #call: Call
  readonly #signal: AbortSignal | undefined
  readonly #onAbort: () => void
  #timer: NodeJS.Timeout | undefined
  #last: NodeJS.Immediate | undefined
  #endsAt = Infinity
  #waitedMs = 0

  constructor(call: Call, signal?: AbortSignal) {
    this.#call = call
    this.#signal = signal
    this.#onAbort = () => call.stop(new OutboundFailure('aborted', { cause: signal?.reason }))
    if (signal?.aborted === true) this.#onAbort()
    else signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Replaces the end set before. */
  endAfter(ms: number): void {
    this.#endsAt = performance.now() + ms
    // What has come whole is only decoded, and nobody is waited for any more.
    this.#ring(ms, () => this.#call.over || this.#call.stop(this.#late()))
  }

  /** No answer and half of one are two things to whoever has to find out what was done. */
  #late(): OutboundFailure {
    if (!this.#call.answering) return new OutboundFailure('timeout')
    return new OutboundFailure('timeout', {
      instead: this.#waitedMs > noticedMs ? 'unfinishedBesideWait' : 'unfinished',
    })
  }

  /** While we have no room for what the agent says, its time is not used up: others' large answers are not its silence. */
  async standsStill(wait: Promise<void>, withinMs: number): Promise<void> {
    const askedAt = performance.now()
    const leftMs = this.#endsAt - askedAt
    this.#ring(Math.max(0, withinMs - this.#waitedMs), () =>
      this.#call.stop(new OutboundFailure('aborted', { instead: 'noRoom' })),
    )
    await wait
    this.#clear()
    this.#waitedMs += performance.now() - askedAt
    if (!this.#call.over) this.endAfter(leftMs)
  }

  /** A process that stood still hears first what came meanwhile: timers ring before sockets are read. */
  #ring(ms: number, end: () => void): void {
    this.#clear()
    this.#timer = setTimeout(() => (this.#last = setImmediate(end)), ms)
  }

  #clear(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#last)
  }

  /** Whatever is still under way is cut: a refused answer is not read to its end. */
  release(): void {
    this.#clear()
    this.#signal?.removeEventListener('abort', this.#onAbort)
    if (!this.#call.over) this.#call.stop(new OutboundFailure('aborted'))
  }
}

/** Whoever hangs up by intent has not failed. */
function told(failure: OutboundFailure): OutboundFailure {
  if (failure.code !== 'aborted') requestFailed.publish({ code: failure.code })
  return failure
}

const contentTypeOf = (head: Head): string => head.headers['content-type'] ?? ''

const isEventStream = (head: Head): boolean =>
  head.status < 300 && contentTypeOf(head).split(';', 1)[0]?.trim().toLowerCase() === 'text/event-stream'

const answered = (head: Head, body: Uint8Array): Answered => ({
  kind: 'answered',
  status: head.status,
  contentType: contentTypeOf(head),
  headers: head.headers,
  body,
})

function streaming(head: Head, call: Call, leash: Leash, bounds: StreamLimits): Streaming {
  return {
    kind: 'streaming',
    status: head.status,
    contentType: contentTypeOf(head),
    headers: head.headers,
    chunks: chunksOf(head, call, leash, bounds),
    close() {
      leash.release()
      return Promise.resolve()
    },
  }
}

async function* chunksOf(head: Head, call: Call, leash: Leash, bounds: StreamLimits): AsyncGenerator<Uint8Array, void> {
  const source = decoded(head, bounds.maxBytes)
  try {
    for (;;) {
      // Counted only while we wait: a reader that is slow to come back is not the agent's silence.
      const idle = setTimeout(() => call.stop(new OutboundFailure('timeout')), bounds.idleMs)
      const next = await source.next().finally(() => clearTimeout(idle))
      if (next.done === true) return
      yield next.value
    }
  } catch (error) {
    throw new StreamBroken(asFailure(error))
  } finally {
    leash.release()
  }
}

function verdict(call: Call, failure: OutboundFailure, overflow?: string): Sent {
  const { code } = failure
  const message = code === 'too-large' ? (overflow ?? failure.message) : failure.message
  const { instead, cause } = failure
  return call.started ? { kind: 'lost', code, message, instead, cause } : { kind: 'unsent', code, message, cause }
}

const codes: Readonly<Record<string, OutboundCode>> = {
  UND_ERR_INVALID_ARG: 'invalid-request',
  UND_ERR_HEADERS_OVERFLOW: 'too-large',
  UND_ERR_DESTROYED: 'aborted',
  UND_ERR_CLOSED: 'aborted',
}

/** Reduces what undici, a socket or zlib throws to our closed codes. Whatever carries no code is a defect of ours. */
function asFailure(error: unknown): OutboundFailure {
  if (error instanceof OutboundFailure) return error
  // The parser's `code` is there and undefined, but it keeps the bytes it refused: none when it refused their end.
  if (error instanceof errors.HTTPParserError)
    return new OutboundFailure('data' in error && error.data === '' ? 'reset' : 'malformed', { cause: error })
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (typeof code !== 'string') throw error
  const known = Object.hasOwn(codes, code) ? codes[code] : undefined
  if (known !== undefined) return new OutboundFailure(known, { cause: error })
  if (/^(Z|ERR__ERROR|ERR_BROTLI)_/.test(code)) return new OutboundFailure('malformed', { cause: error })
  if (/^ERR_(SSL|TLS)_/.test(code)) return new OutboundFailure('tls', { cause: error })
  return new OutboundFailure('reset', { cause: error })
}
