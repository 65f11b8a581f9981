/**
 * How much may be under way in this process at once, how much of it for one agent, and how much of what failed last, so that
 * those that hang leave places for the others. Counts what is held (lease.ts) and what is promised while its commit or claim is
 * under way. Does not decide who gets a place.
 */
import { shareOf } from '../../domain/shares.ts'
import type { Kind, Kinds } from './kinds.ts'
import type { Leases } from './lease.ts'
import type { Seat } from './step.ts'
import { lanesOf } from './turns.ts'

/** Who has no more room here. */
export interface Full {
  readonly lanes: readonly string[]
  /** All that failed last (Kind.doubt). */
  readonly doubted: boolean
}

export class Room {
  readonly #kinds: Kinds
  readonly #leases: Leases
  /** Promised for work whose commit or claim is under way, by kind, by lane, and of what is doubted. */
  readonly #reserved = new Map<string, number>()

  constructor(kinds: Kinds, leases: Leases) {
    this.#kinds = kinds
    this.#leases = leases
  }

  kind(name: string): Kind {
    const kind = this.#kinds[name]
    if (!kind) throw new Error(`There is no kind of actor called "${name}".`)
    return kind
  }

  /** Places of a kind that nobody has or was promised. */
  free(kind: string): number {
    return this.kind(kind).concurrency - this.#leases.count(kind) - this.#promised(kind)
  }

  /** How many to claim at once: no more than any lane that has room may still have, for they may all be of that one. */
  claimable(name: string): number {
    const share = this.#share(name)
    const left = [...this.#lanes(name).values()].map((taken) => share - taken).filter((n) => n > 0)
    return Math.min(this.kind(name).claimLimit, this.free(name), share, ...left)
  }

  has({ kind, lane, isDoubted }: Seat): boolean {
    return this.free(kind) > 0 && !this.#isFull(kind, lane) && !(isDoubted && this.#isFullOfDoubt(kind))
  }

  /** Promises places, or takes the promise back: `by` is 1 or -1, or as many as a claim may bring, of whatever lane. */
  reserve({ kind, lane, isDoubted }: Seat, by: number): void {
    const keys = [kind, ...(lane === null ? [] : [`${kind} ${lane}`]), ...(isDoubted ? [doubtOf(kind)] : [])]
    for (const key of keys) {
      const left = this.#promised(key) + by
      if (left > 0) this.#reserved.set(key, left)
      else this.#reserved.delete(key)
    }
  }

  full(kind: string): Full {
    const share = this.#share(kind)
    const full = [...this.#lanes(kind)].filter(([, taken]) => taken >= share)
    return { lanes: full.map(([lane]) => lane), doubted: this.#isFullOfDoubt(kind) }
  }

  /** Of each lane, what it holds or was promised. */
  #lanes(kind: string): ReadonlyMap<string, number> {
    const lanes = new Map(lanesOf(this.#leases.list(), kind))
    const promised = `${kind} `
    for (const [key, count] of this.#reserved) {
      if (!key.startsWith(promised) || key === doubtOf(kind)) continue
      const lane = key.slice(promised.length)
      lanes.set(lane, (lanes.get(lane) ?? 0) + count)
    }
    return lanes
  }

  /** Where work takes turns, what each lane has here: the one with the least comes first. */
  turnsOf(kind: string): ReadonlyMap<string, number> {
    return this.kind(kind).turnMs === undefined ? new Map() : lanesOf(this.#leases.list(), kind)
  }

  #promised(key: string): number {
    return this.#reserved.get(key) ?? 0
  }

  #isFull(kind: string, lane: string | null): boolean {
    if (lane === null) return false
    return this.#leases.count(kind, lane) + this.#promised(`${kind} ${lane}`) >= this.#share(kind)
  }

  #share(kind: string): number {
    const { concurrency: places, laneLimit: perAgent } = this.kind(kind)
    return shareOf({ places, perAgent, taken: places - this.free(kind) })
  }

  #isFullOfDoubt(kind: string): boolean {
    const { doubt } = this.kind(kind)
    return doubt !== undefined && this.#leases.countDoubted(kind) + this.#promised(doubtOf(kind)) >= doubt.places
  }
}

/** No lane is called so: those are ids. */
const doubtOf = (kind: string): string => `${kind} doubted`
