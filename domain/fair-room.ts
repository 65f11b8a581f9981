/**
 * Room for so much at once, and so much of one holder: whose holder has least inside goes first, and of these whose was let in longest
 * ago. Behind holders that come again and again with what is slow, the first of another would otherwise wait for all of those. Does not
 * know what is held, or how long somebody waits (actors/large-answers.ts, http/large-room.ts).
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
  /**
   * Kept for holders with nothing inside, beyond all: one is let in with no more than half of what is left until so much is inside. However
   * many come with what is heavy, they leave room for what is less so. Absent: nothing is kept.
   */
  readonly first?: number
}

/** Of a holder that has somebody here. */
interface Standing {
  /** Inside. */
  weight: number
  /** Visits, inside or waiting. */
  visits: number
  /** When one was let in last, in visits. */
  served: number
}

export class FairRoom {
  readonly #limits: RoomLimits
  readonly #inside = new Set<Visit>()
  /** In the order in which they came. */
  readonly #waiting = new Set<Visit>()
  readonly #holders = new Map<string, Standing>()
  #weight = 0
  #visits = 0

  constructor(limits: RoomLimits) {
    this.#limits = limits
  }

  /** What is inside, by weight, and how many wait. */
  get counts(): { readonly weight: number; readonly waiting: number } {
    return { weight: this.#weight, waiting: this.#waiting.size }
  }

  has(visit: Visit): boolean {
    return this.#inside.has(visit)
  }

  /** Once; it is another visit when it comes again. */
  enter(visit: Visit): void {
    const standing = this.#holders.get(visit.holder) ?? { weight: 0, visits: 0, served: 0 }
    standing.visits += 1
    this.#holders.set(visit.holder, standing)
    this.#waiting.add(visit)
    this.#letIn()
  }

  /** What one holder has inside. */
  weightOf(holder: string): number {
    return this.#holders.get(holder)?.weight ?? 0
  }

  /** Whether somebody would be let in for what is inside. */
  isWanted(visit: Visit): boolean {
    if (!this.#inside.has(visit)) return false
    const left = this.#weight - visit.weight
    for (const each of this.#waiting) {
      const own = this.weightOf(each.holder) - (each.holder === visit.holder ? visit.weight : 0)
      if (this.#admits(each, own, left)) return true
    }
    return false
  }

  /** Gives the place, or the wait for one, up; once or more often. */
  leave(visit: Visit): void {
    const wasInside = this.#inside.delete(visit)
    const standing = this.#holders.get(visit.holder)
    if (standing && (this.#waiting.delete(visit) || wasInside)) {
      standing.visits -= 1
      if (wasInside) this.#weigh(standing, -visit.weight)
      if (standing.visits === 0) this.#holders.delete(visit.holder)
    }
    this.#letIn()
  }

  #letIn(): void {
    while (this.#weight < Math.max(this.#limits.all, this.#limits.first ?? 0)) {
      const next = this.#next()
      if (!next) return
      const { visit, standing } = next
      this.#waiting.delete(visit)
      this.#inside.add(visit)
      this.#weigh(standing, visit.weight)
      standing.served = ++this.#visits
      visit.letIn()
    }
  }

  /** One pass over who waits: it is made whenever somebody leaves, and thousands may wait. */
  #next(): Candidate | undefined {
    let next: Candidate | undefined
    for (const visit of this.#waiting) {
      const standing = this.#holders.get(visit.holder)
      if (!standing || !this.#admits(visit, standing.weight, this.#weight)) continue
      const candidate = { visit, standing }
      if (visit.isAgain) return candidate
      if (!next || goesBefore(standing, next.standing)) next = candidate
    }
    return next
  }

  /** Whether it may come in, where its holder has `own` inside, of `inside` altogether. */
  #admits({ weight }: Visit, own: number, inside: number): boolean {
    const { all, each, first = 0 } = this.#limits
    return (inside < all && own < each) || (own === 0 && 2 * weight <= first - inside)
  }

  #weigh(standing: Standing, weight: number): void {
    standing.weight += weight
    this.#weight += weight
  }
}

interface Candidate {
  readonly visit: Visit
  readonly standing: Standing
}

/** Of two equals the one that came first stays first. */
const goesBefore = (a: Standing, b: Standing): boolean =>
  a.weight < b.weight || (a.weight === b.weight && a.served < b.served)
