/**
 * Questions that many callers ask at once, as few statements: whoever comes while one is under way goes with the next. Unlike
 * gathered-reads.ts it counts who asks: callers of one question may get different answers, the last place and none. No timer:
 * an idle system keeps its latency. Does not know what is asked.
 */

export interface Asked<Question> {
  readonly question: Question
  readonly callers: number
}

/** What each caller of one question is told, by the order in which they came. */
export type Answers<Answer> = (caller: number) => Answer

interface Waiting<Question, Answer> {
  readonly question: Question
  readonly callers: PromiseWithResolvers<Answer>[]
}

/** Questions in one statement. */
const batchLimit = 500

export class Gathering<Question, Answer> {
  readonly #answerAll: (asked: readonly Asked<Question>[]) => Promise<readonly Answers<Answer>[]>
  #waiting = new Map<string, Waiting<Question, Answer>>()
  #isAsking = false

  /** `answerAll` answers in the order of what was asked. */
  constructor(answerAll: (asked: readonly Asked<Question>[]) => Promise<readonly Answers<Answer>[]>) {
    this.#answerAll = answerAll
  }

  /** `key`: questions with the same one are the same question. Rejects, with all who wait, when the statement fails. */
  ask(key: string, question: Question): Promise<Answer> {
    const caller = Promise.withResolvers<Answer>()
    const waiting = this.#waiting.get(key) ?? { question, callers: [] }
    waiting.callers.push(caller)
    this.#waiting.set(key, waiting)
    if (!this.#isAsking) void this.#askWaiting()
    return caller.promise
  }

  async #askWaiting(): Promise<void> {
    this.#isAsking = true
    while (this.#waiting.size > 0) {
      const all = [...this.#waiting]
      const batch = all.slice(0, batchLimit).map(([, waiting]) => waiting)
      this.#waiting = new Map(all.slice(batchLimit))
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
        for (const { callers } of [...batch, ...meanwhile]) for (const { reject } of callers) reject(error)
      }
    }
    this.#isAsking = false
  }
}
