/**
 * A line in which holders take turns: whose holder had its turn longest ago goes first, and of one holder's whoever came first. A holder
 * with nobody in line comes to it as if it had its turn just before the one that is under way: behind those that have waited, before whoever
 * is served all the time, so that nobody waits for more than one turn of each of the others. Does not know what a turn is
 * (actors/threads/heavy-turns.ts).
 */

/** Of a holder that has somebody in line. */
interface Standing<W> {
  /** In the order in which they came. */
  readonly waiting: Set<W>
  /** When it had its last turn, in turns. */
  served: number
}

export class FairLine<W extends { readonly holder: string }> {
  readonly #holders = new Map<string, Standing<W>>()
  #turns = 0
  #lastHolder: string | null = null
  #size = 0

  get size(): number {
    return this.#size
  }

  enter(one: W): void {
    const { holder } = one
    const served = holder === this.#lastHolder ? this.#turns : this.#turns - 1
    const standing = this.#holders.get(holder) ?? { waiting: new Set<W>(), served }
    standing.waiting.add(one)
    this.#holders.set(holder, standing)
    this.#size += 1
  }

  /** Leaves the line without a turn; once or more often. */
  leave(one: W): void {
    const standing = this.#holders.get(one.holder)
    if (standing?.waiting.has(one)) this.#take(one, standing)
  }

  /** Whose turn it is: it is in line no more. */
  next(): W | undefined {
    let first: Standing<W> | undefined
    // Of two equals the one whose holder came first stays first.
    for (const standing of this.#holders.values()) if (!first || standing.served < first.served) first = standing
    const [one] = first?.waiting ?? []
    if (!first || !one) return undefined
    this.#turns += 1
    this.#lastHolder = one.holder
    first.served = this.#turns
    this.#take(one, first)
    return one
  }

  #take(one: W, { waiting }: Standing<W>): void {
    waiting.delete(one)
    this.#size -= 1
    if (waiting.size === 0) this.#holders.delete(one.holder)
  }
}
