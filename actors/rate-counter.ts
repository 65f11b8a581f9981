/**
 * One bucket of a rate limit, counted for many callers at once: who comes while a count is under way goes with the next, so
 * that a flood costs one statement at a time, and once the window is full none until it is over. Does not own the windows
 * (persistence/rate-limits.ts) or what is answered beyond them.
 */
import type { Database } from '../persistence/database.ts'
import { takePlaces } from '../persistence/rate-limits.ts'

interface Waiting {
  readonly resolve: (granted: boolean) => void
  readonly reject: (reason: unknown) => void
}

export class RateCounter {
  readonly #db: Database
  readonly #bucket: string
  readonly #limit: number
  readonly #monotonic: () => number
  #waiting: Waiting[] = []
  #isCounting = false
  /** Monotonic milliseconds until which there is no place for anybody. */
  #fullUntil = 0

  constructor(db: Database, options: { bucket: string; limit: number; monotonic: () => number }) {
    this.#db = db
    this.#bucket = options.bucket
    this.#limit = options.limit
    this.#monotonic = options.monotonic
  }

  /** Whether there was a place. Rejects when the database is away. */
  take(): Promise<boolean> {
    if (this.#monotonic() < this.#fullUntil) return Promise.resolve(false)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      if (!this.#isCounting) void this.#count()
    })
  }

  async #count(): Promise<void> {
    this.#isCounting = true
    while (this.#waiting.length > 0) {
      const callers = this.#waiting
      this.#waiting = []
      try {
        const asked = this.#monotonic()
        const { granted, leftMs } = await takePlaces(this.#db.pool, this.#bucket, callers.length, this.#limit)
        if (granted < callers.length) this.#fullUntil = asked + leftMs
        callers.forEach(({ resolve }, i) => resolve(i < granted))
      } catch (error) {
        for (const { reject } of callers) reject(error)
      }
    }
    this.#isCounting = false
  }
}
