/**
 * The pages of one list of actors, read one after the other while its actors move: what of them is shown, where, and what comes next.
 * The first page is kept current, the others are as they were read. Owns when one is read, not how; the order of rows is actors-order.ts.
 */
import type { ActorPage } from '../../domain/actor.ts'
import type { ActorSummary } from '../../domain/chart.ts'
import { arrange, type Arranged, followedBy, keyOf, pushedOut } from './actors-order.ts'

export class ActorPages {
  #kept: readonly string[] | null = null
  #first: ActorPage | undefined
  /** Shown, and on a later page by now: its rows stay as they were. */
  #pushedOut: readonly ActorSummary[] = []
  /** Null before any was asked for. */
  #older: ActorPage | null = null
  /** Made anew with every list, so that a late page of the one before is dropped. */
  #reading = { ended: new AbortController(), isUnderWay: false }

  /** The rows of what is known with this as the first page, in the places that they have. */
  shown(first: ActorPage): Arranged {
    if (first !== this.#first) {
      const kept = new Set(this.#kept)
      const left = pushedOut([...(this.#first?.actors ?? []), ...this.#pushedOut], first)
      this.#pushedOut = left.filter((actor) => kept.has(keyOf(actor)))
      this.#first = first
    }
    const arranged = arrange(this.#kept, [...first.actors, ...(this.#older?.actors ?? []), ...this.#pushedOut])
    this.#kept = arranged.rows.map(keyOf)
    return arranged
  }

  /** Where the next page begins; null where there is none. */
  get next(): string | null {
    return this.#older ? this.#older.next : (this.#first?.next ?? null)
  }

  /** Reads the next page; what is asked for while one is being read is that one. `dropped`: nobody waits for it any more. */
  async more(
    read: (cursor: string, signal: AbortSignal) => Promise<ActorPage>,
  ): Promise<'read' | 'dropped' | { readonly error: unknown }> {
    const reading = this.#reading
    const { next } = this
    if (next === null || reading.isUnderWay) return 'dropped'
    reading.isUnderWay = true
    try {
      const page = await read(next, reading.ended.signal)
      if (reading.ended.signal.aborted) return 'dropped'
      this.#kept = followedBy(this.#kept ?? [], page.actors)
      this.#older = { actors: [...(this.#older?.actors ?? []), ...page.actors], next: page.next }
      return 'read'
    } catch (error) {
      return reading.ended.signal.aborted ? 'dropped' : { error }
    } finally {
      reading.isUnderWay = false
    }
  }

  /** Lays out anew, from the first page alone: between it and pages that were read before may be rows that neither has. */
  restart(): void {
    this.#reading.ended.abort()
    this.#reading = { ended: new AbortController(), isUnderWay: false }
    this.#kept = null
    this.#first = undefined
    this.#pushedOut = []
    this.#older = null
  }
}
