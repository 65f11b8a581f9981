/**
 * The server's clock, as far as its answers tell it: leases, timers and ages are by that clock, and a browser's may be minutes
 * off, which would call a living worker silent. Owns the difference; asks nobody.
 */
interface Timed {
  readonly at: string
}

export class ServerClock {
  #answer: Timed | undefined
  #aheadMs = -Infinity

  /** Now, by the clock that `answer` was made with; the browser's own before there is one. Milliseconds. */
  nowMs(answer: Timed | undefined): number {
    if (answer && answer !== this.#answer) {
      this.#answer = answer
      // Its way here, and the time it lay in a cache, only make the server seem to be behind: the largest is the nearest.
      this.#aheadMs = Math.max(this.#aheadMs, Date.parse(answer.at) - Date.now())
    }
    return Date.now() + (this.#answer ? this.#aheadMs : 0)
  }
}
