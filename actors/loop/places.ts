/** How many places of a kind are taken, in all, by lane, and by what failed or was slow last: counted as they come and go, for each command asks. */
import type { Seat } from './step.ts'

export class Places {
  #all = 0
  #doubted = 0
  readonly #lanes = new Map<string, number>()

  get all(): number {
    return this.#all
  }

  get doubted(): number {
    return this.#doubted
  }

  /** Of those that are in a lane; a lane that has none is not in it. */
  get lanes(): ReadonlyMap<string, number> {
    return this.#lanes
  }

  /** `by`: how many more, or fewer. */
  add({ lane, isDoubted }: Omit<Seat, 'kind'>, by: number): void {
    this.#all += by
    if (isDoubted) this.#doubted += by
    if (lane === null) return
    const left = (this.#lanes.get(lane) ?? 0) + by
    if (left > 0) this.#lanes.set(lane, left)
    else this.#lanes.delete(lane)
  }
}

export class PlacesByKind {
  readonly #kinds = new Map<string, Places>()

  of(kind: string): Places {
    const places = this.#kinds.get(kind) ?? new Places()
    this.#kinds.set(kind, places)
    return places
  }
}
