/**
 * How much may be under way in this process at once, how much of it for one agent, and how much of what failed or was slow, so that
 * those that hang leave places for the others. Counts what is held (lease.ts) and what is promised while its commit or claim is
 * under way. Does not decide who gets a place.
 */
import { shareOf } from '../../domain/shares.ts'
import type { Turn } from '../../persistence/leases.ts'
import type { Kind, Kinds } from './kinds.ts'
import type { Leases } from './lease.ts'
import { PlacesByKind, type Places } from './places.ts'
import type { Seat } from './step.ts'

/** What a claim may take here, and what it has to leave where it is. */
export interface Opening {
  /** No more than any lane that has room may still have, for they may all be of that one. */
  readonly limit: number
  readonly fullLanes: readonly string[]
  /** There is no room for more that failed or was slow last (Kind.doubt). */
  readonly isFullOfDoubt: boolean
}

export class Room {
  readonly #kinds: Kinds
  readonly #leases: Leases
  /** For work whose commit or claim is under way. */
  readonly #promised = new PlacesByKind()

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
    const held = this.#leases.places(kind).lanes
    const times = placeTime.of(kind, this.#leases.of(kind), now)
    const inOrder = [...new Set([...placeTime.lanes(kind), ...held.keys()])].toSorted((a, b) => times(a) - times(b))
    return new Map(inOrder.map((lane, number) => [lane, { held: held.get(lane) ?? 0, number }]))
  }

  has({ kind, lane, isDoubted }: Seat): boolean {
    const free = this.#free(kind)
    if (free <= 0 || (isDoubted && this.#isFullOfDoubt(kind))) return false
    if (lane === null) return true
    const taken = (places: Pick<Places, 'lanes'>): number => places.lanes.get(lane) ?? 0
    return taken(this.#leases.places(kind)) + taken(this.#promised.of(kind)) < this.#share(kind, free)
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
  reserve({ kind, ...seat }: Seat, by: number): void {
    this.#promised.of(kind).add(seat, by)
  }

  /** Places that nobody has or was promised. */
  #free(kind: string): number {
    return this.kind(kind).concurrency - this.#leases.places(kind).all - this.#promised.of(kind).all
  }

  #share(kind: string, free: number): number {
    const { concurrency: places, laneLimit: perAgent } = this.kind(kind)
    return shareOf({ places, perAgent, taken: places - free })
  }

  /** Of each lane, what it holds or was promised. */
  #lanes(kind: string): ReadonlyMap<string, number> {
    const lanes = new Map(this.#leases.places(kind).lanes)
    for (const [lane, count] of this.#promised.of(kind).lanes) lanes.set(lane, (lanes.get(lane) ?? 0) + count)
    return lanes
  }

  #isFullOfDoubt(kind: string): boolean {
    const { doubt } = this.kind(kind)
    if (doubt === undefined) return false
    return this.#leases.places(kind).doubted + this.#promised.of(kind).doubted >= doubt.places
  }
}
