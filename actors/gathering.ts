/**
 * Questions that many callers ask at once, as few statements: whoever comes while as many as may be are under way goes with the
 * next. Unlike gathered-reads.ts it counts who asks: callers of one question may get different answers, the last place and none.
 * No timer delays anybody, so an idle system keeps its latency; one turns away who waits too long behind statements that hang. Does
 * not know what is asked.
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
  /** As long, and as many, as wait for a connection: then they are told so. */
  readonly patienceMs: number
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
  #callers = 0
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
   * DatabaseBusy when those before do not end, or too many wait for them.
   */
  ask(key: string, question: Question): Promise<Answer> {
    if (this.#callers >= this.#limits.waitingLimit) return Promise.reject(new DatabaseBusy())
    const caller = Promise.withResolvers<Answer>()
    const waiting = this.#waiting.get(key) ?? { question, since: performance.now(), callers: [] }
    waiting.callers.push(caller)
    this.#callers += 1
    this.#waiting.set(key, waiting)
    if (this.#underWay < this.#limits.atOnce) this.#leave()
    else this.#patience ??= setTimeout(() => this.#turnAway(), this.#limits.patienceMs)
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
    this.#patience = null
    const { patienceMs } = this.#limits
    const now = performance.now()
    let nextMs = 0
    for (const [key, { since, callers }] of this.#waiting) {
      // In the order in which they came; a timer may ring a millisecond early.
      if (now - since < patienceMs - 1) {
        nextMs = patienceMs - (now - since)
        break
      }
      this.#waiting.delete(key)
      this.#callers -= callers.length
      for (const { reject } of callers) reject(new DatabaseBusy())
    }
    if (this.#waiting.size > 0) this.#patience = setTimeout(() => this.#turnAway(), nextMs)
  }

  async #askWaiting(): Promise<void> {
    this.#underWay += 1
    while (this.#waiting.size > 0) {
      const all = [...this.#waiting]
      const batch = all.slice(0, batchLimit).map(([, waiting]) => waiting)
      this.#waiting = new Map(all.slice(batchLimit))
      for (const { callers } of batch) this.#callers -= callers.length
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
    }
    this.#underWay -= 1
    if (this.#patience) clearTimeout(this.#patience)
    this.#patience = null
  }
}
