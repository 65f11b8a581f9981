/**
 * One scope's turn at a reader: how long it lasts, how long its agent is waited for, and what it took. Does not ask anything
 * (reconciliation.ts) and does not share the readers (loop/room.ts).
 */
import type { Fact } from '../domain/fact.ts'
import type { Patience } from './evidence.ts'
import type { Scope } from './task-line.ts'

export interface ReconcilingPatience extends Patience {
  /** For one question, by a reader that is for those that answer quickly. */
  readonly quickMs: number
  /** For the turn of one scope: then it leaves its place and goes on later. */
  readonly turnMs: number
}

/**
 * An agent that hangs, or hangs where one task is asked for, costs one of two readers ten seconds, and less and less often; the other,
 * which is for those that answer, it costs three. Who takes longer and is right is waited for by the first from then on.
 */
export const usualPatience: ReconcilingPatience = { quickMs: 3_000, readMs: 10_000, searchMs: 10_000, turnMs: 15_000 }

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
  /** For one question. */
  readonly readMs: number
  readonly #o: TurnOptions
  readonly #endMs: number
  #slowestMs = 0

  constructor(options: TurnOptions) {
    const { scope, id, isQuick, patience, monotonic } = options
    this.#o = options
    this.scope = scope
    this.id = id
    this.isQuick = isQuick
    this.readMs = isQuick ? patience.quickMs : patience.readMs
    this.#endMs = monotonic() + patience.turnMs
  }

  get isOver(): boolean {
    return this.#o.monotonic() >= this.#endMs
  }

  get isSlow(): boolean {
    // A timer may ring a little early, and what was not waited for any longer must not pass for quick.
    return this.#slowestMs >= this.#o.patience.quickMs * 0.9
  }

  /** An agent that said nothing was not waited for as long as it may take: nothing is said of it yet, and it is asked again. */
  get isCutShort(): boolean {
    return this.isQuick && this.isSlow
  }

  /** Of one question. To be called when an answer is there: what it takes to read and to keep it is not the agent's doing. */
  timing(): () => void {
    const begunMs = this.#o.monotonic()
    let tookMs: number | null = null
    return () => {
      tookMs ??= this.#o.monotonic() - begunMs
      this.#slowestMs = Math.max(this.#slowestMs, tookMs)
    }
  }

  /** Says with what was found whether the agent took long. */
  paced<T extends object>(outcome: T): T & { readonly isSlow?: true } {
    return this.isSlow ? { ...outcome, isSlow: true } : outcome
  }
}
