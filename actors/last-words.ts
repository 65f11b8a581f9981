/**
 * A task that ended in another's sight while its stream is open: a push or a look told of the end before the stream has told its last
 * chunks, which an agent may never say again. The stream is read on, for as long as it brings something, and hung up on when it does not.
 * Owns when; does not read, and does not know how the end was heard of.
 */

/** Waited for an agent's next word; what was said before the end is on its way already. */
const quietMs = 3_000
/** Of all such waits together: an agent that closes no stream of a task that is over, and goes on to say something, keeps no place. */
const longestMs = 30_000

export class LastWords {
  readonly #hangUp: () => void
  #hasBegun = false
  /** Monotonic milliseconds since when the agent's next word is waited for; null: it is not. */
  #since: number | null = null
  #leftMs = longestMs
  #timer: NodeJS.Timeout | undefined
  #turn: NodeJS.Immediate | undefined
  #haste: NodeJS.Timeout | undefined
  #hasHungUp = false

  constructor(hangUp: () => void) {
    this.#hangUp = () => {
      this.#hasHungUp = true
      hangUp()
    }
  }

  /** The stream did not end by itself. */
  get hasHungUp(): boolean {
    return this.#hasHungUp
  }

  /** The task is over. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    if (this.#since !== null) this.listen()
  }

  /** From now on the agent's next word is waited for. */
  listen(): void {
    this.#since = performance.now()
    if (!this.#hasBegun) return
    // A process that stood still hears first what came meanwhile: timers ring before sockets are read.
    const ring = (): void => void (this.#turn = setImmediate(this.#hangUp))
    this.#timer = setTimeout(ring, Math.min(quietMs, this.#leftMs))
  }

  /** It came: how long we take for it is not the agent's silence. */
  hear(): void {
    if (this.#hasBegun && this.#since !== null) this.#leftMs -= Math.min(quietMs, performance.now() - this.#since)
    this.#since = null
    this.#quieten()
  }

  /** Its place is wanted, or its agent is another by now: what is on its way has a moment to come, whatever comes. */
  hurry(): void {
    this.#haste ??= setTimeout(this.#hangUp, quietMs)
  }

  end(): void {
    this.#quieten()
    clearTimeout(this.#haste)
  }

  #quieten(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#turn)
  }
}
