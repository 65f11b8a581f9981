/**
 * Room for what is large in the answers to deliveries: so many bytes are held in memory at once, and of one agent fewer, from their second
 * mebibyte until they were parsed and kept. Who has no room yet leaves the rest with the network: agents that answer two hundred sends
 * with 24 MiB each would otherwise end the process, and with it every delivery under way.
 *
 * Whoever comes in has room for all that may still come, so that it can end without asking again. Who is slow while others wait keeps room
 * for what it has, and asks again for each further mebibyte, before those that come anew: an answer that drips for a minute would
 * otherwise keep eight of 24 MiB waiting. Nobody is cut off for it. Where answers that stand still half-read are all there is room for, the
 * bound of their waits ends them (outbound.ts). Does not read (outbound/body.ts) and does not parse (threads/heavy-turns.ts).
 */
import { FairRoom, type Visit } from './fair-room.ts'

const MiB = 1024 * 1024

/** What an answer may have, where it does not say how long it is. */
const largestBytes = 25 * MiB
const roomBytes = 8 * largestBytes
/** One agent's: three of them fill less than there is. */
const roomBytesEach = 2 * largestBytes
/** Room is had for so much more at a time by who was slow. */
const stepBytes = MiB
/** With which the largest would take 50 s of its minute. */
const leastBytesPerMs = 512
/** Over which pace is judged, and after which whoever is let in is judged first: a pause of the network is not slowness. */
const judgedMs = 4_000
const lookMs = 1_000

export interface Guest {
  /**
   * So much of the answer has come, and no more than `mostBytes` will. Null: it may be read on; otherwise once this resolves. Asked again
   * while it waits it is the same wait.
   */
  readonly read: (bytes: number, mostBytes?: number) => Promise<void> | null
  /** It has come whole, and keeps room for what it is until it leaves. */
  readonly whole: () => void
  /** Gives its room, or the wait for it, up. */
  readonly leave: () => void
}

/** Limits that a test may have smaller. */
export interface LargeAnswersOptions {
  readonly judgedMs?: number
}

export class LargeAnswers {
  readonly #room = new FairRoom({ all: roomBytes, each: roomBytesEach })
  /** Those that are being read. */
  readonly #read = new Set<Reading>()
  readonly #judgedMs: number
  #looking: NodeJS.Timeout | undefined

  constructor(options: LargeAnswersOptions = {}) {
    this.#judgedMs = options.judgedMs ?? judgedMs
  }

  /** Bytes that have room, and how many answers wait for it. */
  get counts(): { readonly bytes: number; readonly waiting: number } {
    const { weight, waiting } = this.#room.counts
    return { bytes: weight, waiting }
  }

  guest(agentId: string): Guest {
    const reading = new Reading(this.#room, agentId, this.#judgedMs)
    return {
      read: (bytes, mostBytes = largestBytes) => {
        this.#read.add(reading)
        const wait = reading.read(bytes, mostBytes)
        if (wait) this.#look()
        return wait
      },
      whole: () => {
        this.#read.delete(reading)
        reading.shrinkTo(0)
      },
      leave: () => {
        this.#read.delete(reading)
        reading.leave()
      },
    }
  }

  /** For as long as somebody waits. */
  #look(): void {
    if (this.#looking !== undefined) return
    this.#looking = setInterval(
      () => {
        for (const reading of this.#read)
          if (this.#room.counts.waiting > 0 && reading.isSlow()) reading.shrinkTo(stepBytes)
        if (this.#room.counts.waiting > 0) return
        clearInterval(this.#looking)
        this.#looking = undefined
      },
      Math.min(lookMs, this.#judgedMs),
    ).unref()
  }
}

/** One answer: what has come of it, and what it has room for. */
class Reading {
  readonly #room: FairRoom
  readonly #agentId: string
  readonly #judgedMs: number
  #place: Visit | null = null
  /** While it waits: for its place, or for more room in it. */
  #asked: { readonly visit: Visit; readonly isOver: Promise<void> } | null = null
  #bytes = 0
  #roomBytes = 0
  #judged = { bytes: 0, atMs: 0 }

  constructor(room: FairRoom, agentId: string, judgedMs: number) {
    this.#room = room
    this.#agentId = agentId
    this.#judgedMs = judgedMs
  }

  read(bytes: number, mostBytes: number): Promise<void> | null {
    this.#bytes = bytes
    if (bytes > this.#roomBytes && this.#asked === null)
      this.#ask(this.#place === null ? Math.max(bytes, mostBytes) : bytes - this.#roomBytes + stepBytes)
    return this.#asked?.isOver ?? null
  }

  #ask(weight: number): void {
    const { promise: isOver, resolve } = Promise.withResolvers<void>()
    const letIn = (): void => {
      this.#asked = null
      this.#roomBytes += weight
      this.#judged = { bytes: this.#bytes, atMs: performance.now() }
      if (this.#place === null) this.#place = visit
      else {
        this.#room.weigh(this.#place, this.#roomBytes)
        this.#room.leave(visit)
      }
      resolve()
    }
    const more = this.#place === null ? {} : { isMore: true as const }
    const visit: Visit = { holder: this.#agentId, weight, letIn, ...more }
    this.#asked = { visit, isOver }
    this.#room.enter(visit)
  }

  /** Whether less came of it than is asked for since it was judged last; while it waits itself it is not. */
  isSlow(): boolean {
    const now = performance.now()
    const sinceMs = now - this.#judged.atMs
    if (this.#place === null || this.#asked !== null || sinceMs < this.#judgedMs) return false
    const isSlow = this.#bytes - this.#judged.bytes < sinceMs * leastBytesPerMs
    this.#judged = { bytes: this.#bytes, atMs: now }
    return isSlow
  }

  /** Keeps room for what it has, and so much more. */
  shrinkTo(moreBytes: number): void {
    if (this.#place === null || this.#bytes + moreBytes >= this.#roomBytes) return
    this.#roomBytes = this.#bytes + moreBytes
    this.#room.weigh(this.#place, this.#roomBytes)
  }

  leave(): void {
    if (this.#asked) this.#room.leave(this.#asked.visit)
    if (this.#place) this.#room.leave(this.#place)
  }
}
