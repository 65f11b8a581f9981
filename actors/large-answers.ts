/**
 * Room for what is large in the answers to deliveries: so many are held in memory at once, and of one agent fewer, from their second
 * mebibyte until they were parsed and kept. Who has no room yet leaves the rest with the network: agents that answer two hundred sends
 * with 24 MiB each would otherwise end the process, and with it every delivery under way. Does not read (outbound/body.ts), does not
 * parse (threads/heavy-turns.ts) and does not bound the wait (outbound.ts).
 */

/** Of 25 MiB each at most. */
const places = 8
/** One agent's: three of them fill less than there is. */
const placesEach = 2

export interface Guest {
  /** Resolves when there is room; asked again it is the same place. */
  readonly enter: () => Promise<void>
  /** Gives the place, or the wait for one, up. */
  readonly leave: () => void
}

interface Visit {
  readonly agentId: string
  readonly letIn: () => void
}

export class LargeAnswers {
  readonly #inside = new Set<Visit>()
  /** In the order in which they came. */
  readonly #waiting = new Set<Visit>()
  /** Of agents that have somebody here: when one was let in last, in visits. */
  readonly #served = new Map<string, number>()
  #visits = 0

  /** How many have room, and how many wait for it. */
  get counts(): { readonly inside: number; readonly waiting: number } {
    return { inside: this.#inside.size, waiting: this.#waiting.size }
  }

  guest(agentId: string): Guest {
    const entered = Promise.withResolvers<void>()
    const visit: Visit = { agentId, letIn: entered.resolve }
    let hasAsked = false
    return {
      enter: () => {
        if (!hasAsked) this.#waiting.add(visit)
        hasAsked = true
        this.#letIn()
        return entered.promise
      },
      leave: () => {
        this.#waiting.delete(visit)
        const wasInside = this.#inside.delete(visit)
        if (![...this.#inside, ...this.#waiting].some((other) => other.agentId === agentId))
          this.#served.delete(agentId)
        if (wasInside) this.#letIn()
      },
    }
  }

  /**
   * Whose agent has fewer goes first, and of these whose was let in longest ago: behind agents with sixty answers each, that come a
   * byte at a time, the first answer of another would otherwise wait for all of those.
   */
  #letIn(): void {
    while (this.#inside.size < places) {
      const visit = this.#next()
      if (!visit) return
      this.#waiting.delete(visit)
      this.#inside.add(visit)
      this.#served.set(visit.agentId, ++this.#visits)
      visit.letIn()
    }
  }

  #next(): Visit | undefined {
    const placesOf = ({ agentId }: Visit): number =>
      [...this.#inside].filter((visit) => visit.agentId === agentId).length
    const servedOf = ({ agentId }: Visit): number => this.#served.get(agentId) ?? 0
    const [next] = [...this.#waiting]
      .filter((visit) => placesOf(visit) < placesEach)
      .toSorted((a, b) => placesOf(a) - placesOf(b) || servedOf(a) - servedOf(b))
    return next
  }
}
