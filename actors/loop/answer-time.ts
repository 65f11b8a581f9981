/**
 * How long answers take, by the last two: one that was slow is weather. Owns the measuring; who is asked, and what slow is, is its
 * callers'.
 */
import type { Instruments } from './runtime.ts'

export class AnswerTime {
  readonly #monotonic: Instruments['monotonic']
  /** What the last two answers took, the newer one last. */
  #tookMs: readonly number[] = []
  /** Since when an answer is waited for. */
  #askedAt: number | null = null

  constructor({ monotonic }: Pick<Instruments, 'monotonic'>) {
    this.#monotonic = monotonic
  }

  /** One question at a time. Of one that fails nothing is kept: that is told as an outage. */
  async measure(ask: () => Promise<void>): Promise<void> {
    this.#askedAt = this.#monotonic()
    try {
      await ask()
      this.#tookMs = [...this.#tookMs.slice(-1), this.#monotonic() - this.#askedAt]
    } finally {
      this.#askedAt = null
    }
  }

  /** What the last two took at the least, where one that is waited for counts once it takes longer than the last. Null before there were two. */
  get ms(): number | null {
    const [, last] = this.#tookMs
    if (last === undefined) return null
    const waitedMs = this.#askedAt === null ? 0 : this.#monotonic() - this.#askedAt
    return Math.round(waitedMs > last ? last : Math.min(...this.#tookMs))
  }
}
