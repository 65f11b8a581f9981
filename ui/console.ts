/**
 * `<signalbox-console>`: the whole console as one element. Owns the frame: navigation, banners, theme, global keys, and which
 * page is loaded. Does not own what a page shows, nor the person's session (it only tells whose it is).
 */
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { keyed } from 'lit/directives/keyed.js'
import type { Role } from '../domain/access.ts'
import { type App, sessionQuestion } from './app.ts'
import { consoleSheet } from './console-sheet.ts'
import { Lazy } from './controllers/lazy.ts'
import { Query } from './controllers/query.ts'
import { Select } from './controllers/select.ts'
import { icon, type IconName } from './elements/icon.ts'
import { notLoaded, whenLoaded } from './elements/not-loaded.ts'
import { sheet } from './elements/sheet.ts'
import { define, View, viewProperties } from './elements/view.ts'
import type { Binding } from './keys.ts'
import type { LiveState } from './live.ts'
import type { Page, Route, Routing } from './router.ts'
import { TypeAhead } from './type-ahead.ts'

interface Place {
  readonly path: string
  readonly label: string
  readonly icon: IconName
  readonly keys: string
  readonly pages: readonly Page[]
  /** Who it is for; everybody when absent. The server decides: this only keeps what would be refused out of the way. */
  readonly only?: Role
}

const work: readonly Place[] = [
  { path: '/tasks', label: 'Tasks', icon: 'list-checks', keys: 'g t', pages: ['home', 'tasks', 'task', 'newTask'] },
  { path: '/agents', label: 'Agents', icon: 'bot', keys: 'g a', pages: ['agents', 'agent'] },
]
const oversight: readonly Place[] = [
  { path: '/audit', label: 'Audit', icon: 'scroll-text', keys: 'g u', pages: ['audit'], only: 'admin' },
  {
    path: '/access',
    label: 'Access',
    icon: 'users',
    keys: 'g x',
    pages: ['access', 'accessView'],
    only: 'admin',
  },
  { path: '/actors', label: 'Actors', icon: 'workflow', keys: 'g d', pages: ['actors', 'actor'] },
]
export const places: readonly Place[] = [...work, ...oversight]

type Theme = 'auto' | 'light' | 'dark'
const themes: Record<Theme, { icon: IconName; next: Theme; word: string }> = {
  auto: { icon: 'monitor', next: 'light', word: 'as the system' },
  light: { icon: 'sun', next: 'dark', word: 'light' },
  dark: { icon: 'moon', next: 'auto', word: 'dark' },
}
const themeKey = 'signalbox.theme'
const isTheme = (value: string | null): value is Theme => value !== null && Object.hasOwn(themes, value)

const liveWords: Record<LiveState, string> = {
  connecting: 'Connecting…',
  live: 'Live',
  reconnecting: 'Reconnecting…',
  'no-database': 'Reconnecting…',
  offline: 'Offline',
  'signed-out': 'Signed out',
}

const loadTasks = async (): Promise<void> =>
  define('signalbox-tasks', (await import('./pages/tasks.ts')).SignalboxTasks)
const loadAgents = async (): Promise<void> =>
  define('signalbox-agents', (await import('./pages/agents.ts')).SignalboxAgents)
const loadAccess = async (): Promise<void> =>
  define('signalbox-access', (await import('./pages/access.ts')).SignalboxAccess)
const loadAudit = async (): Promise<void> =>
  define('signalbox-audit', (await import('./pages/audit.ts')).SignalboxAudit)
const loadSignIn = async (): Promise<void> =>
  define('signalbox-sign-in', (await import('./pages/sign-in.ts')).SignalboxSignIn)
const loadMe = async (): Promise<void> =>
  define('signalbox-me', (await import('./elements/session-menu.ts')).SignalboxSessionMenu)
const loadPalette = async (): Promise<void> =>
  define('signalbox-palette', (await import('./elements/palette.ts')).SignalboxPalette)
const loadKeys = async (): Promise<void> =>
  define('signalbox-keys', (await import('./elements/keys-dialog.ts')).SignalboxKeys)

/** One for each time that it is opened: the browser tells of an end a moment after it, when the next may be open. */
type Layer = { readonly name: 'palette' | 'keys' } | undefined

/**
 * @attr base - path the console is mounted at, default ''
 * @attr routing - history (default), hash or memory
 * @fires signalbox-navigate - cancelable; detail {path}
 * @fires signalbox-error - a request failed; detail {message, status, kind}
 * @fires signalbox-signed-out - the session ended; drafts are kept
 */
