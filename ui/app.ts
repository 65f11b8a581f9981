/**
 * What every view of one console on a page shares: the client, the cache, the change signal, the router, keys and formats.
 * Made by the outermost element (console.ts, or a view that stands alone) and handed down as the property `app`.
 */
import { createAtom } from '@xstate/store'
import { Session } from '../domain/access.ts'
import { Api, type ApiFault } from './api.ts'
import { Drafts } from './drafts.ts'
import { Format } from './format.ts'
import { Keys } from './keys.ts'
import { Live } from './live.ts'
import { type Question, Queries } from './queries.ts'
import { Router, type Routing } from './router.ts'
import { Sendings } from './sending.ts'
import { Traces } from './traces.ts'

export interface AppOptions {
  /** The prefix before `/api`, '' when the console is at the root. */
  readonly api: string
  readonly base: string
  readonly routing: Routing
  /** The first path in memory routing. */
  readonly start?: string
  readonly locale: string | undefined
  /** The outermost element: events are dispatched on it and links are followed below it. */
  readonly element: HTMLElement
}

export const sessionQuestion: Question<Session> = { path: '/api/auth/session', schema: Session, freshness: 'steady' }

export class App {
  readonly api: Api
  readonly queries: Queries
  readonly live: Live
  readonly router: Router
  readonly keys = new Keys()
  readonly format: Format
  readonly traces = new Traces()
  readonly sendings: Sendings
  readonly drafts = new Drafts()
  readonly signedOut = createAtom(false)
  /** Who the console last answered to; undefined before the first answer. */
  readonly person = createAtom<string | undefined>(undefined)
  /** The task whose composer takes the focus once it is shown: who sent from the keyboard stays at the keyboard. */
  arrival: string | null = null
  readonly #element: HTMLElement
  readonly #closed = new AbortController()

  constructor(options: AppOptions) {
    const { element } = options
    this.#element = element
    this.api = new Api(options.api, {
      failed: (fault) => this.#failed(fault),
      answeredTo: (personId) => this.#recognize(personId),
    })
    this.queries = new Queries(this.api)
    this.sendings = new Sendings({ api: this.api, queries: this.queries, traces: this.traces, drafts: this.drafts })
    this.live = new Live(this.api.prefix)
    this.format = new Format(options.locale)
    const mayNavigate = (path: string): boolean => this.#tell('signalbox-navigate', { path }, true)
    this.router = new Router(options.routing, options.base, mayNavigate, options.start)
    this.router.listen(element)
    this.live.onChange(() => this.queries.invalidate())
    this.live.state.subscribe((state) => {
      if (state === 'signed-out') this.signOut()
      // Signed in again, perhaps in another tab.
      else if (state === 'live' && this.signedOut.get()) this.#comeBack()
    })
    element.addEventListener('keydown', (event) => this.keys.handle(event), { signal: this.#closed.signal })
    this.live.open()
  }

  #failed(fault: ApiFault): void {
    if (fault.status === 503) this.live.doubt()
    if (fault.kind === 'signed-out') this.signOut()
    else this.#tell('signalbox-error', { message: fault.message, status: fault.status, kind: fault.kind })
  }

  /** Where signing in starts; a top-level navigation, which comes back to where the person was. */
  get signInHref(): string {
    const back = this.router.href(this.router.get().path)
    return `${this.api.prefix}/api/auth/login?returnTo=${encodeURIComponent(back.startsWith('/') ? back : '/tasks')}`
  }

  close(): void {
    this.#closed.abort()
    this.router.close()
    this.live.close()
    this.sendings.close()
    this.queries.close()
  }

  /** The session is over, whoever ended it. What the page knew goes; drafts stay, for the same person only. */
  signOut(): void {
    if (this.signedOut.get()) return
    this.signedOut.set(true)
    this.live.end()
    this.#forget()
    this.#tell('signalbox-signed-out', {})
  }

  #comeBack(): void {
    this.signedOut.set(false)
    this.queries.refetchAll()
  }

  /** Somebody else may have signed in, in this tab or another one: nothing of the one before is theirs. */
  #recognize(personId: string): void {
    const before = this.person.get()
    if (before === personId) return
    this.drafts.belongTo(personId)
    if (before === undefined) this.sendings.restore()
    else this.#forget()
    this.person.set(personId)
    if (before !== undefined) this.queries.refetchAll()
  }

  #forget(): void {
    this.queries.forgetAll()
    this.sendings.close()
    this.traces.clear()
  }

  /** False when the host vetoed. Details are plain JSON: no text of an agent decides an event's type. */
  #tell(type: string, detail: object, cancelable = false): boolean {
    return this.#element.dispatchEvent(new CustomEvent(type, { bubbles: true, composed: true, cancelable, detail }))
  }
}
