/**
 * Telling others that this process is there, and how it is: workers do not listen, and a web replica answers only for itself. And
 * by the way, how long the database takes to answer: telling costs what a small write costs, a connection's wait included.
 * Owns when it is told; not what (../vitals.ts), and nobody decides anything by it.
 */
import type { SupervisorAnswer } from '../../domain/queue.ts'
import type { Database } from '../../persistence/database.ts'
import { awaitAnswer, forgetProcess, tellOfProcess } from '../../persistence/processes.ts'
import { AnswerTime } from './answer-time.ts'
import { Bell } from './bell.ts'
import type { Log } from '../log.ts'
import type { Instruments } from './runtime.ts'

const everyMs = 5_000
/** A database that does not answer keeps nobody from ending. */
const lastWordMs = 1_000

export interface PresenceOptions {
  readonly db: Database
  readonly log: Log
  readonly owner: string
  readonly told: () => SupervisorAnswer
  readonly instruments: Pick<Instruments, 'monotonic'>
}

export class Presence {
  readonly #o: PresenceOptions
  readonly #answers: AnswerTime

  constructor(options: PresenceOptions) {
    this.#o = options
    this.#answers = new AnswerTime(options.instruments)
  }

  /** Tells until the signal aborts. */
  async loop(signal: AbortSignal): Promise<void> {
    for (const bell = new Bell(); !signal.aborted; await bell.wait(everyMs, signal))
      await this.#answers.measure(() => this.#tell())
  }

  /** Milliseconds; null before it is known. */
  get answerMs(): number | null {
    return this.#answers.ms
  }

  /** The one process of an embedded database has nobody to tell. */
  async #tell(): Promise<void> {
    const { db, owner, told } = this.#o
    if (db.profile === 'pglite') await awaitAnswer(db.pool)
    else await tellOfProcess(db.pool, owner, told())
  }

  /** Once more, when it begins to drain. */
  tell(): Promise<void> {
    return this.#briefly(this.#tell())
  }

  /** Others need not miss it. */
  async leave(): Promise<void> {
    const { db, owner } = this.#o
    if (db.profile !== 'pglite') await this.#briefly(forgetProcess(db.pool, owner))
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
