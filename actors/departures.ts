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
  readonly #underWay = new Set<Promise<void>>()
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
    else if (this.#underWay.size > 0) await Promise.all(this.#underWay)
    else return true
    return false
  }

  #board(): void {
    if (this.#boarding || this.#queue.length === 0) return
    const { usual, most } = this.#limits
    if (this.#underWay.size < usual) return this.#leave(usual)
    if (this.#underWay.size >= most) return
    if (this.#queue.length >= crowd) this.#leave(most)
    else this.#patience ??= setTimeout(() => this.#leave(most), lateMs)
  }

  /**
   * Leaves with everything that this turn of the event loop brings: requests that arrived together, and what follows from
   * one commit. Left to the first of them, a flight would carry one item and the next few would wait for it.
   */
  #leave(limit: number): void {
    this.#boarding = true
    setImmediate(() => {
      this.#boarding = false
      this.#beginAgain()
      while (this.#underWay.size < limit && this.#queue.length > 0) this.#takeOff()
      this.#board()
    })
  }

  #takeOff(): void {
    const flight: Promise<void> = this.#fly(this.#queue.splice(0, seated(this.#queue, seats))).finally(() => {
      this.#underWay.delete(flight)
      this.#beginAgain()
      this.#board()
    })
    this.#underWay.add(flight)
  }

  /** Whoever waits from now on waits for another commit. */
  #beginAgain(): void {
    if (this.#patience) clearTimeout(this.#patience)
    this.#patience = null
  }
}
