/**
 * Turns for what is large: one text at a time in the process is parsed and committed. A 24 MiB event is some 150 MB on its way
 * from bytes to rows, and streams, answers and pushes may bring a dozen of them at once; what waits is its bytes only. Small
 * ones pass by. Does not parse (pool.ts) and does not bound a commit (loop/flight-weight.ts).
 */

/** From here on a text has to wait for its turn. */
const heavyBytes = 1024 * 1024

export class HeavyTurns {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  /** How many are under way or wait for their turn. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Runs what parses a text of so many bytes and keeps what it says. Nothing in it may ask for a turn: it would wait for itself.
   * In the order in which they were asked for; one that fails is its caller's alone. `isHeavy`: it has the turn.
   */
  async take<T>(bytes: number, work: (isHeavy: boolean) => Promise<T>): Promise<T> {
    if (bytes < heavyBytes) return work(false)
    this.#waiting += 1
    const done = this.#last.then(() => work(true))
    // Who asked learns of a failure; the next only waits for its turn.
    this.#last = done.catch(() => undefined)
    try {
      return await done
    } finally {
      this.#waiting -= 1
    }
  }
}
