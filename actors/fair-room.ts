/**
 * Room for so much at once, and so much of one holder: whose holder has least inside goes first, and of these whose was let in longest
 * ago. Behind holders that come again and again with what is slow, the first of another would otherwise wait for all of those. Does not
 * know what is held, or how long somebody waits (large-answers.ts, http/large-room.ts).
 */

export interface Visit {
  readonly holder: string
  readonly weight: number
  /** It was inside before, and gave its place up: it goes before all that come anew, whoever waits longest first. */
  readonly isAgain?: true
  /** Told once, when there is room. */
  readonly letIn: () => void
}

export interface RoomLimits {
  /** Somebody is let in while less than this is inside: one visit may go beyond. */
  readonly all: number
  /** One holder's, in the same way. */
  readonly each: number
}

export class FairRoom {
  readonly #limits: RoomLimits
  readonly #inside = new Set<Visit>()
  /** In the order in which they came. */
  readonly #waiting = new Set<Visit>()
  /** Of holders that have somebody here: when one was let in last, in visits. */
  readonly #served = new Map<string, number>()
  #visits = 0

  constructor(limits: RoomLimits) {
    this.#limits = limits
  }

  /** What is inside, by weight, and how many wait. */
  get counts(): { readonly weight: number; readonly waiting: number } {
    return { weight: this.#weight(), waiting: this.#waiting.size }
  }

  has(visit: Visit): boolean {
    return this.#inside.has(visit)
  }

  enter(visit: Visit): void {
    this.#waiting.add(visit)
    this.#letIn()
  }

  /** Whether somebody would be let in for what is inside. */
  isWanted(visit: Visit): boolean {
    const left = this.#weight() - visit.weight
    const isFree = ({ holder }: Visit): boolean =>
      this.#weight((each) => each.holder === holder && each !== visit) < this.#limits.each
    return this.#inside.has(visit) && left < this.#limits.all && [...this.#waiting].some(isFree)
  }

  /** Gives the place, or the wait for one, up; once or more often. */
  leave(visit: Visit): void {
    this.#waiting.delete(visit)
    this.#inside.delete(visit)
    if (![...this.#inside, ...this.#waiting].some(({ holder }) => holder === visit.holder))
      this.#served.delete(visit.holder)
    this.#letIn()
  }

  #letIn(): void {
    while (this.#weight() < this.#limits.all) {
      const visit = this.#next()
      if (!visit) return
      this.#waiting.delete(visit)
      this.#inside.add(visit)
      this.#served.set(visit.holder, ++this.#visits)
      visit.letIn()
    }
  }

  #next(): Visit | undefined {
    const heldBy = ({ holder }: Visit): number => this.#weight((visit) => visit.holder === holder)
    const servedOf = ({ holder }: Visit): number => this.#served.get(holder) ?? 0
    const [next] = [...this.#waiting]
      .filter((visit) => heldBy(visit) < this.#limits.each)
      .toSorted((a, b) => {
        const again = Number(b.isAgain ?? false) - Number(a.isAgain ?? false)
        if (again !== 0 || a.isAgain) return again
        return heldBy(a) - heldBy(b) || servedOf(a) - servedOf(b)
      })
    return next
  }

  #weight(of: (visit: Visit) => boolean = () => true): number {
    let sum = 0
    for (const visit of this.#inside) if (of(visit)) sum += visit.weight
    return sum
  }
}
