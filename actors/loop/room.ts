/**
 * How much may be under way in this process at once, how much of it for one agent, and how much of what failed or was slow, so that
 * those that hang leave places for the others. Counts what is held (lease.ts) and what is promised while its commit or claim is
 * under way. Does not decide who gets a place.
 */
import { shareOf } from '../../domain/shares.ts'
import type { Turn } from '../../persistence/leases.ts'
import type { Kind, Kinds } from './kinds.ts'
import type { Leases } from './lease.ts'
import type { Seat } from './step.ts'
import { lanesOf } from './turns.ts'

/** What a claim may take here, and what it has to leave where it is. */
export interface Opening {
  /** No more than any lane that has room may still have, for they may all be of that one. */
  readonly limit: number
  readonly fullLanes: readonly string[]
  /** There is no room for more that failed or was slow last (Kind.doubt). */
  readonly isFullOfDoubt: boolean
}

/** Places for work whose commit or claim is under way. */
interface Promised {
  all: number
  doubted: number
  readonly lanes: Map<string, number>
}

export class Room {
  readonly #kinds: Kinds
  readonly #leases: Leases
  readonly #promised = new Map<string, Promised>()

  constructor(kinds: Kinds, leases: Leases) {
    this.#kinds = kinds
    this.#leases = leases
  }

  kind(name: string): Kind {
    const kind = this.#kinds[name]
    if (!kind) throw new Error(`There is no kind of actor called "${name}".`)
    return kind
  }

  /**
   * Where work takes turns, what each lane holds here, and which comes before which of those that hold as much: who had places
   * for less time. To be asked for where somebody may have been turned away, for all that is due is put in that order.
   */
  turnsOf(kind: string, now: number): ReadonlyMap<string, Turn> | null {
    if (this.kind(kind).turnMs === undefined) return null
    const { placeTime } = this.#leases
    const held = lanesOf(this.#leases.list(), kind)
    const times = placeTime.of(kind, this.#leases.of(kind), now)
    const inOrder = [...new Set([...placeTime.lanes(kind), ...held.keys()])].toSorted((a, b) => times(a) - times(b))
    return new Map(inOrder.map((lane, number) => [lane, { held: held.get(lane) ?? 0, number }]))
  }

  has({ kind, lane, isDoubted }: Seat): boolean {
    const free = this.#free(kind)
    if (free <= 0 || (isDoubted && this.#isFullOfDoubt(kind))) return false
    if (lane === null) return true
    const taken = this.#leases.count(kind, (lease) => lease.lane === lane) + (this.#of(kind).lanes.get(lane) ?? 0)
    return taken < this.#share(kind, free)
  }

  opening(name: string): Opening {
    const free = this.#free(name)
    const share = this.#share(name, free)
    const lanes = [...this.#lanes(name)]
    const left = lanes.map(([, taken]) => share - taken).filter((n) => n > 0)
    return {
      limit: Math.min(this.kind(name).claimLimit, free, share, ...left),
      fullLanes: lanes.flatMap(([lane, taken]) => (taken >= share ? [lane] : [])),
      isFullOfDoubt: this.#isFullOfDoubt(name),
    }
  }

  /** Promises places, or takes the promise back: `by` is 1 or -1, or as many as a claim may bring, of whatever lane. */
  reserve({ kind, lane, isDoubted }: Seat, by: number): void {
    const promised = this.#of(kind)
    promised.all += by
    if (isDoubted) promised.doubted += by
    if (lane === null) return
    const left = (promised.lanes.get(lane) ?? 0) + by
    if (left > 0) promised.lanes.set(lane, left)
    else promised.lanes.delete(lane)
  }

  #of(kind: string): Promised {
    const promised = this.#promised.get(kind) ?? { all: 0, doubted: 0, lanes: new Map<string, number>() }
    this.#promised.set(kind, promised)
    return promised
  }

  /** Places that nobody has or was promised. */
  #free(kind: string): number {
    return this.kind(kind).concurrency - this.#leases.count(kind) - this.#of(kind).all
  }

  #share(kind: string, free: number): number {
    const { concurrency: places, laneLimit: perAgent } = this.kind(kind)
    return shareOf({ places, perAgent, taken: places - free })
  }

  /** Of each lane, what it holds or was promised. */
  #lanes(kind: string): ReadonlyMap<string, number> {
    const lanes = new Map(lanesOf(this.#leases.list(), kind))
    for (const [lane, count] of this.#of(kind).lanes) lanes.set(lane, (lanes.get(lane) ?? 0) + count)
    return lanes
  }

  #isFullOfDoubt(kind: string): boolean {
    const { doubt } = this.kind(kind)
    if (doubt === undefined) return false
    return this.#leases.count(kind, ({ isDoubted }) => isDoubted) + this.#of(kind).doubted >= doubt.places
  }
}
