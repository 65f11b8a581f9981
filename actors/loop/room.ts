/**
 * How much may be under way in this process at once, and how much of it for one agent, so that one that hangs leaves places
 * for the others. Counts what is held (lease.ts) and what is promised while its commit or claim is under way. Does not decide
 * who gets a place.
 */
import type { Kind, Kinds } from './kinds.ts'
import type { Leases } from './lease.ts'
import { lanesOf } from './turns.ts'

export class Room {
  readonly #kinds: Kinds
  readonly #leases: Leases
  /** Promised for work whose commit or claim is under way, by kind and by lane. */
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
    return this.kind(kind).concurrency - this.#leases.count(kind) - (this.#reserved.get(kind) ?? 0)
  }

  has(kind: string, lane: string | null): boolean {
    return this.free(kind) > 0 && !this.#isFull(kind, lane)
  }

  reserve(kind: string, lane: string | null, by: number): void {
    for (const key of lane === null ? [kind] : [kind, `${kind} ${lane}`]) {
      const left = (this.#reserved.get(key) ?? 0) + by
      if (left > 0) this.#reserved.set(key, left)
      else this.#reserved.delete(key)
    }
  }

  #isFull(kind: string, lane: string | null): boolean {
    if (lane === null) return false
    const taken = this.#leases.count(kind, lane) + (this.#reserved.get(`${kind} ${lane}`) ?? 0)
    return taken >= this.kind(kind).laneLimit
  }

  fullLanes(kind: string): string[] {
    const lanes = new Set(this.#leases.list().flatMap(({ ref, lane }) => (ref.kind === kind && lane ? [lane] : [])))
    return [...lanes].filter((lane) => this.#isFull(kind, lane))
  }

  /** Where work takes turns, what each lane has here: the one with the least comes first. */
  turnsOf(kind: string): ReadonlyMap<string, number> {
    return this.kind(kind).turnMs === undefined ? new Map() : lanesOf(this.#leases.list(), kind)
  }
}
