/**
 * Loads an element's code when it is first to be shown. The host draws the element only once it is defined: one upgraded
 * later would be connected before its properties are, and a view without its `app` makes one of its own. What could not be
 * loaded is not asked for again: a browser remembers a module that failed for as long as its page is open.
 */
import type { ReactiveController, ReactiveControllerHost } from 'lit'

export class Lazy implements ReactiveController {
  readonly #host: ReactiveControllerHost
  readonly #asked = new Set<string>()
  readonly #failed = new Set<string>()

  constructor(host: ReactiveControllerHost) {
    this.#host = host
    host.addController(this)
  }

  hostConnected(): void {}

  /** Code could not be loaded: the console was updated behind an open page, or nobody answered. Only a reload mends it. */
  failed(name: string): boolean {
    return this.#failed.has(name) && !customElements.get(name)
  }

  /** Whether `name` can be drawn; if not, `load`, which defines it, is called once and the host drawn again. */
  ready(name: string, load: () => Promise<unknown>): boolean {
    if (customElements.get(name)) return true
    if (!this.#asked.has(name)) {
      this.#asked.add(name)
      load()
        .catch(() => this.#failed.add(name))
        .finally(() => this.#host.requestUpdate())
    }
    return false
  }
}
