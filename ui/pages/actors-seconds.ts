/** Redraws its host every second while the host counts something down, and not otherwise. */
import type { LitElement, ReactiveController } from 'lit'

export class Seconds implements ReactiveController {
  readonly #host: LitElement
  readonly #needed: () => boolean
  #timer: ReturnType<typeof setInterval> | undefined

  /** `needed` is asked after every update. */
  constructor(host: LitElement, needed: () => boolean) {
    this.#host = host
    this.#needed = needed
    host.addController(this)
  }

  hostUpdated(): void {
    // An update that was still pending when its host was removed counts nothing.
    if (!this.#host.isConnected || !this.#needed()) return this.hostDisconnected()
    this.#timer ??= setInterval(() => this.#host.requestUpdate(), 1000)
  }

  hostDisconnected(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
