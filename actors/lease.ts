/**
 * Leases this process holds: renewed three times a lease, and distrusted before they run out. The trust window is measured
 * on the monotonic clock from when the renewal *started*: the database may have granted it then, but not before, so a
 * slow answer never stretches it. Does not do work and does not claim.
 */
import type { Database } from '../persistence/database.ts'
import { renewLeases, type ActorRef } from '../persistence/actors.ts'

/** The lease went to somebody else: whatever the holder still has to say is discarded. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
  constructor(ref: ActorRef) {
    super(`The lease of ${ref.kind}/${ref.id} is no longer ours.`)
  }
}

export interface HeldLease {
  readonly ref: ActorRef
  readonly token: string
  readonly work: string
  readonly leaseMs: number
  readonly abort: AbortController
  /** Monotonic milliseconds at which the last successful claim or renewal began. */
  trustedFrom: number
}

/** Work stops this long before its lease can be taken over, so that two holders never overlap. */
const trustMarginMs = 1000

export class Leases {
  readonly #held = new Map<string, HeldLease>()

  get size(): number {
    return this.#held.size
  }

  list(): readonly HeldLease[] {
    return [...this.#held.values()]
  }

  count(kind: string): number {
    let n = 0
    for (const lease of this.#held.values()) if (lease.ref.kind === kind) n++
    return n
  }

  hold(lease: Omit<HeldLease, 'abort'>): HeldLease {
    const held: HeldLease = { ...lease, abort: new AbortController() }
    this.#held.set(lease.token, held)
    return held
  }

  drop(token: string): void {
    this.#held.delete(token)
  }

  /** One turn: renews what is due, aborts what can no longer be trusted. Call at least every second. */
  async renewDue(db: Database, now: () => number): Promise<void> {
    const started = now()
    const due = new Map<number, HeldLease[]>()
    for (const lease of this.#held.values()) {
      if (started - lease.trustedFrom >= lease.leaseMs / 3) {
        const same = due.get(lease.leaseMs)
        if (same) same.push(lease)
        else due.set(lease.leaseMs, [lease])
      }
    }
    try {
      for (const [leaseMs, leases] of due) {
        const renewed = await renewLeases(db.pool, leases, leaseMs)
        for (const lease of leases) {
          if (renewed.has(lease.token)) lease.trustedFrom = started
          // A lease that finished meanwhile was dropped; one that is still held here went to somebody else.
          else if (this.#held.has(lease.token)) lease.abort.abort(new LeaseLost(lease.ref))
        }
      }
    } finally {
      this.#distrust(now())
    }
  }

  #distrust(now: number): void {
    for (const lease of this.#held.values()) {
      if (now - lease.trustedFrom >= lease.leaseMs - trustMarginMs) lease.abort.abort(new LeaseLost(lease.ref))
    }
  }
}
