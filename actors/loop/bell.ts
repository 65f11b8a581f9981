/** A wait that can be cut short: rung before the wait begins, it ends at once, so no wake-up is ever lost. */
export class Bell {
  #rung = false
  #wake: (() => void) | null = null

  ring(): void {
    this.#rung = true
    this.#wake?.()
  }

  /** Waits until rung, for `ms` at most, or until the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      const wake = (): void => resolve()
      this.#wake = wake
      signal.addEventListener('abort', wake, { once: true })
      await promise
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      this.#wake = null
    }
    this.#rung = false
  }
}

/** Rejects with the signal's reason when it aborts; for racing with what does not hear signals. */
export const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const refuse = (): void => reject(signal.reason)
    if (signal.aborted) refuse()
    else signal.addEventListener('abort', refuse, { once: true })
  })
