/**
 * Leases this process holds: renewed three times a lease, and distrusted before they run out. The trust window is measured
 * on the monotonic clock from before the commit or the renewal that granted it: the database may have granted it then, but
 * not earlier, so a slow answer never stretches it. A row that somebody has locked is asked for again each turn; only the trust
 * window ends it. On the embedded database no clock ends work that is under way: nobody else can take it over while this process lives
 * and has the directory's lock (claimActors, persistence/leases.ts). Does not do work and does not claim.
 */
import type { Database } from '../../persistence/database.ts'
import { actorKey, type ActorRef } from '../../persistence/actors.ts'
import { renewLeases } from '../../persistence/leases.ts'
import { isOutage } from '../../persistence/outage.ts'
import { Bell } from './bell.ts'
import { PlaceTime } from './place-time.ts'
import { PlacesByKind, type Places } from './places.ts'

/** The lease went to somebody else, or can no longer be trusted: whatever the holder still has to say is discarded. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
  constructor(ref: ActorRef) {
    super(`The lease of ${actorKey(ref)} is no longer ours.`)
  }
}

/** Work that has done nothing yet and cannot begin now: it goes back, and comes again after a pause. */
export class PutOff extends Error {
  override readonly name = 'PutOff'
  readonly pauseMs: number
  constructor(ref: ActorRef, pauseMs: number) {
    super(`${actorKey(ref)} is put off.`)
    this.pauseMs = pauseMs
  }
}

export interface HeldLease {
  readonly ref: ActorRef
  readonly token: string
  readonly work: string
  /** Whose queue it is in: an agent, for work that talks to one. */
  readonly lane: string | null
  /** It failed or was slow last (Kind.doubt). */
  readonly isDoubted: boolean
  readonly leaseMs: number
  readonly abort: AbortController
  /** Ends the work's turn: others wait for its place. */
  readonly turn: AbortController
  /** Somebody else may have ended what the work is at. */
  readonly news: Bell
  /** Monotonic milliseconds: when the work began, and when it last had something to commit. */
  readonly since: number
  busyAt: number
  /** Monotonic milliseconds before which the last claim or renewal cannot have been granted. */
  trustedFrom: number
  /** Somebody had its row locked when its renewal was asked for last. */
  isLocked: boolean
  /** It is being given back, and so not renewed: where only that fails, it runs out by its own time. */
  isGoingBack: boolean
}

/** Work stops this long before its lease can be taken over, so that two holders never overlap. */
const trustMarginMs = 1000
/** How often leases are looked at: most of the margin is left for the work to stop in. */
const lookMs = 250

/** Whether nobody else can have it by any clock: before what is new, and where something is tried again. */
export const isTrusted = (lease: HeldLease, now: number): boolean =>
  !lease.abort.signal.aborted && now - lease.trustedFrom < lease.leaseMs - trustMarginMs

interface LeasesOptions {
  readonly turnTaking?: ReadonlySet<string>
  readonly isAlone?: boolean
}

export class Leases {
  /** By token; work that follows under the same token takes the place of the work before it. */
  readonly #held = new Map<string, HeldLease>()
  readonly #taken = new PlacesByKind()
  readonly placeTime = new PlaceTime()
  readonly #turnTaking: ReadonlySet<string>
  readonly #isAlone: boolean

  /**
   * `turnTaking`: kinds whose lanes take turns, and how long which had places is counted of these. `isAlone`: no other process can be
   * alive on this database.
   */
  constructor({ turnTaking = new Set(), isAlone = false }: LeasesOptions = {}) {
    this.#turnTaking = turnTaking
    this.#isAlone = isAlone
  }

  /** Whether nobody else can have it, at `now` in monotonic milliseconds. */
  isOurs(lease: HeldLease, now: number): boolean {
    return this.#isAlone ? !lease.abort.signal.aborted : isTrusted(lease, now)
  }

  get size(): number {
    return this.#held.size
  }

