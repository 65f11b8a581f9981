/** Redraws its host every 15 seconds, so that "3m" stays true. One timer for the page, none while nobody needs it. */
import type { ReactiveController, ReactiveControllerHost } from 'lit'

const tickMs = 15_000
const hosts = new Set<ReactiveControllerHost>()
let timer: ReturnType<typeof setInterval> | undefined

function tick(): void {
  if (document.visibilityState === 'visible') for (const host of hosts) host.requestUpdate()
}

export class Clock implements ReactiveController {
  readonly #host: ReactiveControllerHost
  constructor(host: ReactiveControllerHost) {
    this.#host = host
    host.addController(this)
  }

  hostConnected(): void {
    hosts.add(this.#host)
    timer ??= setInterval(tick, tickMs)
  }

  hostDisconnected(): void {
    hosts.delete(this.#host)
    if (hosts.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}
