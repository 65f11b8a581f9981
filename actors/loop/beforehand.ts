/**
 * The wait that work may do before it has done anything. While it lasts the row says that the work has not begun, so that nobody has to
 * doubt it when this process ends; a drain ends the wait at once, as the loss of the lease does. That it begins after all is committed
 * before it does. Does not know what is waited for (large-sends.ts).
 */
import type { Database } from '../../persistence/database.ts'
import { markBegun, markUnbegun } from '../../persistence/leases.ts'
import { isOutage } from '../../persistence/outage.ts'
import { LeaseLost, type HeldLease } from './lease.ts'
import { unlessLost } from './outlast.ts'

export class Beforehand {
  readonly #db: Database
  readonly #drain = new AbortController()

  constructor(db: Database) {
    this.#db = db
  }

  /** Nobody waits any more, now or later. */
  end(): void {
    this.#drain.abort()
  }

  /** Rejects with LeaseLost where the work is not to begin: it is to be given back then. */
  async wait(lease: HeldLease, isHeld: () => boolean, waiting: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { ref, abort } = lease
    const signal = AbortSignal.any([abort.signal, this.#drain.signal])
    // Asked once: what was not acknowledged may still be on its way, and would undo what says that it has begun. Its lease is given up then.
    const isOurs = await markUnbegun(this.#db.pool, lease).catch((error: unknown) => {
      if (isOutage(error)) return false
      throw error
    })
    if (!isOurs) throw new LeaseLost(ref)
    await waiting(signal)
    if (signal.aborted) throw new LeaseLost(ref)
    const begins = await unlessLost(ref, { signal, isHeld }, () =>
      this.#db.pool.transaction((tx) => markBegun(tx, lease)),
    )
    if (!begins) throw new LeaseLost(ref)
  }
}
