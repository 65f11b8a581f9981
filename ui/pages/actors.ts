/**
 * `<signalbox-actors>`: every actor of the console in a list, beside the one that is chosen. Owns the filter, the list and
 * which one is chosen; one actor is actors-detail.ts. Rows keep their places while somebody reads: actors move all the time.
 */
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import { ActorPage } from '../../domain/actor.ts'
import { holdersOf, needingStanding, systemStanding } from '../../domain/system-words.ts'
import type { ActorSummary } from '../../domain/chart.ts'
import { stuckAfterMs } from '../../domain/patience.ts'
import { oldestAgeMs, type Standing } from '../../domain/queue-words.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { agentsQuestion } from '../agent-questions.ts'
import type { Route } from '../router.ts'
import { Again } from '../controllers/again.ts'
import { Clock } from '../controllers/clock.ts'
import { KeepFocus } from '../controllers/keep-focus.ts'
import { Query } from '../controllers/query.ts'
import { RowKeys } from '../controllers/rows.ts'
import { Select } from '../controllers/select.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { define, View, viewProperties } from '../elements/view.ts'
import { plural } from '../format.ts'
import { ServerClock } from '../server-clock.ts'
import { SignalboxActor } from './actors-detail.ts'
import { SignalboxMachines } from './actors-machines.ts'
import { keyOf } from './actors-order.ts'
import { RowFocus } from './actors-focus.ts'
import { ActorPages } from './actors-pages.ts'
import { actorRow, noRows } from './actors-row.ts'
import * as ask from './actors-questions.ts'
import { narrowedTo } from './actors-narrowed.ts'
import { queuesNews } from './actors-news.ts'
import { actorsSheet } from './actors-sheet.ts'
import { standingMark } from './actors-standing.ts'
import { SignalboxSystem } from './actors-system.ts'

/** A pause in typing that asks the server. */
const typingMs = 200

/** @element signalbox-actors */
export class SignalboxActors extends View {
  static override styles = [sheet, actorsSheet]
  static override properties: PropertyDeclarations = {
    ...viewProperties,
    kind: { attribute: false },
    actorId: { attribute: false },
    _filter: { state: true },
    _olderFault: { state: true },
  }
  /** Given by the frame; alone on a page the view reads its own route. */
  declare kind: string | null
  declare actorId: string | null
  declare _filter: ask.ActorFilter
  declare _olderFault: ApiFault | undefined

