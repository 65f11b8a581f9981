/**
 * Turns for what is large: one text at a time in the process is parsed and committed. A 24 MiB event is some 150 MB on its way
 * from bytes to rows, and streams, answers and pushes may bring a dozen of them at once; what waits is its bytes only. Small
 * ones pass by. Agents take turns (domain/fair-line.ts), and the answers to deliveries go before what else they say, which is asked for or
 * told again where it was not kept: a delivery has one answer, and a drain waits for it. Does not parse (pool.ts) and does not bound a
 * commit (loop/flight-weight.ts).
 */
import { FairLine } from '../../domain/fair-line.ts'

/** From here on a text has to wait for its turn. */
const heavyBytes = 1024 * 1024
/** So many answers go before one of the others that wait: these may hold a stream's place, or an agent's call, meanwhile. */
const answersInARow = 3

export interface HeavyText {
  readonly bytes: number
  /** Whose it is. */
  readonly agentId: string
  /** To a delivery: it cannot be asked for again. */
  readonly isAnswer?: true
  /** Whoever is aborted while it waits leaves the line. What has begun goes on. */
  readonly signal?: AbortSignal
}

interface Waiting {
  readonly holder: string
  readonly begin: () => void
}

export class HeavyTurns {
  readonly #answers = new FairLine<Waiting>()
  readonly #others = new FairLine<Waiting>()
  #answersBefore = 0
  #isTaken = false

  /** How many are under way or wait for their turn. */
  get waiting(): number {
    return this.#answers.size + this.#others.size + (this.#isTaken ? 1 : 0)
  }

  /**
   * Runs what parses a text and keeps what it says. Nothing in it may ask for a turn: it would wait for itself. One that fails is its
   * caller's alone. Rejects with the signal's reason where that aborts before it has begun. `isHeavy`: it has the turn.
   */
  async take<T>(text: HeavyText, work: (isHeavy: boolean) => Promise<T>): Promise<T> {
    if (text.bytes < heavyBytes) return work(false)
    await this.#turn(text)
    try {
      return await work(true)
    } finally {
      this.#isTaken = false
      this.#goOn()
    }
  }

  #turn({ agentId, isAnswer, signal }: HeavyText): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const line = isAnswer ? this.#answers : this.#others
      const leave = (): void => {
        line.leave(waiting)
        reject(signal?.reason)
      }
      const begin = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const waiting = { holder: agentId, begin }
      signal?.addEventListener('abort', leave, { once: true })
      line.enter(waiting)
      this.#goOn()
    })
  }

  #goOn(): void {
    if (this.#isTaken) return
    const next = this.#next()
    if (!next) return
    this.#isTaken = true
    next.begin()
  }

  #next(): Waiting | undefined {
    const isTheirTurn = this.#answersBefore >= answersInARow && this.#others.size > 0
    if (this.#answers.size > 0 && !isTheirTurn) {
      this.#answersBefore += 1
      return this.#answers.next()
    }
    this.#answersBefore = 0
    return this.#others.next()
  }
}
