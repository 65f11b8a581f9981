/**
 * How long a thread may take for one task, counted from when it begins: who waits behind a hostile frame, or for the thread that
 * takes a dead one's place, has done nothing wrong. A thread that spins can tell nobody, so it says when it begins, in memory that
 * both share. Owns that word and the signal; ends no thread itself (pool.ts).
 */

/** Nanoseconds of this process' monotonic clock, which all its threads read alike; 0 until a thread has begun. */
export type Began = BigInt64Array<SharedArrayBuffer>

/** The thread's first word on a task. */
export function begin(began: Began): void {
  Atomics.store(began, 0, process.hrtime.bigint())
}

/** `running`: from its beginning; `waiting`: until then, as no wait is without a bound. In ms. */
export interface TaskTimes {
  readonly running: number
  readonly waiting: number
}

export class TaskDeadline {
  readonly began: Began = new BigInt64Array(new SharedArrayBuffer(8))
  readonly #times: TaskTimes
  readonly #asked = process.hrtime.bigint()
  readonly #over = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #hasWaited = false

  constructor(times: TaskTimes) {
    this.#times = times
    this.#look()
  }

  /** Aborts once it has taken too long; its reason is a TimeoutError that says which of the two times is over. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  /** It ended, and no thread had begun it: that says nothing of what was to be read. */
  get hasWaitedInVain(): boolean {
    return this.#hasWaited
  }

  /** It has been answered. */
  end(): void {
    clearTimeout(this.#timer)
  }

  #look(): void {
    const { running, waiting } = this.#times
    const began = Atomics.load(this.began, 0)
    const left = began === 0n ? waiting - since(this.#asked) : running - since(began)
    if (left <= 0) {
      this.#hasWaited = began === 0n
      const why = this.#hasWaited ? `No thread was free for ${waiting} ms.` : `The thread took too long: ${running} ms.`
      this.#over.abort(new DOMException(why, 'TimeoutError'))
      return
    }
    // Nobody tells when it begins: until then it is looked at as often as would be the earliest end.
    this.#timer = setTimeout(() => this.#look(), Math.min(left, running)).unref()
  }
}

const since = (then: bigint): number => Number(process.hrtime.bigint() - then) / 1e6
