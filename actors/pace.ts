/**
 * Whether something large that is not whole yet comes at a pace with which it comes to its end, by the least of large answers
 * (large-answers.ts): what only drips is no work. Does not read or wait.
 */
import { leastBytesPerMs } from './large-answers.ts'

/** Judged by so much of it: a few packets say nothing of a pace, and a mebibyte a second is told four times in it. */
const measureBytes = 256 * 1024

export class Pace {
  readonly #monotonic: () => number
  #sinceMs: number
  #bytes = 0

  /** `monotonic`: milliseconds. */
  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic
    this.#sinceMs = monotonic()
  }

  /** So much more has come. True each time that a measure of it is full, and was in time. */
  add(bytes: number): boolean {
    this.#bytes += bytes
    if (this.#bytes < measureBytes) return false
    const tookMs = this.#monotonic() - this.#sinceMs
    const isInTime = this.#bytes >= tookMs * leastBytesPerMs
    this.#sinceMs += tookMs
    this.#bytes = 0
    return isInTime
  }
}
