/**
 * Who may use the embedded database's only session. Slonik's pool clients take turns: each holds it for one statement,
 * or from START TRANSACTION to its end, or for one cursor. Waiting has a limit, and so has idling in a transaction.
 */
import type pg from 'pg'
import { IdleTransactionTimeoutError } from 'slonik'

export class EmbeddedDatabaseBusy extends Error {
  override readonly name = 'EmbeddedDatabaseBusy'
  constructor() {
    super('The embedded database is busy: another transaction holds it.')
  }
}

/** Turns in the order they were asked for. */
export class Turns {
  readonly #queue: (() => void)[] = []
  readonly #waitMs: number
  #taken = false

  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  /** Resolves when it is the caller's turn; `pass` ends it. Rejects with EmbeddedDatabaseBusy after the limit. */
  take(): Promise<void> {
    if (!this.#taken) {
      this.#taken = true
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const start = (): void => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#queue.splice(this.#queue.indexOf(start), 1)
        reject(new EmbeddedDatabaseBusy())
      }, this.#waitMs)
      this.#queue.push(start)
    })
  }

  pass(): void {
    const next = this.#queue.shift()
    if (next) next()
    else this.#taken = false
  }
}

interface SessionLimits {
  readonly idleMs: number
  /** Runs between two turns, while nobody holds the session: the place for a CHECKPOINT. Must not reject. */
  readonly betweenTurns: () => Promise<void>
}

/** One of Slonik's clients. The server's own transaction status, not the text of a statement, says when its turn ends. */
export class Session {
  readonly #client: pg.Client
  readonly #turns: Turns
  readonly #limits: SessionLimits
  #holds = false
  #running = 0
  #idle: NodeJS.Timeout | undefined
  #expired = false
  #undoing: Promise<void> | undefined

  constructor(client: pg.Client, turns: Turns, limits: SessionLimits) {
    this.#client = client
    this.#turns = turns
    this.#limits = limits
  }

  async run<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    await this.begin()
    try {
      return await work(this.#client)
    } finally {
      await this.finish()
    }
  }

  /** Starts one statement or one cursor, taking the session if this client doesn't hold it. */
  async begin(): Promise<pg.Client> {
    clearTimeout(this.#idle)
    if (this.#expired) throw new IdleTransactionTimeoutError(new Error('The transaction was idle for too long.'))
    if (!this.#holds) {
      await this.#turns.take()
      this.#holds = true
    }
    this.#running += 1
    return this.#client
  }

  async finish(): Promise<void> {
    this.#running -= 1
    if (this.#running > 0) return
    if (this.#client.getTransactionStatus() === 'I') return this.#leave()
    this.#idle = setTimeout(() => this.#expire(), this.#limits.idleMs)
  }

  /** Slonik destroyed this client: whatever transaction it left open is undone. */
  async end(): Promise<void> {
    clearTimeout(this.#idle)
    if (!this.#holds || this.#running > 0) return
    await this.#undo()
  }

  #expire(): void {
    this.#expired = true
    // A rollback fails only when the whole database is lost, which everybody waiting is told by PgliteServer.
    this.#undo().catch(() => undefined)
  }

  /** Once: a second turn would be passed that is somebody else's, and what they do undone. */
  #undo(): Promise<void> {
    this.#undoing ??= this.#rollback()
    return this.#undoing
  }

  async #rollback(): Promise<void> {
    try {
      await this.#client.query('rollback')
    } finally {
      await this.#leave()
    }
  }

  async #leave(): Promise<void> {
    this.#holds = false
    try {
      await this.#limits.betweenTurns()
    } finally {
      this.#turns.pass()
    }
  }
}
