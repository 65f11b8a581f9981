/**
 * `<signalbox-console>`: the whole console as one element. Owns the frame: navigation, banners, theme, global keys, and which
 * page is loaded. Does not own what a page shows, nor the person's session (it only tells whose it is).
 */
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { type App, sessionQuestion } from './app.ts'
import { consoleSheet } from './console-sheet.ts'
import { Lazy } from './controllers/lazy.ts'
import { Query } from './controllers/query.ts'
import { Select } from './controllers/select.ts'
import { icon, type IconName } from './elements/icon.ts'
import { sheet } from './elements/sheet.ts'
import { define, View, viewProperties } from './elements/view.ts'
import type { Binding } from './keys.ts'
import type { LiveState } from './live.ts'
import type { Page, Routing } from './router.ts'
import { personMark } from './states.ts'

interface Place {
  readonly path: string
  readonly label: string
  readonly icon: IconName
  readonly keys: string
  readonly pages: readonly Page[]
}

const work: readonly Place[] = [
  { path: '/tasks', label: 'Tasks', icon: 'list-checks', keys: 'g t', pages: ['home', 'tasks', 'task', 'newTask'] },
  { path: '/agents', label: 'Agents', icon: 'bot', keys: 'g a', pages: ['agents', 'agent'] },
]
const oversight: readonly Place[] = [
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
  offline: 'Offline',
  'signed-out': 'Signed out',
}

const loadTasks = async (): Promise<void> =>
  define('signalbox-tasks', (await import('./pages/tasks.ts')).SignalboxTasks)
const loadAgents = async (): Promise<void> =>
  define('signalbox-agents', (await import('./pages/agents.ts')).SignalboxAgents)
const loadPalette = async (): Promise<void> =>
  define('signalbox-palette', (await import('./elements/palette.ts')).SignalboxPalette)
const loadKeys = async (): Promise<void> =>
  define('signalbox-keys', (await import('./elements/keys-dialog.ts')).SignalboxKeys)

/** A page's code is gone from the server: it was updated while this one was open. */
const updated = (): TemplateResult =>
  html`<div class="empty" role="alert">
    ${icon('refresh-cw', 28)}<b>This page could not be loaded</b>
    <p>The console may have been updated since this tab was opened. What you typed is kept.</p>
    <div class="row"><button @click=${() => location.reload()}>Reload</button></div>
  </div>`

type Layer = 'palette' | 'keys' | undefined

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
      ...places.map(({ keys, label, path }): Binding => ({
        keys,
        label,
        group: 'Go to',
        run: () => app.router.go(path),
      })),
      { keys: 'k', label: 'Find or do', group: 'Console', withControl: true, run: () => this.#open('palette') },
      { keys: '?', label: 'Keyboard shortcuts', group: 'Console', run: () => this.#open('keys') },
    ]
  }

  #open(layer: 'palette' | 'keys'): void {
    this._layer = layer
  }

  override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed)
    if (this.#route.value?.page === 'home') this.app?.router.replace('/tasks')
  }

  /** Focus follows to the new page, so that a keyboard or a screen reader is where the eye is. */
  override updated(): void {
    const section = places.find(({ pages }) => pages.includes(this.#route.value?.page ?? 'unknown'))?.path
    const moved = this.#section !== undefined && section !== this.#section
    this.#section = section
    if (moved && this.matches(':focus-within')) this.#focusMain()
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
    const person = this.#session.data?.user.displayName
    const state = this.#live.value ?? 'connecting'
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
            ${oversight.map((place) => this.#link(place))}
          </ul>
          <div class="grow"></div>
          <p class="live" role="status" title=${liveWords[state]}>
            <span class="lamp ${state}" aria-hidden="true"></span><span class="word">${liveWords[state]}</span>
          </p>
          <div class="me">
            ${person ? html`${personMark(person)}<span class="t ell" title=${person}>${person}</span>` : html`<span class="t"></span>`}
            ${this.#themeSwitch()}
          </div>
        </nav>
        <div class="stage">
          ${this.#banner(state)}
          <main tabindex="-1">${this.#page()}</main>
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
    if (this.#signedOut.value) {
      return html`<div class="banner bad" role="alert">
        ${icon('log-in', 15)}<span class="grow">You are signed out. What you typed is kept in this tab.</span>
        <a class="button small" href=${this.app?.signInHref ?? nothing} target="_top">Sign in again</a>
      </div>`
    }
    if (state === 'offline') {
      return html`<div class="banner warn" role="status">
        ${icon('wifi-off', 15)}<span class="grow"
          >You are offline. This page shows what was known last; accepted work goes on without you.</span
        >
      </div>`
    }
    if (state === 'reconnecting') {
      return html`<div class="banner warn" role="status">
        ${icon('unplug', 15)}<span class="grow"
          >The console does not answer. Trying again; this page shows what was known last.</span
        >
      </div>`
    }
    return nothing
  }

  #page(): TemplateResult | typeof nothing {
    const { app } = this
    const route = this.#route.value
    if (!app || !route) return nothing
    const section = places.find(({ pages }) => pages.includes(route.page))?.path
    if (section !== undefined && this.#lazy.failed) return updated()
    if (section === '/tasks') {
      return this.#lazy.ready('signalbox-tasks', loadTasks)
        ? html`<signalbox-tasks .app=${app}></signalbox-tasks>`
        : nothing
    }
    if (section === '/agents') {
      return this.#lazy.ready('signalbox-agents', loadAgents)
        ? html`<signalbox-agents .app=${app}></signalbox-agents>`
        : nothing
    }
    if (section === '/actors') {
      const { kind, id } = route.params
      return this.#lazy.ready('signalbox-actors', () => import('./pages/actors.ts'))
        ? html`<signalbox-actors .app=${app} .kind=${kind ?? null} .actorId=${id ?? null}></signalbox-actors>`
        : nothing
    }
    return html`<div class="empty">
      ${icon('route', 28)}
      <h1><b>There is no such page</b></h1>
      <p>The address may be old or mistyped.</p>
      <div class="row"><a class="button" href=${app.router.href('/tasks')} data-route="/tasks">Go to Tasks</a></div>
    </div>`
  }

  #layerView(): TemplateResult | typeof nothing {
    const { app } = this
    const close = (): void => {
      this._layer = undefined
    }
    if (this._layer === 'palette' && app && this.#lazy.ready('signalbox-palette', loadPalette)) {
      return html`<signalbox-palette .app=${app} @close=${close}></signalbox-palette>`
    }
    if (this._layer === 'keys' && app && this.#lazy.ready('signalbox-keys', loadKeys)) {
      return html`<signalbox-keys .app=${app} @close=${close}></signalbox-keys>`
    }
    return nothing
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-console': SignalboxConsole
  }
}
