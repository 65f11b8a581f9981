/**
 * Asks again for what stands beside the main thing of a page, gently: 2 s after a change at most, because each of these answers
 * costs the server several queries and a page may spend 900 requests a minute; and now and then without one, because what is stuck
 * commits nothing, so the signal of changes never comes. Not at all while nobody looks.
 */
import type { ReactiveController, ReactiveControllerHost } from 'lit'
import type { App } from '../app.ts'

const gapMs = 2_000
const usualMs = 5_000

export class Again implements ReactiveController {
  readonly #app: () => App | undefined
  readonly #ask: () => void
  readonly #everyMs: number
  #heard: App | undefined
  #stopHearing: (() => void) | undefined
  #soon: ReturnType<typeof setTimeout> | undefined
  #regular: ReturnType<typeof setInterval> | undefined
  #askedMs = -Infinity

  /**
   * `ask` refreshes questions that are `steady`: what is `live` follows every change by itself. `everyMs`: without a change; what is
   * told only after a minute need not be looked for each few seconds.
   */
  constructor(host: ReactiveControllerHost, app: () => App | undefined, ask: () => void, everyMs = usualMs) {
    this.#app = app
    this.#ask = ask
    this.#everyMs = everyMs
    host.addController(this)
  }

  hostConnected(): void {
    this.#regular ??= setInterval(() => this.#now(), this.#everyMs)
  }

  hostUpdated(): void {
    const app = this.#app()
    // An update that was still pending when its host was removed hears of nothing.
    if (app === this.#heard || this.#regular === undefined) return
    this.#stopHearing?.()
    this.#heard = app
    this.#stopHearing = app?.live.onChange(() => this.#afterGap())
  }

  hostDisconnected(): void {
    clearInterval(this.#regular)
    clearTimeout(this.#soon)
    this.#stopHearing?.()
    this.#regular = undefined
    this.#soon = undefined
    this.#stopHearing = undefined
    this.#heard = undefined
  }

  #afterGap(): void {
    const waitMs = Math.max(0, this.#askedMs + gapMs - performance.now())
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      this.#now()
    }, waitMs)
  }

  #now(): void {
    if (document.visibilityState !== 'visible') return
    this.#askedMs = performance.now()
    this.#ask()
  }
}