export class SignalboxConsole extends View {
  static override properties: PropertyDeclarations = {
    ...viewProperties,
    base: { type: String },
    routing: { type: String },
    _layer: { state: true },
  }
  static override styles = [sheet, consoleSheet]
  declare base: string
  declare routing: Routing
  declare _layer: Layer
  #route = new Select(
    this,
    () => this.app?.router,
    (route) => route,
  )
  #live = new Select(
    this,
    () => this.app?.live.state,
    (state) => state,
  )
  #signedOut = new Select(
    this,
    () => this.app?.signedOut,
    (out) => out,
  )
  #person = new Select(
    this,
    () => this.app?.person,
    (person) => person,
  )
  #session = new Query(this, () => this.app && { queries: this.app.queries, question: sessionQuestion })
  #lazy = new Lazy(this)
  #hostTheme = false
  #stopKeys: (() => void) | undefined

  constructor() {
    super()
    this.base = ''
    this.routing = 'history'
    this._layer = undefined
  }

  override connectedCallback(): void {
    this.#hostTheme = this.hasAttribute('theme')
    if (!this.#hostTheme) {
      const kept = localStorage.getItem(themeKey)
      this.theme = isTheme(kept) ? kept : 'auto'
    }
    super.connectedCallback()
    if (this.app) this.#stopKeys = this.app.keys.add(this.#bindings(this.app))
  }

  override disconnectedCallback(): void {
    this.#stopKeys?.()
    super.disconnectedCallback()
  }

  protected override get routingKind(): Routing {
    return this.routing
  }

  protected override get basePath(): string {
    return this.base
  }

  protected override get startPath(): string {
    return '/tasks'
  }

  #bindings(app: App): Binding[] {
    return [
      ...places.map((place): Binding => ({
        keys: place.keys,
        label: place.label,
        group: 'Go to',
        open: () => this.#isOpen(place),
        run: () => app.router.go(place.path),
      })),
      { keys: 'k', label: 'Find or do', group: 'Console', withControl: true, run: () => this.#open('palette') },
      { keys: '?', label: 'Keyboard shortcuts', group: 'Console', run: () => this.#open('keys') },
    ]
  }

  /** Whether a place is for whoever is here. */
  readonly #isOpen = ({ only }: Place): boolean => only === undefined || only === this.#session.data?.user.role

  #open(name: 'palette' | 'keys'): void {
    // What is open already stays as it is, with what was typed; only one that is being closed is opened anew.
    const isOpen =
      this.renderRoot.querySelector(`signalbox-${name}`)?.shadowRoot?.querySelector('dialog')?.open === true
    if (this.#signedOut.value || isOpen) return
    this.#typed.clear()
    this._layer = { name }
  }

  readonly #typed = new TypeAhead(() => (this._layer = undefined))

  override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed)
    // The next to sign in may be somebody else: what was typed goes, and the keyboard is the sign-in page's.
    if (this.#signedOut.value) {
      this._layer = undefined
      this.#typed.clear()
    }
    if (this.#route.value?.page === 'home') this.app?.router.replace('/tasks')
  }

  /** Focus follows to the new page, so that a keyboard or a screen reader is where the eye is. */
  override updated(): void {
    const section = places.find(({ pages }) => pages.includes(this.#route.value?.page ?? 'unknown'))?.path
    const moved = this.#section !== undefined && section !== this.#section
    this.#section = section
    if (moved && this.matches(':focus-within')) this.#focusMain()
    const { _layer: layer } = this
    const isComing =
      layer &&
      !this.#lazy.failed(`signalbox-${layer.name}`) &&
      !this.renderRoot.querySelector(`signalbox-${layer.name}`)
    if (this.app) this.app.keys.divert = isComing ? this.#typed.take : undefined
  }
  #section: string | undefined

  #focusMain(): void {
    this.renderRoot.querySelector<HTMLElement>('main')?.focus()
  }

  #cycleTheme(): void {
    const { next } = themes[isTheme(this.theme) ? this.theme : 'auto']
    this.theme = next
    localStorage.setItem(themeKey, next)
  }

  override render(): TemplateResult {
    const { app } = this
    const state = this.#live.value ?? 'connecting'
    if (this.#signedOut.value && app) return this.#signIn(app)
    return html`<div class="shell">
        <nav aria-label="Console">
          <button class="skip" @click=${() => this.#focusMain()}>Skip to content</button>
          <div class="brand">
            <span class="sign" aria-hidden="true">${icon('route', 15)}</span><span class="t">Signalbox</span>
          </div>
          <button class="find" title="Find or do (Ctrl K)" @click=${() => this.#open('palette')}>
            ${icon('search', 14)}<span class="t">Find or do</span><kbd class="t" aria-hidden="true">Ctrl K</kbd>
          </button>
          <ul>
            ${work.map((place) => this.#link(place))}
          </ul>
          <p class="section t" id="oversight">Oversight</p>
          <ul aria-labelledby="oversight">
            ${oversight.filter(this.#isOpen).map((place) => this.#link(place))}
          </ul>
          <div class="grow"></div>
          <p class="live" role="status" title=${liveWords[state]}>
            <span class="lamp ${state}" aria-hidden="true"></span><span class="word">${liveWords[state]}</span>
          </p>
          <div class="me">
            ${
              app && this.#session.data && this.#lazy.ready('signalbox-me', loadMe)
                ? html`<signalbox-me .app=${app} .session=${this.#session.data}></signalbox-me>`
                : html`<span class="t"></span>`
            }
            ${this.#themeSwitch()}
          </div>
        </nav>
        <div class="stage">
          ${this.#banner(state)}
          <main tabindex="-1">${keyed(this.#person.value, this.#page())}</main>
        </div>
      </div>
      ${this.#layerView()}`
  }

  #link({ path, label, icon: name, keys, pages }: Place): TemplateResult {
    const here = pages.includes(this.#route.value?.page ?? 'unknown')
    return html`<li>
      <a
        href=${this.app?.router.href(path) ?? path}
        data-route=${path}
        aria-current=${here ? 'page' : nothing}
        title=${`${label} (${keys.replace(' ', ' then ')})`}
        >${icon(name)}<span class="t">${label}</span></a
      >
    </li>`
  }

  #themeSwitch(): TemplateResult | typeof nothing {
    if (this.#hostTheme) return nothing
    const { icon: name, word } = themes[isTheme(this.theme) ? this.theme : 'auto']
    return html`<button
      class="ghost small icon-only"
      aria-label=${`Theme: ${word}`}
      title=${`Theme: ${word}`}
      @click=${() => this.#cycleTheme()}
    >
      ${icon(name, 15)}
    </button>`
  }

  #banner(state: LiveState): TemplateResult | typeof nothing {
    const layer = this._layer?.name ?? 'me'
    if (this.#lazy.failed('signalbox-me') || this.#lazy.failed(`signalbox-${layer}`)) return notLoaded('banner warn')
    if (state === 'offline') {
      return html`<div class="banner warn" role="status">
        ${icon('wifi-off', 15)}<span class="grow"
          >You are offline. This page shows what was known last; accepted work goes on without you.</span
        >
      </div>`
    }
    if (state === 'reconnecting' || state === 'no-database') {
      return html`<div class="banner warn" role="status">
        ${icon('unplug', 15)}<span class="grow"
          >The ${state === 'reconnecting' ? 'console' : 'database'} does not answer. Trying again; this page shows what
          was known last.</span
        >
      </div>`
    }
    return nothing
  }

  /** Nothing of the person's is left on the page: not the name, not the places, nothing that was read. */
  #signIn(app: App): TemplateResult {
    const draw = (): TemplateResult => html`<signalbox-sign-in .app=${app}></signalbox-sign-in>`
    return html`<main class="alone" tabindex="-1">
      ${whenLoaded(this.#lazy, 'signalbox-sign-in', loadSignIn, draw)}
    </main>`
  }

  #page(): TemplateResult | typeof nothing {
    const { app } = this
    const route = this.#route.value
    const { data, fault } = this.#session.answer
    if (!app || !route) return nothing
    const section = places.find(({ pages }) => pages.includes(route.page))?.path
    const page = this.#pageOf(app, route, section)
    // The page's code comes while the session is asked for; it is shown to somebody.
    return data || fault ? page : nothing
  }

  #pageOf(app: App, route: Route, section: string | undefined): TemplateResult | typeof nothing {
    const { kind, id } = route.params
    switch (section) {
      case '/tasks':
        return this.#lazily('tasks', loadTasks, () => html`<signalbox-tasks .app=${app}></signalbox-tasks>`)
      case '/agents':
        return this.#lazily('agents', loadAgents, () => html`<signalbox-agents .app=${app}></signalbox-agents>`)
      case '/actors':
        return this.#lazily(
          'actors',
          () => import('./pages/actors.ts'),
          () => html`<signalbox-actors .app=${app} .kind=${kind ?? null} .actorId=${id ?? null}></signalbox-actors>`,
        )
      case '/access':
        return this.#lazily('access', loadAccess, () => html`<signalbox-access .app=${app}></signalbox-access>`)
      case '/audit':
        return this.#lazily('audit', loadAudit, () => html`<signalbox-audit .app=${app}></signalbox-audit>`)
      default:
        return this.#lazily(
          'not-there',
          () => import('./elements/not-there.ts'),
          () => html`<signalbox-not-there .app=${app}></signalbox-not-there>`,
        )
    }
  }

  #lazily(name: string, load: () => Promise<unknown>, draw: () => TemplateResult): TemplateResult | typeof nothing {
    return whenLoaded(this.#lazy, `signalbox-${name}`, load, draw)
  }

  #layerView(): TemplateResult | typeof nothing {
    const { app, _layer: layer } = this
    const close = (): void => {
      if (this._layer === layer) this._layer = undefined
    }
    if (!app || !layer) return nothing
    if (layer.name === 'palette' && this.#lazy.ready('signalbox-palette', loadPalette)) {
      return html`${keyed(layer, html`<signalbox-palette .app=${app} .typed=${this.#typed.text} @close=${close}></signalbox-palette>`)}`
    }
    if (layer.name === 'keys' && this.#lazy.ready('signalbox-keys', loadKeys)) {
      return html`${keyed(layer, html`<signalbox-keys .app=${app} @close=${close}></signalbox-keys>`)}`
    }
    return nothing
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-console': SignalboxConsole
  }
}
