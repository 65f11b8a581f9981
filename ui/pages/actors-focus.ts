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

interface Opened {
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
    const isWanted = (): boolean => this.#inside === row || this.#inside === null
    void this.#host.updateComplete.then(() => this.#opened()?.heading.take(isWanted))
  }

  /** Back to the row of what is open; where there is room for one of both, to the list. False in the list: that is where it leads. */
  readonly leave = (): boolean => {
    const { app } = this.#host
    const list = this.#find('.list')
    if (!app || !list || list.contains(this.#inside)) return false
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
