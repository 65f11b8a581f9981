/** One thing to come that is asked for again and again, by who can wait and who cannot: it comes at the soonest of all, and once. */
export class Sooner {
  #timer: ReturnType<typeof setTimeout> | undefined
  #dueAtMs = 0

  within(waitMs: number, ring: () => void): void {
    const dueAtMs = performance.now() + waitMs
    if (this.#timer !== undefined && this.#dueAtMs <= dueAtMs) return
    clearTimeout(this.#timer)
    this.#dueAtMs = dueAtMs
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      ring()
    }, waitMs)
  }

  /** For good, as its owner is closed. */
  clear(): void {
    clearTimeout(this.#timer)
  }
}
