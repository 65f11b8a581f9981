/** Redraws its host every second while the host counts something down, and not otherwise. */
import type { ReactiveController, ReactiveControllerHost } from 'lit'

export class Seconds implements ReactiveController {
  readonly #host: ReactiveControllerHost
  readonly #needed: () => boolean
  #timer: ReturnType<typeof setInterval> | undefined

  /** `needed` is asked after every update. */
  constructor(host: ReactiveControllerHost, needed: () => boolean) {
    this.#host = host
    this.#needed = needed
    host.addController(this)
  }

  hostUpdated(): void {
    if (!this.#needed()) return this.hostDisconnected()
    this.#timer ??= setInterval(() => this.#host.requestUpdate(), 1000)
  }

  hostDisconnected(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
