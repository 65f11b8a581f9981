/**
 * How often a page may ask. A person may make 900 reads a minute with all the pages that they have open: one page that hears of many
 * changes asks for each answer more seldom the more it asked already, one that nobody sees hardly at all, and one that was told to wait
 * does. Owns the count; what is asked again is its callers'.
 */
const usualGapMs = 400
const minuteMs = 60_000
/** Reads of the last minute that slow nothing down: a page of seven answers that all change at once may ask for each some eleven times. */
const freeReads = 80
const moreGapMsPerRead = 80
const longestGapMs = 10_000
const longestHoldMs = 60_000

export class ReadPace {
  readonly #now: () => number
  readonly #isHidden: () => boolean
  #reads: number[] = []
  #heldUntilMs = -Infinity

  constructor(now = () => performance.now(), isHidden = () => document.visibilityState === 'hidden') {
    this.#now = now
    this.#isHidden = isHidden
  }

  noteRead(): void {
    this.#reads = [...this.#lately, this.#now()]
  }

  /** The console refused for too much, and said for how long: until then whatever is asked only lasts longer. */
  hold(ms: number): void {
    this.#heldUntilMs = this.#now() + Math.min(longestHoldMs, ms)
  }

  /** From now until what was asked for last at an instant may be asked for because of a change. */
  untilDueMs(askedAtMs: number): number {
    return this.#from(askedAtMs, this.#gapMs)
  }

  /** The same where a person, or a page's own rhythm, asks. */
  untilFreeMs(askedAtMs: number): number {
    return this.#from(askedAtMs, usualGapMs)
  }

  get isHeld(): boolean {
    return this.#heldUntilMs > this.#now()
  }

  /** When it was read in the last minute. */
  get #lately(): number[] {
    const sinceMs = this.#now() - minuteMs
    return this.#reads.filter((at) => at > sinceMs)
  }

  get #gapMs(): number {
    if (this.#isHidden()) return longestGapMs
    const beyond = this.#lately.length - freeReads
    return Math.min(longestGapMs, usualGapMs + Math.max(0, beyond) * moreGapMsPerRead)
  }

  #from(askedAtMs: number, gapMs: number): number {
    return Math.max(0, askedAtMs + gapMs - this.#now(), this.#heldUntilMs - this.#now())
  }
}
