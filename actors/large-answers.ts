/**
 * Room for what is large in the answers to deliveries: so many are read at once, and of one agent fewer, from their second mebibyte until
 * they were parsed and kept. Who has no place yet leaves the rest with the network: agents that answer two hundred sends with 24 MiB
 * each would otherwise end the process, and with it every delivery under way.
 *
 * An answer that drips while its place would be another's gives it up, and keeps what it has, in a room of its own: eight that drip for a
 * minute would otherwise keep all others waiting as long. It may go on for a mebibyte without a place, and asks for one again then, before
 * those that come anew. Nobody is cut off for it. Only what drips is treated so, by a pace with which nothing large comes to its end: where it
 * is our own line that is slow, as many are read at once as it serves. What is larger than that room stays where it is.
 * Does not read (outbound/body.ts), does not parse (threads/heavy-turns.ts) and does not bound the wait (outbound.ts).
 */
import { FairRoom, type Visit } from '../domain/fair-room.ts'

const MiB = 1024 * 1024

/** Of 25 MiB each at most. */
const places = 8
/** One agent's: three of them fill less than there is. */
const placesEach = 2
/** What those that drip may hold altogether, and one agent's. */
const drippingBytes = 64 * MiB
const drippingBytesEach = 16 * MiB
const stepBytes = MiB
/** In a minute 4 MB. */
export const leastBytesPerMs = 64
/** Over which pace is judged, and after which whoever has just got a place is: a pause of the network is no drip. */
const usualJudgedMs = 4_000
const lookMs = 1_000

export interface Guest {
  /** So much of the answer has come. Null: it may be read on; otherwise once this resolves. Asked again it is the same wait. */
  readonly read: (bytes: number) => Promise<void> | null
  /** It has come whole, and keeps its place until it leaves. */
  readonly whole: () => void
  /** Gives the place, or the wait for one, up. */
  readonly leave: () => void
}

export interface LargeAnswersOptions {
  /** For tests, which do not wait so long. */
  readonly judgedMs?: number
}

export class LargeAnswers {
  readonly #room = new FairRoom({ all: places, each: placesEach })
  /** Those that are not whole yet. */
  readonly #reading = new Set<Reading>()
  readonly #dripping = new Set<Reading>()
  readonly #judgedMs: number
  #looking: NodeJS.Timeout | undefined

  constructor({ judgedMs = usualJudgedMs }: LargeAnswersOptions = {}) {
    this.#judgedMs = judgedMs
  }

  /** How many have a place, how many wait for one, and what is held by those that gave theirs up. */
  get counts(): { readonly inside: number; readonly waiting: number; readonly drippingBytes: number } {
    const { weight, waiting } = this.#room.counts
    return { inside: weight, waiting, drippingBytes: heldBy([...this.#dripping]) }
  }

  guest(agentId: string): Guest {
    const reading = new Reading(this.#room, agentId)
    return {
      read: (bytes) => {
        this.#reading.add(reading)
        const wait = reading.read(bytes)
        if (wait) this.#look()
        return wait
      },
      whole: () => void this.#reading.delete(reading),
      leave: () => {
        this.#reading.delete(reading)
        this.#dripping.delete(reading)
        reading.leave()
      },
    }
  }

  /** For as long as somebody waits. */
  #look(): void {
    if (this.#looking !== undefined) return
    const look = (): void => {
      const now = performance.now()
      for (const reading of this.#reading) if (reading.drips(now, this.#judgedMs)) this.#putAside(reading)
      if (this.#room.counts.waiting > 0) return
      clearInterval(this.#looking)
      this.#looking = undefined
    }
    // After a process stood still timers ring before sockets are read, and nothing of what came would be seen.
    this.#looking = setInterval(() => setImmediate(look), Math.min(lookMs, this.#judgedMs)).unref()
  }

  #putAside(reading: Reading): void {
    const ofAgent = heldBy([...this.#dripping].filter((each) => each.agentId === reading.agentId))
    const held = this.#dripping.has(reading) ? 0 : heldBy([reading])
    const hasRoom = heldBy([...this.#dripping]) + held <= drippingBytes && ofAgent + held <= drippingBytesEach
    if (!hasRoom || !reading.isWanted) return
    // It keeps its room here until it leaves, also once it has a place again.
    this.#dripping.add(reading)
    reading.giveUpPlace()
  }
}

/** With what each may still read. */
const heldBy = (readings: readonly Reading[]): number => readings.reduce((sum, { bytes }) => sum + bytes + stepBytes, 0)

/** One answer: what has come of it, and whether it has a place. */
class Reading {
  readonly agentId: string
  readonly #room: FairRoom
  #place: Visit | null = null
  /** While it waits for a place. */
  #asked: { readonly visit: Visit; readonly isOver: Promise<void> } | null = null
  #bytes = 0
  /** How far it may be read without a place, where it had one. */
  #untilBytes = 0
  #judged = { bytes: 0, atMs: 0 }

  constructor(room: FairRoom, agentId: string) {
    this.#room = room
    this.agentId = agentId
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether somebody would come in for it. */
  get isWanted(): boolean {
    return this.#place !== null && this.#room.isWanted(this.#place)
  }

  read(bytes: number): Promise<void> | null {
    this.#bytes = bytes
    if (this.#place === null && this.#asked === null && bytes > this.#untilBytes) this.#ask()
    return this.#asked?.isOver ?? null
  }

  #ask(): void {
    const { promise: isOver, resolve } = Promise.withResolvers<void>()
    const letIn = (): void => {
      this.#place = visit
      this.#asked = null
      this.#judged = { bytes: this.#bytes, atMs: performance.now() }
      resolve()
    }
    const again = this.#untilBytes > 0 ? { isAgain: true as const } : {}
    const visit: Visit = { holder: this.agentId, weight: 1, letIn, ...again }
    this.#asked = { visit, isOver }
    this.#room.enter(visit)
  }

  /** Whether it has a place, and less came of it than is asked for since it was judged last. */
  drips(now: number, judgedMs: number): boolean {
    const sinceMs = now - this.#judged.atMs
    if (this.#place === null || sinceMs < judgedMs) return false
    const drips = this.#bytes - this.#judged.bytes < sinceMs * leastBytesPerMs
    this.#judged = { bytes: this.#bytes, atMs: now }
    return drips
  }

  giveUpPlace(): void {
    this.#untilBytes = this.#bytes + stepBytes
    const place = this.#place
    this.#place = null
    if (place) this.#room.leave(place)
  }

  leave(): void {
    if (this.#asked) this.#room.leave(this.#asked.visit)
    if (this.#place) this.#room.leave(this.#place)
  }
}
