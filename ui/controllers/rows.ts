/**
 * j and k through a list: moves focus between the links of a view's rows, and gives `/` to its filter. Owns the bindings'
 * life (registered while the host is connected); which link is chosen is the host's.
 */
import type { LitElement, ReactiveController } from 'lit'
import type { App } from '../app.ts'
import type { Binding } from '../keys.ts'

export class RowKeys implements ReactiveController {
  readonly #host: LitElement & { readonly app: App | undefined }
  readonly #selector: string
  readonly #more: () => readonly Binding[]
  #stop: (() => void) | undefined
  #app: App | undefined

  constructor(
    host: LitElement & { readonly app: App | undefined },
    selector: string,
    more: () => readonly Binding[] = () => [],
  ) {
    this.#host = host
    this.#selector = selector
    this.#more = more
    host.addController(this)
  }

  hostUpdated(): void {
    const { app } = this.#host
    // An update that was still pending when its host was removed gives no keys.
    if (app === this.#app || !this.#host.isConnected) return
    this.#stop?.()
    this.#app = app
    this.#stop = app?.keys.add([
      { keys: 'j', label: 'Next row', group: 'Move', run: () => this.#step(1) },
      { keys: 'k', label: 'Previous row', group: 'Move', run: () => this.#step(-1) },
      ...this.#more(),
    ])
  }

  hostDisconnected(): void {
    this.#stop?.()
    this.#stop = undefined
    this.#app = undefined
  }

  #step(by: 1 | -1): void | false {
    const rows = [...this.#host.renderRoot.querySelectorAll<HTMLElement>(this.#selector)]
    const root = this.#host.shadowRoot
    const focused = rows.findIndex((row) => row === root?.activeElement)
    const from = focused === -1 ? rows.findIndex((row) => row.hasAttribute('aria-current')) : focused
    const next = rows[Math.min(rows.length - 1, Math.max(0, from + by))]
    if (!next) return false
    next.focus()
    next.scrollIntoView({ block: 'nearest' })
  }
}
