/** How long a row that cannot be moved is left alone: 5 s, doubled with each time, 10 min at most. Owns no row. */
const fromMs = 5_000
const toMs = 600_000
const remembered = 10_000

export class Postponements {
  readonly #pauses = new Map<string, number>()

  /** Milliseconds. */
  next(key: string): number {
    const pauseMs = Math.min(toMs, (this.#pauses.get(key) ?? fromMs / 2) * 2)
    if (this.#pauses.size < remembered) this.#pauses.set(key, pauseMs)
    return pauseMs
  }

  forget(key: string): void {
    this.#pauses.delete(key)
  }
}