  list(): readonly HeldLease[] {
    return [...this.#held.values()]
  }

  of(kind: string): readonly HeldLease[] {
    return this.list().filter(({ ref }) => ref.kind === kind)
  }

  /** Places that a kind has taken. */
  places(kind: string): Pick<Places, 'all' | 'doubted' | 'lanes'> {
    return this.#taken.of(kind)
  }

  hold(lease: Omit<HeldLease, 'abort' | 'turn' | 'news' | 'since' | 'busyAt' | 'isLocked' | 'isGoingBack'>): HeldLease {
    const since = lease.trustedFrom
    const held: HeldLease = {
      ...lease,
      abort: new AbortController(),
      turn: new AbortController(),
      news: new Bell(),
      since,
      busyAt: since,
      isLocked: false,
      isGoingBack: false,
    }
    if (this.#turnTaking.has(lease.ref.kind)) this.placeTime.begin(held, this.of(lease.ref.kind), since)
    const before = this.#held.get(lease.token)
    if (before) this.#count(before, -1)
    this.#held.set(lease.token, held)
    this.#count(held, 1)
    return held
  }

  drop(lease: HeldLease, now: number): void {
    if (this.#held.get(lease.token) === lease) {
      this.#held.delete(lease.token)
      this.#count(lease, -1)
    }
    this.placeTime.end(lease, now)
  }

  #count(lease: HeldLease, by: 1 | -1): void {
    this.#taken.of(lease.ref.kind).add(lease, by)
  }

  /** One turn: renews what is due, and ends what went to somebody else. Call at least every second. */
  async renewDue(db: Database, now: () => number): Promise<void> {
    const started = now()
    const due = this.list().filter((lease) => !lease.isGoingBack && started - lease.trustedFrom >= lease.leaseMs / 3)
    // Beside the pool: whoever reads for long is not to take what is at work its lease.
    for (const leases of Map.groupBy(due, (lease) => lease.leaseMs).values()) await this.renew(leases, db.direct, now)
  }

  /** Renews leases of one length, and ends those that went to somebody else. One statement; rejects when the database fails. */
  async renew(leases: readonly HeldLease[], db: Parameters<typeof renewLeases>[0], now: () => number): Promise<void> {
    const [first] = leases
    if (!first) return
    const started = now()
    const renewals = await renewLeases(db, leases, first.leaseMs)
    for (const lease of leases) {
      const renewal = renewals.get(lease.token)
      lease.isLocked = renewal === 'locked'
      if (renewal === 'renewed') lease.trustedFrom = started
      // A lease that finished meanwhile was dropped; one that is still held here went to somebody else.
      else if (renewal === undefined && this.#held.get(lease.token) === lease)
        lease.abort.abort(new LeaseLost(lease.ref))
    }
  }

  /**
   * A lease whose row was locked when it was asked for: between two commits of its own work nobody here has it locked. Work that commits
   * all the time, as a busy stream on a slow disk does, might otherwise have it locked at each turn of the renewals.
   */
  async renewLocked(lease: HeldLease, db: Database, now: () => number): Promise<void> {
    if (!lease.isLocked) return
    try {
      // By the pool, for any number may ask at once: the next turn does so as well.
      await this.renew([lease], db.pool, now)
    } catch (error) {
      // The next turn meets it, too.
      if (!isOutage(error)) throw error
    }
  }

  /**
   * Ends what can no longer be trusted, until the returned function is called. Beside the renewals, since one may hang for longer
   * than a lease lasts when the line has gone silent, and none is asked for while their loop waits for a database that is away.
   */
  watch(now: () => number): () => void {
    let lookedAt = now()
    let stoodStill = false
    const look = (): void => {
      const from = lookedAt
      lookedAt = now()
      // A process that stood still hears first what came meanwhile, and asks once: the lease may be its own all the same.
      stoodStill = !stoodStill && lookedAt - from >= 2 * lookMs
      if (!stoodStill) this.#distrust(lookedAt)
    }
    const timer = setInterval(look, lookMs).unref()
    return () => clearInterval(timer)
  }

  #distrust(now: number): void {
    for (const lease of this.#held.values()) {
      if (!lease.abort.signal.aborted && !this.isOurs(lease, now)) lease.abort.abort(new LeaseLost(lease.ref))
    }
  }
}
