/**
 * Gives the focus a place when a view's own drawing took away what had it: else a keyboard begins at the top of the page again, and a
 * screen reader falls silent. Owns when; where is the view's to say, and the console's main part where it says nothing.
 */
import type { LitElement, ReactiveController } from 'lit'

export class KeepFocus implements ReactiveController {
  readonly #host: LitElement
  readonly #place: () => HTMLElement | null | undefined
  #had: HTMLElement | null = null

  constructor(host: LitElement, place: () => HTMLElement | null | undefined = () => null) {
    this.#host = host
    this.#place = place
    host.addController(this)
  }

  get #focused(): HTMLElement | null {
    const { activeElement = null } = this.#host.shadowRoot ?? {}
    return activeElement instanceof HTMLElement ? activeElement : null
  }

  get #hasFocus(): boolean {
    return this.#focused !== null
  }

  hostUpdate(): void {
    this.#had = this.#focused
  }

  hostUpdated(): void {
    if (!this.#had || this.#hasFocus) return
    // What was only moved, as a row of a list that is sorted anew, has lost it as well.
    if (this.#had.isConnected) this.#had.focus()
    if (!this.#hasFocus) this.#place()?.focus()
    // There is none, or it is hidden, as a list is beside a narrow page: that takes no focus.
    if (!this.#hasFocus) mainAround(this.#host)?.focus()
  }
}

/** The main part that an element is in, through every shadow root on the way. */
function mainAround(element: Element): HTMLElement | null {
  const root = element.getRootNode()
  return element.closest('main') ?? (root instanceof ShadowRoot ? mainAround(root.host) : null)
}
