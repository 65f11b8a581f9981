/**
 * Asks again every few seconds while its host is on a page that somebody looks at. Only for answers about what is stuck: what
 * stands still commits nothing, so the signal of changes never comes. Everything else lives by that signal alone.
 */
import type { ReactiveController, ReactiveControllerHost } from 'lit'

const everyMs = 5_000

export class Again implements ReactiveController {
  readonly #ask: () => void
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(host: ReactiveControllerHost, ask: () => void) {
    this.#ask = ask
    host.addController(this)
  }

  hostConnected(): void {
    this.#timer ??= setInterval(() => {
      if (document.visibilityState === 'visible') this.#ask()
    }, everyMs)
  }

  hostDisconnected(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
