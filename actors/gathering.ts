/**
 * Questions that many callers ask at once, as few statements: whoever comes while as many as may be are under way goes with the
 * next. Unlike gathered-reads.ts it counts who asks: callers of one question may get different answers, the last place and none.
 * No timer delays anybody, so an idle system keeps its latency; one turns away who waits too long, for statements that hang or behind
 * them. Does not know what is asked.
 */
import { admissionQueue, admissionWaitMs, DatabaseBusy } from '../persistence/admission.ts'
import type { Database } from '../persistence/database.ts'

export interface Asked<Question> {
  readonly question: Question
  readonly callers: number
}

/** What each caller of one question is told, by the order in which they came. */
export type Answers<Answer> = (caller: number) => Answer

interface Waiting<Question, Answer> {
  readonly key: string
  readonly question: Question
  /** Monotonic milliseconds. */
  readonly since: number
  readonly callers: PromiseWithResolvers<Answer>[]
}

/** Questions in one statement. */
const batchLimit = 500

export interface GatheringLimits {
  /** Statements under way. With one alone, who comes just after it has left waits for it and for their own. */
  readonly atOnce: number
  /** As long as one waits for a connection, then it is told so; whether its statement is under way or not. */
  readonly patienceMs: number
  /** As many as wait for a connection: of those whose statement is not under way yet. */
  readonly waitingLimit: number
}

/** The embedded database has one session: a second statement would only wait for the first. */
export const gatheringLimits = (db: Pick<Database, 'profile'>): GatheringLimits => ({
  atOnce: db.profile === 'pglite' ? 1 : 2,
  patienceMs: admissionWaitMs,
  waitingLimit: admissionQueue,
})

export class Gathering<Question, Answer> {
  readonly #answerAll: (asked: readonly Asked<Question>[]) => Promise<readonly Answers<Answer>[]>
  #waiting = new Map<string, Waiting<Question, Answer>>()
  /** Of those who wait. */
  #callers = 0
  /** Whose statement is under way. */
  readonly #aboard = new Set<Waiting<Question, Answer>>()
  #isLeaving = false
  #underWay = 0
  #patience: NodeJS.Timeout | null = null

  readonly #limits: GatheringLimits

  /** `answerAll` answers in the order of what was asked. */
  constructor(
    answerAll: (asked: readonly Asked<Question>[]) => Promise<readonly Answers<Answer>[]>,
    limits: GatheringLimits,
  ) {
    this.#answerAll = answerAll
    this.#limits = limits
  }

  /**
   * `key`: questions with the same one are the same question. Rejects, with all who wait, when a statement fails; with
   * DatabaseBusy when there is no answer in time (what it was counted for may stay counted), or too many wait.
   */
  ask(key: string, question: Question): Promise<Answer> {
    if (this.#callers >= this.#limits.waitingLimit) return Promise.reject(new DatabaseBusy())
    const caller = Promise.withResolvers<Answer>()
    const waiting = this.#waiting.get(key) ?? { key, question, since: performance.now(), callers: [] }
    waiting.callers.push(caller)
    this.#callers += 1
    this.#waiting.set(key, waiting)
    if (this.#underWay < this.#limits.atOnce) this.#leave()
    this.#patience ??= setTimeout(() => this.#turnAway(), this.#limits.patienceMs)
    return caller.promise
  }

  /** With everybody whom this turn of the event loop brings: left to the first, the others would wait for its statement. */
  #leave(): void {
    if (this.#isLeaving) return
    this.#isLeaving = true
    setImmediate(() => {
      this.#isLeaving = false
      void this.#askWaiting()
    })
  }

  /** Who asks what somebody else has asked for longer is turned away with them. */
  #turnAway(): void {
    const now = performance.now()
    const { patienceMs } = this.#limits
    let nextMs = Infinity
    for (const each of [...this.#aboard, ...this.#waiting.values()]) {
      const leftMs = each.since + patienceMs - now
      // A timer may ring a millisecond early.
      if (leftMs > 1) nextMs = Math.min(nextMs, leftMs)
      else this.#giveUp(each)
    }
    this.#patience = nextMs === Infinity ? null : setTimeout(() => this.#turnAway(), nextMs)
  }

  /** Nobody asks for those any more who have not left yet. */
  #giveUp(each: Waiting<Question, Answer>): void {
    if (!this.#aboard.delete(each)) {
      this.#waiting.delete(each.key)
      this.#callers -= each.callers.length
    }
    for (const { reject } of each.callers) reject(new DatabaseBusy())
  }

  async #askWaiting(): Promise<void> {
    this.#underWay += 1
    while (this.#waiting.size > 0) {
      const all = [...this.#waiting]
      const batch = all.slice(0, batchLimit).map(([, waiting]) => waiting)
      this.#waiting = new Map(all.slice(batchLimit))
      for (const each of batch) {
        this.#callers -= each.callers.length
        this.#aboard.add(each)
      }
      try {
        const answers = await this.#answerAll(
          batch.map(({ question, callers }) => ({ question, callers: callers.length })),
        )
        for (const [i, { callers }] of batch.entries()) {
          const answer = answers[i]
          if (!answer) throw new Error('A question was not answered.')
          callers.forEach(({ resolve }, n) => resolve(answer(n)))
        }
      } catch (error) {
        // Who came meanwhile fails with them: one after the other they would each wait for a database that is away.
        const meanwhile = [...this.#waiting.values()]
        this.#waiting = new Map()
        this.#callers = 0
        for (const { callers } of [...batch, ...meanwhile]) for (const { reject } of callers) reject(error)
      }
      for (const each of batch) this.#aboard.delete(each)
    }
    this.#underWay -= 1
    if (this.#aboard.size > 0 || this.#patience === null) return
    clearTimeout(this.#patience)
    this.#patience = null
  }
}
