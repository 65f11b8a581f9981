/**
 * The keyboard's way from a row of the list into the actor that it opens, and back: between them are all other rows and the page's
 * tools, dozens of stops. Owns where the focus goes; what is opened is the address's to say.
 */
import type { LitElement, ReactiveController } from 'lit'
import type { App } from '../app.ts'

/** Takes the focus to the heading of its host, once that is drawn: what was opened may have yet to be read. */
export class HeadingFocus implements ReactiveController {
  readonly #host: LitElement
  #isWanted: (() => boolean) | undefined

  constructor(host: LitElement) {
    this.#host = host
    host.addController(this)
  }

  /** `isWanted`: asked again once there is a heading, for meanwhile somebody may have gone elsewhere. */
  take(isWanted: () => boolean): void {
    this.#isWanted = isWanted
    this.#host.requestUpdate()
  }

  hostUpdated(): void {
    const isWanted = this.#isWanted
    const heading = this.#host.renderRoot.querySelector<HTMLElement>('h2')
    if (!isWanted || !heading) return
    this.#isWanted = undefined
    if (isWanted()) heading.focus()
  }
}

/** The focus is on nothing that somebody chose: on the body, or on what else `view` is in, as the console's main part. */
function isNowhere(view: Element): boolean {
  let focused = document.activeElement
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement
  let around: Node | null = view
  while (around && around !== focused) around = around instanceof ShadowRoot ? around.host : around.parentNode
  return around !== null || focused === null
}

interface Opened extends Element {
  readonly heading: HeadingFocus
}

export class RowFocus {
  readonly #host: LitElement & { readonly app: App | undefined }
  readonly #opened: () => Opened | null
  readonly #listPath: () => string

  /** `opened`: what shows the actor that is chosen. `listPath`: the list, as it is filtered, with none chosen. */
  constructor(
    host: LitElement & { readonly app: App | undefined },
    opened: () => Opened | null,
    listPath: () => string,
  ) {
    this.#host = host
    this.#opened = opened
    this.#listPath = listPath
  }

  get #inside(): Element | null {
    return this.#host.shadowRoot?.activeElement ?? null
  }

  #find(selector: string): HTMLElement | null {
    return this.#host.renderRoot.querySelector<HTMLElement>(selector)
  }

  /** A row was pressed by a key, and not by a pointer: with that, or into another tab, the focus stays with the list. */
  readonly enter = (event: MouseEvent, path: string): void => {
    const { app } = this.#host
    if (!app || event.detail > 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    app.router.go(path)
    const row = this.#inside
    // Where there is room for one of both, the row is hidden by now and has lost it.
    const isWanted = (): boolean => (row !== null && this.#inside === row) || isNowhere(this.#host)
    void this.#host.updateComplete.then(() => this.#opened()?.heading.take(isWanted))
  }

  /** Back to the row of what is open; where there is room for one of both, to the list. False from anywhere else. */
  readonly leave = (): boolean => {
    const { app } = this.#host
    const list = this.#find('.list')
    const isHere = this.#inside === this.#opened() || isNowhere(this.#host)
    if (!app || !list || !isHere) return false
    const { path } = app.router.get()
    const toRow = (): void => {
      const row = this.#find(`.rows a[data-route="${CSS.escape(path.split('?')[0] ?? path)}"]`)
      const place = row ?? this.#find('.rows a') ?? this.#find('input[type=search]')
      place?.focus()
    }
    if (list.checkVisibility()) toRow()
    else {
      app.router.go(this.#listPath())
      void this.#host.updateComplete.then(toRow)
    }
    return true
  }
}
