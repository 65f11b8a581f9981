/**
 * Room for large frames of event streams: so many bytes of them are held in memory at once, from before a frame is read until its
 * reader took it. Who has no room yet waits, and holds nothing: thirty readers of a task of 30 MiB that take nothing would otherwise
 * hold a gigabyte. Does not decide how long somebody waits (task-feed.ts) or may take (event-stream.ts).
 */
import { Bell } from '../actors/loop/bell.ts'

const MiB = 1024 * 1024

/** Of less, every stream may hold one without asking. */
export const largeBytes = MiB
/** Somebody is let in while less than this is inside: one frame may go beyond, and is alone there if it is larger. */
const roomBytes = 128 * MiB
/** One person's, in the same way: with many pages that read nothing they leave room for others. */
const roomBytesEach = 64 * MiB

/** A place, or the wait for one. */
export interface FramePlace {
  /** Waits for the place, so long at most; true once it is had. */
  readonly enter: (ms: number, signal: AbortSignal) => Promise<boolean>
  /** Gives it up; once or more often. */
  readonly leave: () => void
}

interface Visit {
  readonly person: string
  readonly bytes: number
  readonly bell: Bell
}

export class LargeFrames {
  readonly #inside = new Set<Visit>()
  /** In the order in which they came. */
  readonly #waiting = new Set<Visit>()
  /** Of people that have somebody here: when one was let in last, in visits. */
  readonly #served = new Map<string, number>()
  #visits = 0

  /** Bytes that have room, and how many frames wait for it. */
  get counts(): { readonly bytes: number; readonly waiting: number } {
    return { bytes: bytesOf([...this.#inside]), waiting: this.#waiting.size }
  }

  place(person: string, bytes: number): FramePlace {
    const visit: Visit = { person, bytes, bell: new Bell() }
    this.#waiting.add(visit)
    this.#letIn()
    return {
      enter: async (ms, signal) => {
        if (!this.#inside.has(visit)) await visit.bell.wait(ms, signal)
        return this.#inside.has(visit)
      },
      leave: () => {
        this.#waiting.delete(visit)
        this.#inside.delete(visit)
        if (![...this.#inside, ...this.#waiting].some((other) => other.person === person)) this.#served.delete(person)
        this.#letIn()
      },
    }
  }

  #letIn(): void {
    while (bytesOf([...this.#inside]) < roomBytes) {
      const visit = this.#next()
      if (!visit) return
      this.#waiting.delete(visit)
      this.#inside.add(visit)
      this.#served.set(visit.person, ++this.#visits)
      visit.bell.ring()
    }
  }

  /** Of whom less is inside goes first, and of these whose was let in longest ago: who reads nothing comes again and again. */
  #next(): Visit | undefined {
    const heldBy = ({ person }: Visit): number => bytesOf([...this.#inside].filter((visit) => visit.person === person))
    const servedOf = ({ person }: Visit): number => this.#served.get(person) ?? 0
    const [next] = [...this.#waiting]
      .filter((visit) => heldBy(visit) < roomBytesEach)
      .toSorted((a, b) => heldBy(a) - heldBy(b) || servedOf(a) - servedOf(b))
    return next
  }
}

const bytesOf = (visits: readonly Visit[]): number => visits.reduce((sum, { bytes }) => sum + bytes, 0)
