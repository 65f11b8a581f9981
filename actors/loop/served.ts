/**
 * Who had a place last, by lane, in this process: where lanes take turns, whoever had one goes behind all that had theirs longer ago or
 * never. The oldest row of a lane that has just given up its place would otherwise go before the first of another. Does not give places
 * (room.ts) and ends no turn (turns.ts).
 */
import { remember } from '../remember.ts'
import type { HeldLease } from './lease.ts'

/** Agents of a kind. Whoever is forgotten comes early: once. */
const remembered = 500

export class Served {
  /** By kind; of each lane monotonic milliseconds, in the order in which they were served. */
  readonly #lanes = new Map<string, Map<string, number>>()

  /** When it begins, and when it ends. */
  note({ ref, lane }: Pick<HeldLease, 'ref' | 'lane'>, now: number): void {
    if (lane === null) return
    const lanes = this.#lanes.get(ref.kind) ?? new Map<string, number>()
    this.#lanes.set(ref.kind, lanes)
    remember(lanes, lane, now, remembered)
  }

  /** Monotonic milliseconds by lane: whose was longest ago comes first. */
  of(kind: string): ReadonlyMap<string, number> {
    return this.#lanes.get(kind) ?? new Map()
  }
}
