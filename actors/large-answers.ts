/**
 * Room for what is large in the answers to deliveries: so many are held in memory at once, and of one agent fewer, from their second
 * mebibyte until they were parsed and kept. Who has no room yet leaves the rest with the network: agents that answer two hundred sends
 * with 24 MiB each would otherwise end the process, and with it every delivery under way. Does not read (outbound/body.ts), does not
 * parse (threads/heavy-turns.ts) and does not bound the wait (outbound.ts).
 */
import { FairRoom } from './fair-room.ts'

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

export class LargeAnswers {
  readonly #room = new FairRoom({ all: places, each: placesEach })

  /** How many have room, and how many wait for it. */
  get counts(): { readonly inside: number; readonly waiting: number } {
    const { weight, waiting } = this.#room.counts
    return { inside: weight, waiting }
  }

  guest(agentId: string): Guest {
    const entered = Promise.withResolvers<void>()
    const visit = { holder: agentId, weight: 1, letIn: entered.resolve }
    let hasAsked = false
    return {
      enter: () => {
        if (!hasAsked) this.#room.enter(visit)
        hasAsked = true
        return entered.promise
      },
      leave: () => this.#room.leave(visit),
    }
  }
}
