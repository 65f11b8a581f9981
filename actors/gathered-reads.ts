/**
 * Reads by id that many pieces of work ask for at once, as few statements: what is asked while a read is under way goes with
 * the next. No timer, as in loop/runtime.ts: an idle system keeps its latency. Keeps nothing: every answer was read after it
 * was asked for.
 */

/** Ids in one statement. */
const batchLimit = 100

export class GatheredReads<Value> {
  readonly #readAll: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>
  #waiting = new Map<string, PromiseWithResolvers<Value | null>>()
  #reading = false

  constructor(readAll: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>) {
    this.#readAll = readAll
  }

  /** Null where there is no such row. Rejects, with everybody else's, when the read they share fails. */
  read(id: string): Promise<Value | null> {
    const asked = this.#waiting.get(id) ?? Promise.withResolvers<Value | null>()
    this.#waiting.set(id, asked)
    if (!this.#reading) void this.#readWaiting()
    return asked.promise
  }

  async #readWaiting(): Promise<void> {
    this.#reading = true
    // A commit launches all its work in one go: the first must not leave without the others.
    await Promise.resolve()
    while (this.#waiting.size > 0) {
      const all = [...this.#waiting]
      const batch = all.slice(0, batchLimit)
      this.#waiting = new Map(all.slice(batchLimit))
      try {
        const found = await this.#readAll(batch.map(([id]) => id))
        for (const [id, { resolve }] of batch) resolve(found.get(id) ?? null)
      } catch (error) {
        for (const [, { reject }] of batch) reject(error)
      }
    }
    this.#reading = false
  }
}
