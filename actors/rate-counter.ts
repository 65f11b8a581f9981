/**
 * Rate limits, counted for many callers at once (gathering.ts), whatever the bucket, so that a flood costs few statements at a
 * time; and once a window is full its bucket costs none until it is over. Owns the limits' numbers; does not own the windows
 * (persistence/rate-limits.ts) or what is answered beyond them (http/). Who comes by a session is counted by the statement that
 * says who they are (sessions.ts), and who is presumed by the commit that asks (persistence/presumptions.ts).
 */
import type { Permission } from '../domain/access.ts'
import type { Database } from '../persistence/database.ts'
import { bucketOf, takePlaces, type Places, type Wish } from '../persistence/rate-limits.ts'
import { Gathering, gatheringLimits, type Answers, type Asked } from './gathering.ts'

/** Places in each window of a minute [specification: "Limits"]. The first three are each person's. */
export const rateLimits = {
  read: 900,
  operate: 120,
  administer: 60,
  /** Of all callers together, as are `callback` and `push`. */
  login: 240,
  callback: 240,
  push: 1200,
  registration: 120,
}
export type RateLimits = Readonly<typeof rateLimits>

type Bucket = Omit<Wish, 'wanted'>

export class RateCounter {
  readonly limits: RateLimits
  readonly #db: Database
  readonly #monotonic: () => number
  readonly #gathering: Gathering<Bucket, boolean>
  /** Monotonic milliseconds until which a bucket has no place for anybody. */
  readonly #fullUntil = new Map<string, number>()

  constructor(db: Database, limits: RateLimits, monotonic: () => number) {
    this.#db = db
    this.limits = limits
    this.#monotonic = monotonic
    this.#gathering = new Gathering((asked) => this.#count(asked), gatheringLimits(db))
  }

  /**
   * Whether there was a place: of everybody's, or of whose it is. Rejects, with all who wait, when the database is away.
   */
  take(limit: keyof RateLimits, whose?: string): Promise<boolean> {
    const bucket = whose === undefined ? limit : bucketOf(limit, whose)
    if (this.#isFull(bucket)) return Promise.resolve(false)
    return this.#gathering.ask(bucket, { bucket, limit: this.limits[limit] })
  }

  /** Where a person's caller is counted, by the commit that acts for them; null: there is no place, as far as is known here. */
  bucketFor(limit: Permission, person: string): string | null {
    const bucket = bucketOf(limit, person)
    return this.#isFull(bucket) ? null : bucket
  }

  #isFull(bucket: string): boolean {
    const until = this.#fullUntil.get(bucket)
    if (until === undefined) return false
    if (this.#monotonic() < until) return true
    this.#fullUntil.delete(bucket)
    return false
  }

  async #count(asked: readonly Asked<Bucket>[]): Promise<readonly Answers<boolean>[]> {
    const wishes = asked.map(({ question, callers }) => ({ ...question, wanted: callers }))
    const since = this.#monotonic()
    const places = await takePlaces(this.#db.direct, wishes)
    this.#remember(wishes, places, since)
    return places.map(
      ({ granted }) =>
        (caller) =>
          caller < granted,
    )
  }

  /** Which buckets are full; those of people who never come back are dropped when the next one fills. */
  #remember(wishes: readonly Wish[], places: readonly Places[], asked: number): void {
    const full = wishes.flatMap(({ bucket, wanted }, i) => {
      const place = places[i]
      return place && place.granted < wanted ? [[bucket, asked + place.leftMs] as const] : []
    })
    if (full.length === 0) return
    for (const [bucket, until] of this.#fullUntil) if (until <= asked) this.#fullUntil.delete(bucket)
    for (const [bucket, until] of full) this.#fullUntil.set(bucket, until)
  }
}
