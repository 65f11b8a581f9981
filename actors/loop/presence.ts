/**
 * Telling others that this process is there, and how it is: workers do not listen, and a web replica answers only for itself.
 * Owns when it is told; not what (../vitals.ts), and nobody decides anything by it.
 */
import type { SupervisorAnswer } from '../../domain/queue.ts'
import type { Database } from '../../persistence/database.ts'
import { forgetProcess, tellOfProcess } from '../../persistence/processes.ts'
import { Bell } from './bell.ts'
import type { Log } from '../log.ts'

const everyMs = 5_000
/** A database that does not answer keeps nobody from ending. */
const lastWordMs = 1_000

export interface PresenceOptions {
  readonly db: Database
  readonly log: Log
  readonly owner: string
  readonly told: () => SupervisorAnswer
}

export class Presence {
  readonly #o: PresenceOptions

  constructor(options: PresenceOptions) {
    this.#o = options
  }

  /** Tells until the signal aborts. */
  async loop(signal: AbortSignal): Promise<void> {
    const { db, owner, told } = this.#o
    for (const bell = new Bell(); !signal.aborted; await bell.wait(everyMs, signal))
      await tellOfProcess(db.pool, owner, told())
  }

  /** Once more, when it begins to drain. */
  tell(): Promise<void> {
    const { db, owner, told } = this.#o
    return this.#briefly(tellOfProcess(db.pool, owner, told()))
  }

  /** Others need not miss it. */
  leave(): Promise<void> {
    const { db, owner } = this.#o
    return this.#briefly(forgetProcess(db.pool, owner))
  }

  /** Who cannot say it is missed for a while, which harms nobody. */
  async #briefly(saying: Promise<void>): Promise<void> {
    const { log } = this.#o
    const said = saying.catch((err: unknown) => log.warn({ err }, 'others could not be told that this process ends'))
    const tooLong = new AbortController()
    await Promise.race([said, new Bell().wait(lastWordMs, tooLong.signal)])
    tooLong.abort()
  }
}
