/**
 * Who waits for a commit, and the commits under way. There is no timer: while as many are under way as may be, items wait, and
 * the next takes all that wait. An idle system keeps its latency, a busy one shares its commits. Does not know what a
 * commit does (runtime.ts).
 */
import { seated } from './flight-weight.ts'

/** Items of one commit. */
const seats = 100

export class Departures<Item extends { readonly weight: number }> {
  readonly #limit: number
  readonly #fly: (items: readonly Item[]) => Promise<void>
  readonly #queue: Item[] = []
  readonly #underWay = new Set<Promise<void>>()
  #boarding = false

  /** At most `limit` are under way. `fly` never rejects: it tells each item how it ended. */
  constructor(limit: number, fly: (items: readonly Item[]) => Promise<void>) {
    this.#limit = limit
    this.#fly = fly
  }

  get waiting(): number {
    return this.#queue.length
  }

  add(...items: readonly Item[]): void {
    this.#queue.push(...items)
    this.#board()
  }

  /** False for who has left. */
  takeBack(item: Item): boolean {
    const at = this.#queue.indexOf(item)
    if (at >= 0) this.#queue.splice(at, 1)
    return at >= 0
  }

  /** When nothing waits and nothing is under way, true; otherwise false, when some of it has ended. */
  async isIdle(): Promise<boolean> {
    if (this.#boarding) await new Promise((resolve) => setImmediate(resolve))
    else if (this.#underWay.size > 0) await Promise.all(this.#underWay)
    else return true
    return false
  }

  /**
   * Leaves with everything that this turn of the event loop brings: requests that arrived together, and what follows from
   * one commit. Left to the first of them, a flight would carry one item and the next few would wait for it.
   */
  #board(): void {
    if (this.#boarding || this.#underWay.size >= this.#limit || this.#queue.length === 0) return
    this.#boarding = true
    setImmediate(() => {
      this.#boarding = false
      this.#takeOff()
    })
  }

  #takeOff(): void {
    while (this.#underWay.size < this.#limit && this.#queue.length > 0) {
      const flight: Promise<void> = this.#fly(this.#queue.splice(0, seated(this.#queue, seats))).finally(() => {
        this.#underWay.delete(flight)
        this.#board()
      })
      this.#underWay.add(flight)
    }
  }
}
