/**
 * Who waits for a commit, and the commits under way. While as many are under way as may be, items wait, and the next takes all
 * that wait: nothing waits for company. An idle system keeps its latency, a busy one shares its commits. Does not know what
 * a commit does (runtime.ts).
 */
import { seated } from './flight-weight.ts'

/** Items of one commit. */
const seats = 100
/** A commit that takes longer than this keeps nobody waiting: another leaves beside it. */
const lateMs = 20
/** So many do not wait either: they are worth a commit. */
const crowd = 32

/** Commits under way at once. Fewer carry more items each and cost both sides less. */
export interface DepartureLimits {
  readonly usual: number
  /** While one is late (a lock that is held, a database that is slow), or a crowd waits. */
  readonly most: number
}

export class Departures<Item extends { readonly weight: number }> {
  readonly #limits: DepartureLimits
  readonly #fly: (items: readonly Item[]) => Promise<void>
  readonly #queue: Item[] = []
  /** Each with the instant when it left, monotonic milliseconds. */
  readonly #underWay = new Map<Promise<void>, number>()
  #boarding = false
  #patience: NodeJS.Timeout | null = null

  /** `fly` never rejects: it tells each item how it ended. */
  constructor(limits: DepartureLimits, fly: (items: readonly Item[]) => Promise<void>) {
    this.#limits = limits
    this.#fly = fly
  }

  get waiting(): number {
    return this.#queue.length
  }

  /** How long the oldest of those under way has been, milliseconds. */
  get oldestMs(): number {
    const [first] = this.#underWay.values()
    return first === undefined ? 0 : performance.now() - first
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

  /** True when nothing waits and nothing is under way; false when some of it was, and has ended. */
  async isIdle(): Promise<boolean> {
    if (this.#boarding) await new Promise((resolve) => setImmediate(resolve))
    else if (this.#underWay.size > 0) await Promise.all(this.#underWay.keys())
    else return true
    return false
  }

  #board(): void {
    if (this.#patience) clearTimeout(this.#patience)
    this.#patience = null
    if (this.#boarding || this.#queue.length === 0 || this.#underWay.size >= this.#limits.most) return
    const waitMs = this.#waitMs()
    if (waitMs <= 0) this.#leave()
    else this.#patience = setTimeout(() => this.#board(), waitMs)
  }

  /** How long those that wait are still to wait for commits under way. */
  #waitMs(): number {
    if (this.#queue.length >= crowd) return 0
    const late = performance.now() - lateMs
    const young = [...this.#underWay.values()].filter((leftAt) => leftAt > late)
    return young.length < this.#limits.usual ? 0 : Math.ceil(Math.min(...young) - late)
  }

  /**
   * Leaves with everything that this turn of the event loop brings: requests that arrived together, and what follows from
   * one commit. Left to the first of them, a flight would carry one item and the next few would wait for it.
   */
  #leave(): void {
    this.#boarding = true
    setImmediate(() => {
      this.#boarding = false
      if (this.#queue.length > 0) this.#takeOff()
      this.#board()
    })
  }

  #takeOff(): void {
    const flight: Promise<void> = this.#fly(this.#queue.splice(0, seated(this.#queue, seats))).finally(() => {
      this.#underWay.delete(flight)
      this.#board()
    })
    this.#underWay.set(flight, performance.now())
  }
}
