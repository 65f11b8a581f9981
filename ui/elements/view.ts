/**
 * A view: an element that shows something of the console, inside `<signalbox-console>` or alone on a host page. Owns where
 * its `app` comes from: handed down as a property, or made from its own attributes when it is the outermost of ours.
 */
import { LitElement, type PropertyDeclarations } from 'lit'
import { App } from '../app.ts'
import type { Routing } from '../router.ts'
import { tokens } from '../tokens.ts'

export const viewProperties = {
  app: { attribute: false },
  api: { type: String },
  locale: { type: String },
  theme: { type: String, reflect: true },
  density: { type: String, reflect: true },
} satisfies PropertyDeclarations

/**
 * @attr api - prefix before `/api`, default ''
 * @attr theme - auto (default), light or dark
 * @attr density - comfortable (default) or compact
 * @attr locale - BCP 47 tag, default the browser's
 */
export class View extends LitElement {
  static override properties: PropertyDeclarations = viewProperties
  declare app: App | undefined
  declare api: string
  declare locale: string | null
  declare theme: string | null
  declare density: string | null
  #own: App | undefined

  constructor() {
    super()
    this.api = ''
    this.locale = null
    this.theme = null
    this.density = null
  }

  override connectedCallback(): void {
    super.connectedCallback()
    if (this.app && this.app !== this.#own) return
    this.#own = new App({
      api: this.api,
      base: this.basePath,
      routing: this.routingKind,
      start: this.startPath,
      locale: this.locale ?? undefined,
      element: this,
    })
    this.app = this.#own
    this.#adoptTokens()
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    if (!this.#own) return
    this.#own.close()
    this.#own = undefined
    this.app = undefined
  }

  /** It made its own app: nothing of ours is around it. */
  get standsAlone(): boolean {
    return this.#own !== undefined
  }

  /** A view that stands alone leaves the address to the host page. */
  protected get routingKind(): Routing {
    return 'memory'
  }

  protected get basePath(): string {
    return ''
  }

  protected get startPath(): string {
    return '/'
  }

  /** First in the list, so that the view's own sheets win over `all: initial`. */
  #adoptTokens(): void {
    const root = this.shadowRoot
    if (!root) return
    const sheets = tokens.flatMap(({ styleSheet }) => (styleSheet ? [styleSheet] : []))
    if (sheets[0] && root.adoptedStyleSheets.includes(sheets[0])) return
    root.adoptedStyleSheets = [...sheets, ...root.adoptedStyleSheets]
  }
}

/** Registers an element unless the name is taken: the first definition on a page wins, and a host may load us twice. */
export function define(name: string, element: CustomElementConstructor): void {
  if (!customElements.get(name)) customElements.define(name, element)
}