  readonly #route = new Select(
    this,
    () => this.app?.router,
    (route) => route,
  )
  readonly #actors = new Query(
    this,
    () => this.app && { queries: this.app.queries, question: ask.listQuestion(this._filter) },
  )
  readonly #supervisor = new Query(
    this,
    () => this.app && { queries: this.app.queries, question: ask.supervisorQuestion },
  )
  readonly #queues = new Query(this, () => this.app && { queries: this.app.queries, question: ask.queuesQuestion })
  readonly #charts = new Query(this, () => this.app && { queries: this.app.queries, question: ask.chartsQuestion })
  readonly #clock = new ServerClock()
  readonly #pages = new ActorPages()
  readonly #focus = new RowFocus(
    this,
    () => this.renderRoot.querySelector('signalbox-actor'),
    () => this.#listPath,
  )
  /**
   * Of a list that is drawn with other rows because somebody asked for them: how many there were before, for the next is where they
   * read on. What leaves a list later by itself has nothing to do with it.
   */
  #readTo: number | undefined
  #typing: ReturnType<typeof setTimeout> | undefined

  constructor() {
    super()
    this.kind = null
    this.actorId = null
    this._filter = ask.everyActor
    this._olderFault = undefined
    new Clock(this)
    // For the line above the list, and for the page beside it, which shows the same answers.
    new Again(
      this,
      () => this.app,
      () => this.#ask(),
    )
    new KeepFocus(this, () =>
      this.#readTo === undefined ? null : this.renderRoot.querySelectorAll<HTMLElement>('.rows a')[this.#readTo],
    )
    new RowKeys(this, '.rows a', () => [
      { keys: '/', label: 'Filter actors', group: 'This page', run: () => this.#focusFilter() },
    ])
  }

  #ask(): void {
    this.#supervisor.refresh()
    this.#queues.refresh()
    if (this.#hasHalted) this.#actors.refresh()
  }

  /**
   * Who falls silent commits nothing, and neither does the end of what was held, nor what comes to wait for long or is taken then: no
   * signal of a change tells of it.
   */
  get #hasHalted(): boolean {
    const supervisor = this.#supervisor.data
    const queues = this.#queues.data
    const isShown = this.#actors.data?.actors.some(({ silent, waits }) => silent || waits) === true
    if (isShown || !supervisor || !queues) return isShown
    const nowMs = this.#clock.nowMs(queues)
    if (queues.kinds.some((queue) => (oldestAgeMs(queue, nowMs) ?? 0) >= stuckAfterMs)) return true
    const { leases, silent } = holdersOf(queues, supervisor, nowMs)
    return leases.some(({ owner }) => silent.has(owner))
  }

  protected override get startPath(): string {
    return '/actors'
  }

  override connectedCallback(): void {
    super.connectedCallback()
    // Who comes back is not shown what stood here before.
    void this.updateComplete.then(() => this.#ask())
  }

  override disconnectedCallback(): void {
    clearTimeout(this.#typing)
    this.#pages.restart()
    super.disconnectedCallback()
  }

  get #chosen(): { readonly kind: string; readonly id: string } | undefined {
    const route = this.#route.value
    const { kind, id } = route?.page === 'actor' ? route.params : {}
    if (kind !== undefined && id !== undefined) return { kind, id }
    return this.kind !== null && this.actorId !== null && route?.page !== 'actors'
      ? { kind: this.kind, id: this.actorId }
      : undefined
  }

  /** What is shown while no actor is chosen. Asked for by its address, a narrow page shows it instead of the list. */
  get #beside(): ask.Beside {
    const route = this.#route.value
    return ask.besideOf(route?.page === 'actors' ? route.query : new URLSearchParams())
  }

  /** The address says what the list is filtered by, as long as it is the list's and not one actor's. */
  #takeFilter(): void {
    const route = this.#route.value
    if (route === this.#filterOf || route?.page !== 'actors') return
    this.#filterOf = route
    const filter = ask.filterOf(route.query)
    if (ask.isSameFilter(filter, this._filter)) return
    clearTimeout(this.#typing)
    this._filter = filter
    const field = this.renderRoot.querySelector<HTMLInputElement>('input[type=search]')
    if (field && field.value.trim() !== filter.text) field.value = filter.text
  }
  #filterOf: Route | undefined

  override willUpdate(changed: PropertyValues<this>): void {
    this.#takeFilter()
    if (changed.has('_filter')) this.#layOutAnew()
  }

  #layOutAnew(): void {
    this.#pages.restart()
    this._olderFault = undefined
  }

  #focusFilter(): void | false {
    const field = this.renderRoot.querySelector<HTMLInputElement>('input[type=search]')
    if (!field) return false
    field.focus()
  }

  #typed(event: Event & { currentTarget: HTMLInputElement }): void {
    const text = event.currentTarget.value.trim()
    clearTimeout(this.#typing)
    this.#typing = setTimeout(() => this.#narrow({ text }), typingMs)
  }

  #narrow(change: Partial<ask.ActorFilter>): void {
    this._filter = { ...this._filter, ...change }
    const router = this.app?.router
    if (router?.get().page === 'actors') router.replace(ask.actorsPath(this._filter, this.#beside))
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    if (!app) return nothing
    const chosen = this.#chosen
    const one = chosen !== undefined || this.#beside.show !== null
    return html`<div class=${one ? 'page one' : 'page'}>
      ${this.#list(app)}
      <section class="chosen" aria-label=${chosen ? 'The chosen actor' : 'The machinery'}>
        <h1 class="sr">Actors</h1>
        ${
          chosen
            ? html`<signalbox-actor
                .app=${app}
                .kind=${chosen.kind}
                .actorId=${chosen.id}
                .leave=${this.#focus.leave}
              ></signalbox-actor>`
            : this.#machinery(app)
        }
      </section>
    </div>`
  }

  /** As it is filtered, with none chosen. */
  get #listPath(): string {
    return ask.actorsPath(this._filter, { show: null, process: null })
  }

  #machinery(app: App): TemplateResult {
    const name = this.#beside.show ?? 'system'
    const tab = (show: 'system' | 'machines', words: string): TemplateResult => {
      const path = ask.actorsPath(this._filter, { show, process: null })
      return html`<a
        class="button small"
        href=${app.router.href(path)}
        data-route=${path}
        aria-current=${name === show ? 'page' : nothing}
        >${words}</a
      >`
    }
    const list = this.#listPath
    return html`<div class="machinery">
      <nav class="row" aria-label="The machinery">
        <a
          class="button ghost small icon-only back"
          href=${app.router.href(list)}
          data-route=${list}
          aria-label="All actors"
          >${icon('arrow-left', 15)}</a
        >
        ${tab('system', 'System')}${tab('machines', 'Machines')}
      </nav>
      ${
        name === 'machines'
          ? html`<signalbox-machines .app=${app}></signalbox-machines>`
          : html`<signalbox-system .app=${app}></signalbox-system>`
      }
    </div>`
  }

  /** How the whole stands, above the list and on every width: links to the rest of it, and to what needs attention. */
  #standing(app: App): TemplateResult | typeof nothing {
    const supervisor = this.#supervisor.answer
    if (!supervisor.data) return nothing
    const nowMs = this.#clock.nowMs(this.#queues.data)
    const news = queuesNews(supervisor, this.#queues.answer, app.format)
    const needing = needingStanding(news)
    const link = (path: string, title: string, standing: Standing): TemplateResult =>
      html`<a class="whole" href=${app.router.href(path)} data-route=${path} title=${title}
        >${standingMark(standing)}</a
      >`
    const system = ask.actorsPath(this._filter, { show: 'system', process: null })
    return html`<div>
      ${link(system, 'System', systemStanding(supervisor.data, news, nowMs))}
      ${needing === null ? nothing : link(ask.attentionPath, 'Show them', needing)}
    </div>`
  }

  #list(app: App): TemplateResult {
    const { data, fault } = this.#actors.answer
    const known = data && this.#pages.shown(data)
    const waiting = known?.waiting ?? 0
    const showNew = (): void => {
      this.#layOutAnew()
      this.#drawFrom(0)
    }
    return html`<section class="list" aria-label="Actors">
      <header>
        <h1>Actors</h1>
        <input
          type="search"
          aria-label="Filter actors"
          placeholder="Title, kind, state or ID"
          value=${this._filter.text}
          maxlength="200"
          @input=${(event: Event & { currentTarget: HTMLInputElement }) => this.#typed(event)}
        />
        ${this.#filters()}${this.#standing(app)}
      </header>
      <div role="status">
        ${waiting > 0 ? html`<button class="small arrived" @click=${showNew}>${plural(waiting, 'new actor')}. Show</button>` : nothing}
      </div>
      <div class="rows scroll">
        ${fault && known ? staleNotice(fault, () => this.#actors.refresh()) : nothing}
        ${known ? this.#rows(app, known.rows) : fault ? failure(fault, () => this.#actors.refresh()) : skeleton(8)}
      </div>
    </section>`
  }

  /** Where the console has read it anyway: to ask for it, every agent would be asked. */
  get #agentName(): string | undefined {
    const all = this.app?.queries.peek(agentsQuestion).data?.agents
    return all?.find(({ id }) => id === this._filter.agentId)?.name
  }

  #filters(): TemplateResult {
    const { attention, kind } = this._filter
    const narrowKind = (event: Event & { currentTarget: HTMLSelectElement }): void =>
      this.#narrow({ kind: event.currentTarget.value })
    return html`<div class="row filters">
        <div class="segments" role="group" aria-label="Which actors">
          <button aria-pressed=${!attention} @click=${() => this.#narrow({ attention: false })}>All</button>
          <button aria-pressed=${attention} @click=${() => this.#narrow({ attention: true })}>Attention</button>
        </div>
        <select aria-label="Kind" @change=${narrowKind}>
          <option value="">Any kind</option>
          ${(this.#charts.data?.charts ?? []).map(
            (chart) => html`<option value=${chart.kind} .selected=${chart.kind === kind}>${chart.kind}</option>`,
          )}
        </select>
      </div>
      ${narrowedTo(this._filter, this.#agentName, (change) => this.#narrow(change))}`
  }

  #rows(app: App, rows: readonly ActorSummary[]): TemplateResult {
    if (rows.length === 0) return noRows(this._filter)
    const { next } = this.#pages
    const chosen = this.#chosen
    const row = (actor: ActorSummary): TemplateResult =>
      actorRow({
        app,
        actor,
        isChosen: chosen?.kind === actor.kind && chosen.id === actor.id,
        press: this.#focus.enter,
      })
    return html`<ul>
        ${repeat(rows, keyOf, row)}
      </ul>
      ${this._olderFault ? staleNotice(this._olderFault, () => this.#loadOlder(app)) : nothing}
      ${next === null ? nothing : html`<button class="small more" @click=${() => this.#loadOlder(app)}>Load more</button>`}`
  }

  #drawFrom(row: number): void {
    this.#readTo = row
    this.requestUpdate()
    void this.updateComplete.then(() => (this.#readTo = undefined))
  }

  #loadOlder(app: App): void {
    const read = (cursor: string, signal: AbortSignal): Promise<ActorPage> =>
      app.api.get(ask.listPath(this._filter, cursor), ActorPage, signal)
    void this.#pages.more(read).then((outcome) => {
      if (outcome === 'dropped') return
      this._olderFault = outcome === 'read' ? undefined : faultOf(outcome.error)
      this.#drawFrom(this.renderRoot.querySelectorAll('.rows a').length)
    })
  }
}

define('signalbox-actor', SignalboxActor)
define('signalbox-machines', SignalboxMachines)
define('signalbox-system', SignalboxSystem)
define('signalbox-actors', SignalboxActors)

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-actors': SignalboxActors
    'signalbox-machines': SignalboxMachines
  }
}
