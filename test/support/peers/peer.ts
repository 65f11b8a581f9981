/**
 * What every test agent has: an address, a log of what reached it, and a script that says what it does next. Owns the
 * receipt log (the witness of "delivered at most once") and the life of the listening socket. Does not own any A2A
 * shape: the agents beside this file (sdk.ts, raw.ts) do.
 */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sized } from '../pass.ts'

/** One send or cancel whose body was read whole, logged before a byte of the answer left. */
export interface Receipt {
  /** The message's id; for a cancel, which carries no message, the task's id. */
  readonly messageId: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The A2A 1.0 name of the operation, whatever binding and version carried it. */
  readonly method: string
}

/** The newest request of one operation, for assertions on headers and bodies. */
export interface SeenRequest {
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

export interface PeerScript {
  /**
   * From now on sends and cancels are read and recorded, and then not answered: time stands still at "received, not
   * replied".
   */
  holdReplies(): void
  /** Answers every held request, and holds no more. */
  release(): void
  /** Ends the turns that were asked to "hold" by completing them. A turn asked later is held again. */
  finish(text?: string): void
  /** Resolves when n turns in all have reached their "hold"; rejects after a bound. */
  held(n: number): Promise<void>
}

export interface Peer {
  readonly cardUrl: string
  readonly origin: string
  /** Sends and cancels in order of arrival. */
  readonly receipts: readonly Receipt[]
  receiptsOf(messageId: string): number
  /** Resolves when n sends and cancels in all have arrived; rejects after a bound, naming what did arrive. */
  received(n: number): Promise<void>
  /** How often each operation was asked for, reads included; `GetAgentCard` counts fetches of the card. */
  callsOf(method: string): number
  /** The newest request of an operation. */
  seen(method: string): SeenRequest | undefined
  readonly script: PeerScript
  /** Ends every socket, resolves when the port is free. */
  close(): Promise<void>
}

/**
 * A test that waits longer than this for a signal has failed; the bound keeps it from hanging until the runner kills
 * it. In the long pass a hundred tasks take turns at eight places.
 */
const patienceMs = sized(20_000, 60_000)

export interface ReceiptLog {
  readonly receipts: readonly Receipt[]
  receiptsOf(messageId: string): number
  received(n: number): Promise<void>
  callsOf(method: string): number
  seen(method: string): SeenRequest | undefined
  note(method: string, request: SeenRequest): void
  record(receipt: Receipt): void
  close(): void
}

/**
 * Keeps receipts in memory and, when a file is named, appends each as one JSON line and fsyncs it before returning: a
 * log that outlives the killed process is what the chaos tests believe.
 */
export function openReceiptLog(receiptFile?: string): ReceiptLog {
  const file = receiptFile === undefined ? undefined : openSync(receiptFile, 'a')
  const receipts: Receipt[] = []
  const countById = new Map<string, number>()
  const calls = new Map<string, number>()
  const newest = new Map<string, SeenRequest>()
  const arrivals = new Countdown('receipts', () => receipts.map((r) => `${r.method} ${r.messageId}`).join(', '))
  return {
    receipts,
    receiptsOf: (messageId) => countById.get(messageId) ?? 0,
    received: (n) => arrivals.reached(n),
    callsOf: (method) => calls.get(method) ?? 0,
    seen: (method) => newest.get(method),
    note(method, request) {
      calls.set(method, (calls.get(method) ?? 0) + 1)
      newest.set(method, request)
    },
    record(receipt) {
      if (file !== undefined) {
        writeSync(file, `${JSON.stringify(receipt)}\n`)
        fsyncSync(file)
      }
      receipts.push(receipt)
      countById.set(receipt.messageId, (countById.get(receipt.messageId) ?? 0) + 1)
      arrivals.count()
    },
    close() {
      if (file !== undefined) closeSync(file)
    },
  }
}

/** Lets a test wait until something has happened n times in all, without polling. */
export class Countdown {
  #reached = 0
  #waiting: { n: number; resolve: () => void }[] = []
  readonly #what: string
  readonly #describe: () => string

  constructor(what: string, describe: () => string = () => '') {
    this.#what = what
    this.#describe = describe
  }

  count(): void {
    this.#reached += 1
    const ready = this.#waiting.filter((w) => w.n <= this.#reached)
    this.#waiting = this.#waiting.filter((w) => w.n > this.#reached)
    for (const { resolve } of ready) resolve()
  }

  reached(n: number): Promise<void> {
    if (this.#reached >= n) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((w) => w !== waiter)
        reject(new Error(`waited ${patienceMs} ms for ${n} ${this.#what}, saw ${this.#reached}: ${this.#describe()}`))
      }, patienceMs)
      const waiter = {
        n,
        resolve: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      this.#waiting.push(waiter)
    })
  }
}

export interface Stagehand extends PeerScript {
  /** Waits while replies are held. */
  gate(): Promise<void>
  /**
   * Waits for `finish` or the end of the signal; says with which text to complete, or null when the signal ended it.
   */
  holdTurn(signal: AbortSignal): Promise<string | null>
}

/** The moving parts behind a script. */
export function openScript(): Stagehand {
  let gate: { opened: Promise<void>; open: () => void } | undefined
  const turns = new Set<(text: string | null) => void>()
  const held = new Countdown('held turns')
  return {
    holdReplies() {
      if (gate) return
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = { opened: promise, open: resolve }
    },
    release() {
      gate?.open()
      gate = undefined
    },
    finish(text = 'Released.') {
      for (const end of turns) end(text)
    },
    held: (n) => held.reached(n),
    gate: () => gate?.opened ?? Promise.resolve(),
    holdTurn(signal) {
      const { promise, resolve } = Promise.withResolvers<string | null>()
      const end = (text: string | null) => {
        turns.delete(end)
        resolve(text)
      }
      turns.add(end)
      if (signal.aborted) end(null)
      else signal.addEventListener('abort', () => end(null), { once: true })
      held.count()
      return promise
    },
  }
}

export interface Listening {
  readonly server: Server
  readonly origin: string
  close(): Promise<void>
}

/**
 * Listens on a loopback port of the system's choice. Closing ends every socket, so that no test waits for a keep-alive.
 */
export async function listenOnLoopback(listener: RequestListener): Promise<Listening> {
  const server = createServer(listener)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    server,
    origin: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()))
        server.closeAllConnections()
      }),
  }
}
