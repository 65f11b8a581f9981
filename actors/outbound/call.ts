/**
 * One HTTP exchange on undici's dispatch interface. Owns the question this product stands on (has the request been
 * handed to a connection?), the limit on bytes received, and stopping at any moment. Does not own deadlines
 * (../outbound.ts) or decoding (body.ts).
 *
 * undici's `request()` is one floor too high: it does not say when a request starts, and an abort of a request that
 * still waits for a connection is only heard when the connection is there.
 */
import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { OutboundFailure } from './policy.ts'

export interface Head {
  readonly status: number
  /** Names in lower case; repeated fields joined by a comma [RFC 9110 §5.3]. */
  readonly headers: Readonly<Record<string, string>>
  /** As received: neither decoded nor whole. Ends with an OutboundFailure when stopped. */
  readonly body: Readable
}

/** Received and not yet read, in bytes, before the agent is told to wait. */
const bufferedBytes = 64 * 1024

/** Informational heads before the final one. Honest servers send one; the rest is a flood that no size limit would see. */
const hintLimit = 16

export class Call implements Dispatcher.DispatchHandler {
  readonly #head = Promise.withResolvers<Head>()
  readonly #stop = Promise.withResolvers<never>()
  readonly #maxBytes: number
  readonly #mayBegin: () => boolean
  #received = 0
  #hints = 0
  #started = false
  #complete = false
  #stopped: Error | null = null
  #controller: Dispatcher.DispatchController | null = null
  #body: Readable | null = null

  /** `maxBytes` bounds the body as it travels; a decoded body has the same limit again. `mayBegin`: asked before the first byte. */
  constructor(maxBytes: number, mayBegin = (): boolean => true) {
    this.#maxBytes = maxBytes
    this.#mayBegin = mayBegin
    // Who stops a call that was never sent does not wait for its head.
    this.#head.promise.catch(() => undefined)
    this.#stop.promise.catch(() => undefined)
  }

  /** Rejects when the call is stopped, for who waits for something else than its bytes. */
  get stopped(): Promise<never> {
    return this.#stop.promise
  }

  /** True from the moment undici may write the first byte. While false nothing left; once stopped it stays false. */
  get started(): boolean {
    return this.#started
  }

  /** The last byte came, or the call was stopped: there is nothing left to stop. */
  get over(): boolean {
    return this.#complete || this.#stopped !== null
  }

  /** The head of an answer came, whatever became of the rest. */
  get answering(): boolean {
    return this.#body !== null
  }

  /** Sends, unless stopped before, and waits for the final head; rejects when there will be none. To be called once. */
  send(dispatcher: Dispatcher, options: Dispatcher.DispatchOptions): Promise<Head> {
    if (this.#stopped === null) dispatcher.dispatch(options, this)
    return this.#head.promise
  }

  /** Ends the exchange now, with the reason that its reader will see. Harmless when it has ended. */
  stop(reason: Error): void {
    if (this.#stopped !== null) return
    this.#stopped = reason
    this.#head.reject(reason)
    this.#stop.reject(reason)
    this.#body?.destroy(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Stopped while it waited for a connection: undici drops a request whose handler throws here, before any write.
    if (this.#stopped !== null) throw this.#stopped
    // undici puts a request back into its queue on some informational errors. Ours are written once, whatever it thinks.
    if (this.#started) throw new OutboundFailure('reset')
    if (!this.#mayBegin()) throw new OutboundFailure('aborted')
    this.#started = true
    this.#controller = controller
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, fields: RawFields): void {
    if (status < 200) {
      this.#hints += 1
      if (this.#hints > hintLimit) this.stop(new OutboundFailure('malformed', { instead: 'announced' }))
      return
    }
    const headers = flatten(fields)
    const body = new Readable({ highWaterMark: bufferedBytes, read: () => controller.resume() })
    // The reader learns of a failure when it reads; without a listener Node would end the process before that.
    body.on('error', () => undefined)
    this.#body = body
    this.#head.resolve({ status, headers, body })
    if (Number(headers['content-length'] ?? 0) > this.#maxBytes) this.stop(new OutboundFailure('too-large'))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#received += chunk.length
    if (this.#received > this.#maxBytes) {
      this.stop(new OutboundFailure('too-large'))
      return
    }
    if (this.#body?.push(chunk) === false) controller.pause()
  }

  onResponseEnd(): void {
    this.#complete = true
    this.#body?.push(null)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.stop(error)
  }
}

type RawFields = Record<string, string | string[] | undefined>

function flatten(fields: RawFields): Record<string, string> {
  const flat = Object.entries(fields).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])
  return Object.fromEntries(flat.filter(([, value]) => value !== undefined))
}
