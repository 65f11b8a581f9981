/**
 * How many may wait for a connection, and how long. Slonik's pool lets everybody wait for ever: with a database that takes
 * two seconds a statement, a thousand requests would wait for minutes and be answered long after anybody asks. Here who has
 * waited too long, or comes when too many wait, is told so at once. Does not own connections.
 */

/** Every connection is in use, and will be for too long. An outage: nothing was asked of the database. */
export class DatabaseBusy extends Error {
  override readonly name = 'DatabaseBusy'
  constructor() {
    super('The database does not keep up: every connection is in use.')
  }
}

/** Who waits longer is told so: a caller hears 503 while it still listens, a loop tries again. */
export const admissionWaitMs = 5_000
/** Two thousand pages that look again at once, each with two questions, wait and are served; a pile is not. */
export const admissionQueue = 5_000

export interface AdmissionLimits {
  /** Pieces of work at once. */
  readonly places: number
  readonly waitMs: number
  /** Who waits; one more is turned away. */
  readonly queue: number
}

export class Admission {
  readonly #limits: AdmissionLimits
  /** First come, first served: a set keeps its order, and a place in it can be given up at once. */
  readonly #waiting = new Set<() => void>()
  #taken = 0

  constructor(limits: AdmissionLimits) {
    this.#limits = limits
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Runs `work` when there is a place for it. Rejects with DatabaseBusy, and then `work` was not begun. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#taken < this.#limits.places) this.#taken += 1
    else await this.#turn()
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  /** A place is handed over, never freed and fought for. */
  #leave(): void {
    const [next] = this.#waiting
    if (next) next()
    else this.#taken -= 1
  }

  #turn(): Promise<void> {
    if (this.#waiting.size >= this.#limits.queue) return Promise.reject(new DatabaseBusy())
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(enter)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(enter)
        reject(new DatabaseBusy())
      }, this.#limits.waitMs)
      this.#waiting.add(enter)
    })
  }
}

/** What each takes one connection of a pool, and gives it back when it settles. */
const methods: ReadonlySet<string | symbol> = new Set([
  'any',
  'anyFirst',
  'connect',
  'exists',
  'many',
  'manyFirst',
  'maybeOne',
  'maybeOneFirst',
  'one',
  'oneFirst',
  'query',
  'record',
  'stream',
  'transaction',
])

/** The pool, with a door. Everything that needs no connection passes. */
export function admitted<Pool extends object>(pool: Pool, admission: Admission): Pool {
  const doors = new Map<string | symbol, unknown>()
  return new Proxy(pool, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function' || !methods.has(name)) return method
      const door =
        doors.get(name) ??
        ((...args: unknown[]) => admission.run(() => Promise.resolve<unknown>(Reflect.apply(method, target, args))))
      doors.set(name, door)
      return door
    },
  })
}
