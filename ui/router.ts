/**
 * Which page is shown. Owns the console's paths, the three ways to keep them (the address bar, its hash, or memory only,
 * so that a host page keeps its own URL) and links. Does not own what a page does with its parameters.
 */
export type Routing = 'history' | 'hash' | 'memory'

const paths = {
  home: '/',
  tasks: '/tasks',
  newTask: '/tasks/new',
  task: '/tasks/:id',
  agents: '/agents',
  agent: '/agents/:id',
  actors: '/actors',
  actor: '/actors/:kind/:id',
  access: '/access',
  accessView: '/access/:view',
  audit: '/audit',
} as const
export type Page = keyof typeof paths | 'unknown'

export interface Route {
  readonly page: Page
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** Path and query, without the base: what `go` takes. */
  readonly path: string
}

const segments = (path: string): string[] => path.split('/').filter((segment) => segment !== '')

function matchPath(pattern: string, given: readonly string[]): Record<string, string> | undefined {
  const wanted = segments(pattern)
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [at, name] of wanted.entries()) {
    const value = given[at] ?? ''
    if (name.startsWith(':')) params[name.slice(1)] = value
    else if (name !== value) return undefined
  }
  return params
}

/** A segment that is not valid percent-encoding is taken as it stands: a broken link shows "not found", it does not throw. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Reads a path; the first pattern wins, so `/tasks/new` is not a task. */
export function routeOf(path: string): Route {
  // Not resolved: of `//tasks` a host would be read.
  const url = new URL(`http://console${path.startsWith('/') ? path : `/${path}`}`)
  const given = segments(url.pathname).map(decode)
  for (const [page, pattern] of Object.entries(paths)) {
    const params = matchPath(pattern, given)
    if (params) return { page: page as Page, params, query: url.searchParams, path }
  }
  return { page: 'unknown', params: {}, query: url.searchParams, path }
}

/** Asked before every move that a person or a page wants; false keeps the present page. */
export type MayNavigate = (path: string) => boolean

export class Router {
  readonly #routing: Routing
  readonly #base: string
  readonly #mayNavigate: MayNavigate
  readonly #listeners = new Set<(route: Route) => void>()
  readonly #closed = new AbortController()
  #route: Route

  /** `start` is the first path in memory mode; the other modes read the address. */
  constructor(routing: Routing, base: string, mayNavigate: MayNavigate, start = '/') {
    this.#routing = routing
    this.#base = base.replace(/\/$/, '')
    this.#mayNavigate = mayNavigate
    this.#route = routeOf(routing === 'memory' ? start : this.#address())
    const until = { signal: this.#closed.signal }
    if (routing === 'history') addEventListener('popstate', () => this.#show(this.#address()), until)
    if (routing === 'hash') addEventListener('hashchange', () => this.#show(this.#address()), until)
  }

  get(): Route {
    return this.#route
  }

  subscribe(listener: (route: Route) => void): { unsubscribe(): void } {
    this.#listeners.add(listener)
    return { unsubscribe: () => void this.#listeners.delete(listener) }
  }

  /** What an `<a href>` holds, so that opening in a new tab works where the address is ours. */
  href(path: string): string {
    if (this.#routing === 'hash') return `#${path}`
    return this.#base + path
  }

  go(path: string): void {
    if (path === this.#route.path || !this.#mayNavigate(path)) return
    if (this.#routing !== 'memory') history.pushState(null, '', this.href(path))
    this.#show(path)
  }

  /** The same page under another path: nothing is asked and Back does not return here. */
  replace(path: string): void {
    if (this.#routing !== 'memory') history.replaceState(null, '', this.href(path))
    this.#show(path)
  }

  /** Follows plain left clicks on `a[data-route]` anywhere below; `composedPath` sees through shadow roots. */
  listen(root: HTMLElement): void {
    const follow = (event: MouseEvent): void => {
      if (event.defaultPrevented || event.button !== 0) return
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
      const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement)
      const path = link?.dataset['route']
      if (path === undefined) return
      event.preventDefault()
      this.go(path)
    }
    root.addEventListener('click', follow, { signal: this.#closed.signal })
  }

  close(): void {
    this.#closed.abort()
    this.#listeners.clear()
  }

  #address(): string {
    if (this.#routing === 'hash') return location.hash.slice(1) || '/'
    const { pathname, search } = location
    const inside = pathname === this.#base || pathname.startsWith(`${this.#base}/`)
    return (inside ? pathname.slice(this.#base.length) || '/' : '/') + search
  }

  #show(path: string): void {
    this.#route = routeOf(path)
    for (const listener of this.#listeners) listener(this.#route)
  }
}
