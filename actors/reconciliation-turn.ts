/**
 * One scope's turn at a reader: how long it lasts, how long its agent is waited for, and what it took. Does not ask anything
 * (reconciliation.ts) and does not share the readers (loop/room.ts).
 */
import type { Fact } from '../domain/fact.ts'
import type { LookOptions, Scope } from './task-line.ts'

export interface ReconcilingPatience {
  /** For one question, by a reader that is for those that answer quickly; and by the other. */
  readonly quickMs: number
  readonly readMs: number
  /** For all questions of one search. */
  readonly searchMs: number
  /** For the turn of one scope: then it leaves its place and goes on later. */
  readonly turnMs: number
}

/**
 * An agent that hangs, or hangs where one task is asked for, costs one of two readers ten seconds, and less and less often; the other,
 * which is for those that answer, it costs three. Who takes longer and is right is waited for by the first from then on.
 */
export const usualPatience: ReconcilingPatience = { quickMs: 3_000, readMs: 10_000, searchMs: 10_000, turnMs: 15_000 }

export const noAnswer = 'The agent did not answer in time.'

export interface TurnOptions {
  readonly scope: Scope
  /** The scope's own. */
  readonly id: string
  /** At the reader that does not wait for long. */
  readonly isQuick: boolean
  readonly patience: ReconcilingPatience
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
}

/** From when its agent is known how to be reached. */
export class Turn {
  readonly scope: Scope
  readonly id: string
  readonly isQuick: boolean
  readonly told: Fact[] = []
  readonly #o: TurnOptions
  readonly #endMs: number
  #answers = 0
  #isSlow = false
  /** The agent said nothing to the last question, for as long as this reader waits. */
  #isLastLate = false

  constructor(options: TurnOptions) {
    const { scope, id, isQuick, patience, monotonic } = options
    this.#o = options
    this.scope = scope
    this.id = id
    this.isQuick = isQuick
    this.#endMs = monotonic() + patience.turnMs
  }

  get isOver(): boolean {
    return this.#o.monotonic() >= this.#endMs
  }

  /** One question. A timer may ring a little early: what was not waited for any longer must not pass for quick. */
  question(): Required<Pick<LookOptions, 'deadlineMs' | 'heard'>> {
    const { patience, monotonic } = this.#o
    const begunMs = monotonic()
    const heard = (isAnswer: boolean): void => {
      const isSlow = monotonic() - begunMs >= patience.quickMs * 0.9
      this.#isSlow ||= isSlow
      this.#isLastLate = isSlow && !isAnswer
      if (isAnswer) this.#answers += 1
    }
    return { deadlineMs: this.isQuick ? patience.quickMs : patience.readMs, heard }
  }

  /** Whether the last silence is only that this reader does not wait for long: nothing is said of the agent yet, and it is asked again. */
  get isCutShort(): boolean {
    return this.isQuick && this.#isLastLate
  }

  get isAnswered(): boolean {
    return this.#answers > 0
  }

  /** Says with what was found whether the agent took long; nothing where it answered nothing, for that says nothing of its pace. */
  paced<T extends object>(outcome: T): T & { readonly isSlow?: boolean } {
    return this.#isSlow || this.#answers > 0 ? { ...outcome, isSlow: this.#isSlow } : outcome
  }
}
