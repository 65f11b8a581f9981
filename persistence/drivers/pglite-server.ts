/**
 * The embedded database as a server in this process: a worker thread that speaks the wire protocol, and the socket that
 * node-postgres takes for a connection to it. One session; who may use it when is persistence/drivers/pglite-session.ts.
 */
import { Duplex } from 'node:stream'
import { callbackify } from 'node:util'
import { isMarkedAsUntransferable, Worker } from 'node:worker_threads'

export interface ThreadOptions {
  readonly dataDir?: string
  readonly template?: Uint8Array
}

/** WebAssembly can't be interrupted and PGlite has no statement timeout: one statement beyond this ends the database. */
const EXCHANGE_LIMIT_MS = 10 * 60_000

export type Errand = Request & { readonly id: number }

export interface Answer {
  readonly id: number
  readonly bytes?: Uint8Array<ArrayBuffer>
  readonly error?: unknown
}

/** It ends itself, in what may be the middle of a commit: only a new start, from its log, tells what is kept. */
export interface Farewell {
  readonly lastWords: string
}

type Request =
  | { readonly kind: 'exchange'; readonly chunks: readonly Uint8Array[] }
  | { readonly kind: 'dump' | 'close' }

interface Waiting {
  readonly resolve: (bytes: Uint8Array<ArrayBuffer>) => void
  readonly reject: (error: Error) => void
  readonly limit?: NodeJS.Timeout
}

/** The embedded database's thread died: nothing is answered any more, and only a new process can open the directory. */
export class EmbeddedDatabaseLost extends Error {
  override readonly name = 'EmbeddedDatabaseLost'
  constructor(cause: unknown) {
    super('The embedded database stopped unexpectedly.', { cause })
  }
}

const STARTED = 0
/** Bytes. Node's pool of small buffers and node-postgres' constant messages are far below; what is as large is one message alone. */
const movedFrom = 64 * 1024
/** Compiled code has .js beside it, source has .ts; a worker's file is named in full. */
const threadFile = new URL(
  import.meta.url.endsWith('.ts') ? './pglite-thread.ts' : './pglite-thread.js',
  import.meta.url,
)

export class PgliteServer {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  readonly #lost = new AbortController()
  readonly started: Promise<void>
  readonly #exchangeLimitMs: number
  #lastId = STARTED
  #closing: Promise<void> | undefined
  /** Bytes of statements since the last CHECKPOINT: a lower bound of what was written to the log. */
  unflushedBytes = 0

  constructor(options: ThreadOptions, exchangeLimitMs = EXCHANGE_LIMIT_MS) {
    this.#exchangeLimitMs = exchangeLimitMs
    this.#worker = new Worker(threadFile, { workerData: options })
    this.started = new Promise<void>((resolve, reject) => {
      this.#waiting.set(STARTED, { resolve: () => resolve(), reject })
    })
    this.#worker.on('message', (said: Answer | Farewell) => {
      if ('lastWords' in said) this.#fail(new Error(said.lastWords))
      else this.#answered(said)
    })
    this.#worker.on('error', (error) => this.#fail(error))
    this.#worker.on('exit', (code) => this.#fail(new Error(`The thread exited with code ${code}.`)))
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Large chunks are moved to the thread, and their bytes are gone for the caller; those that must stay (bind-message.ts) are copied. */
  exchange(chunks: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
    this.unflushedBytes += chunks.reduce((sum, { length }) => sum + length, 0)
    const large = chunks.filter(({ length }) => length >= movedFrom)
    const moved = large.flatMap(({ buffer }) =>
      buffer instanceof ArrayBuffer && !isMarkedAsUntransferable(buffer) ? [buffer] : [],
    )
    return this.#ask({ kind: 'exchange', chunks }, [...new Set(moved)])
  }

  /** The data directory as a tar file: what `template` takes. */
  dump(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#ask({ kind: 'dump' })
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    if (!this.#lost.signal.aborted) await this.#ask({ kind: 'close' })
    await this.#worker.terminate()
  }

  #ask(request: Request, moved: readonly ArrayBuffer[] = []): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#lost.signal.aborted) return Promise.reject(this.#lost.signal.reason)
    if (this.#closing && request.kind !== 'close') return Promise.reject(new EmbeddedDatabaseLost('closed'))
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const limit = setTimeout(() => {
        this.#fail(new Error(`A statement ran for more than ${this.#exchangeLimitMs} ms.`))
        // As after a kill: what was acknowledged is on disk, and nothing else can stop the thread.
        void this.#worker.terminate()
      }, this.#exchangeLimitMs)
      this.#waiting.set(id, { resolve, reject, limit })
      this.#worker.postMessage({ id, ...request } satisfies Errand, moved)
    })
  }

  #answered({ id, bytes, error }: Answer): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    clearTimeout(waiting?.limit)
    if (bytes) waiting?.resolve(bytes)
    else waiting?.reject(error instanceof Error ? error : new Error('The embedded database failed.', { cause: error }))
  }

  /** The first cause counts. An exit during close() is what was asked for. */
  #fail(cause: unknown): void {
    if (this.#lost.signal.aborted) return
    const lost = new EmbeddedDatabaseLost(cause)
    const isOrderly = this.#closing !== undefined && this.#waiting.size === 0
    if (!isOrderly) this.#lost.abort(lost)
    for (const waiting of this.#waiting.values()) {
      clearTimeout(waiting.limit)
      waiting.reject(lost)
    }
    this.#waiting.clear()
  }
}

const TERMINATE = 0x58

/** Small messages become one, for each would be a copy and a lock of its own on its way; large ones stay what they are. */
function gathered(chunks: readonly Buffer[]): Buffer[] {
  const whole: Buffer[] = []
  let run: Buffer[] = []
  const leave = (): void => {
    if (run.length > 0) whole.push(Buffer.concat(run))
    run = []
  }
  for (const chunk of chunks) {
    if (chunk.length < movedFrom) run.push(chunk)
    else {
      leave()
      whole.push(chunk)
    }
  }
  leave()
  return whole
}

/** What node-postgres takes as its socket: bytes written are one exchange with the thread, in order. */
export class PgliteSocket extends Duplex {
  readonly #server: PgliteServer
  constructor(server: PgliteServer) {
    super({ allowHalfOpen: false })
    this.#server = server
  }

  connect(): this {
    this.#server.started.then(
      () => this.emit('connect'),
      (error: Error) => this.destroy(error),
    )
    return this
  }

  // The rest of a socket's face that node-postgres touches.
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }

  override _read(): void {
    // Replies are pushed as they come; one statement's reply is bounded by the statement.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    callbackify(() => this.#exchange([chunk]))(done)
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    callbackify(() => this.#exchange(chunks.map(({ chunk }) => chunk)))(done)
  }

  override _final(done: () => void): void {
    this.push(null)
    done()
  }

  async #exchange(chunks: readonly Buffer[]): Promise<void> {
    // A terminated session would end the server, which has only this one.
    if (chunks[0]?.[0] === TERMINATE) return
    const reply = await this.#server.exchange(gathered(chunks))
    if (reply.length > 0) this.push(Buffer.from(reply.buffer, reply.byteOffset, reply.length))
  }
}
