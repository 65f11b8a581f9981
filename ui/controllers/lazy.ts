/**
 * Loads an element's code when it is first to be shown. The host draws the element only once it is defined: one upgraded
 * later would be connected before its properties are, and a view without its `app` makes one of its own.
 */
import type { ReactiveController, ReactiveControllerHost } from 'lit'

export class Lazy implements ReactiveController {
  readonly #host: ReactiveControllerHost
  readonly #asked = new Set<string>()
  #failed = false

  constructor(host: ReactiveControllerHost) {
    this.#host = host
    host.addController(this)
  }

  hostConnected(): void {}

  /** Code could not be fetched: the console was updated behind an open page, or nobody answers. */
  get failed(): boolean {
    return this.#failed
  }

  /** Whether `name` can be drawn; if not, `load`, which defines it, is called once and the host drawn again. */
  ready(name: string, load: () => Promise<unknown>): boolean {
    if (customElements.get(name)) return true
    if (!this.#asked.has(name)) {
      this.#asked.add(name)
      load().then(
        () => this.#host.requestUpdate(),
        () => this.#fail(name),
      )
    }
    return false
  }

  #fail(name: string): void {
    this.#failed = true
    this.#asked.delete(name)
    this.#host.requestUpdate()
  }
}
