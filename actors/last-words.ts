/**
 * A task that ended in another's sight while its stream is open: a push or a look told of the end before the stream has told its last
 * chunks, which an agent may never say again. The stream is read on, for as long as it brings something, and hung up on when it does not.
 * Owns when; does not read, and does not know how the end was heard of.
 */

/** Waited for an agent's next word; what was said before the end is on its way already. */
const quietMs = 3_000
/** From the end on. An agent that closes no stream of a task that is over keeps its place no longer. */
const longestMs = 30_000

export class LastWords {
  readonly #hangUp: () => void
  #hasBegun = false
  #isListening = false
  #quiet: NodeJS.Timeout | undefined
  #longest: NodeJS.Timeout | undefined

  constructor(hangUp: () => void) {
    this.#hangUp = hangUp
  }

  /** The task is over; whatever ends the stream from here on is no failure. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#longest = setTimeout(this.#hangUp, longestMs)
    if (this.#isListening) this.listen()
  }

  /** From now on the agent's next word is waited for. */
  listen(): void {
    this.#isListening = true
    if (this.#hasBegun) this.#quiet = setTimeout(this.#hangUp, quietMs)
  }

  /** It came: how long we take for it is not the agent's silence. */
  hear(): void {
    this.#isListening = false
    clearTimeout(this.#quiet)
  }

  end(): void {
    clearTimeout(this.#quiet)
    clearTimeout(this.#longest)
  }
}
