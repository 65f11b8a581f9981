/**
 * `<signalbox-actor>`: one actor on its chart, with its log to move through and what is stored of it. Owns which step is
 * looked at; the chart is ui/statechart, the log's steps are actors-log.ts. It only reads: nothing here moves an actor.
 */
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { guard } from 'lit/directives/guard.js'
import { explainActor, isUnheard } from '../../domain/actor-explanation.ts'
import { isHolderSilent } from '../../domain/patience.ts'
import type { Explanation } from '../../domain/explanation.ts'
import { describeEvent, type ActorDetail, type ActorStep, type StateValue } from '../../domain/chart.ts'
import { Again } from '../controllers/again.ts'
import { Clock } from '../controllers/clock.ts'
import { Query } from '../controllers/query.ts'
import { Select } from '../controllers/select.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { SignalboxJson } from '../elements/json-view.ts'
import { sheet } from '../elements/sheet.ts'
import { define, View, viewProperties } from '../elements/view.ts'
import type { Binding } from '../keys.ts'
import { ServerClock } from '../server-clock.ts'
import type { ChartFile } from '../statechart/layout.ts'
import { SignalboxStatechart } from '../statechart/statechart.ts'
import { actorPath, chartQuestion } from './actors-questions.ts'
import { actorQuestion, sentQuestion } from '../record-questions.ts'
import { Copying } from './actors-copied.ts'
import { HeadingFocus } from './actors-focus.ts'
import { detailHeader } from './actors-header.ts'
import { inspector } from './actors-inspector.ts'
import { LogReader } from './actors-log.ts'
import { RowInSight } from './actors-row-in-sight.ts'
import { logTable, replayBar, type Replay } from './actors-replay.ts'
import { Seconds } from './actors-seconds.ts'
import { SignalboxSent } from './actors-sent.ts'
import { detailSheet } from './actors-detail-sheet.ts'
import { actorMissing, chartMissing, isAbove, partChoice, toldPart, writtenIn, type Part } from './actors-parts.ts'
import { explanationSheet } from './explanation-view.ts'

/**
 * @element signalbox-actor
 * @attr kind - the actor's kind: command, subscription, ownership
 * @attr actor-id - its id
 */
export class SignalboxActor extends View {
  static override styles = [sheet, explanationSheet, detailSheet]
  static override properties: PropertyDeclarations = {
    ...viewProperties,
    kind: { type: String },
    actorId: { type: String, attribute: 'actor-id' },
    _looking: { state: true },
    _outline: { state: true },
    _pane: { state: true },
    leave: { attribute: false },
  }
  declare kind: string
  declare actorId: string
  /** The revision that is looked at; null follows the actor. */
  declare _looking: number | null
  declare _outline: boolean
  /** Which part is shown where there is no room for all; null until somebody chooses. */
  declare _pane: Part | null
  /** Where Escape leads from the present; false: nowhere. */
  declare leave: () => boolean

  readonly #actor = new Query(
    this,
    () => this.app && { queries: this.app.queries, question: actorQuestion(this.kind, this.actorId) },
  )
  readonly #chart = new Query(this, () => {
    const version = this.#step?.machineVersion ?? this.#detail?.machineVersion
    return this.app && version !== undefined
      ? { queries: this.app.queries, question: chartQuestion(this.kind, version) }
      : undefined
  })
  readonly #sent = new Query(this, () =>
    this.app && this.kind === 'command'
      ? { queries: this.app.queries, question: sentQuestion(this.actorId) }
      : undefined,
  )
  readonly #live = new Select(
    this,
    () => this.app?.live.state,
    (state) => state,
  )
  readonly #log = new LogReader(this)
  readonly #clock = new ServerClock()
  readonly #sight = new RowInSight()
  readonly #copying = new Copying(this)
  /** For whoever opens it by a key. */
  readonly heading = new HeadingFocus(this)
  #stopKeys: (() => void) | undefined

  constructor() {
    super()
    this.kind = ''
    this.actorId = ''
    this._looking = null
    this._outline = false
    this._pane = null
    this.leave = () => false
    new Clock(this)
    // Who waits commits nothing, and whose places it waits for, or who holds it and is gone, may be another process.
    new Again(
      this,
      () => this.app,
      () => {
        const { data } = this.#actor
        if (data && isUnheard(data, this.#clock.nowMs(data))) this.#actor.refresh()
      },
    )
    new Seconds(this, () => {
      const { timers, lease } = this.#detail ?? { timers: [], lease: null }
      return this.#isLive && (timers.length > 0 || lease !== null || (this.#actor.data?.wait ?? null) !== null)
    })
  }

  override connectedCallback(): void {
    super.connectedCallback()
    this.#stopKeys = this.app?.keys.add(this.#bindings())
  }

  override disconnectedCallback(): void {
    this.#stopKeys?.()
    super.disconnectedCallback()
  }

  #bindings(): readonly Binding[] {
    const chartKey = (keys: string, label: string, run: (chart: SignalboxStatechart) => void): Binding => ({
      keys,
      label,
      group: 'This page',
      run: () => {
        const chart = this.#view
        if (chart) run(chart)
        return chart !== null
      },
    })
    return [
      { keys: ',', label: 'Previous step', group: 'This page', run: () => this.#look(this.#at - 1) },
      { keys: '.', label: 'Next step', group: 'This page', run: () => this.#look(this.#at + 1) },
      {
        keys: 'Escape',
        label: 'Back to now, then to its row',
        group: 'This page',
        run: () => this.#leavePast() || this.leave(),
      },
      chartKey('0', 'Show the whole chart', (chart) => chart.showEverything()),
      chartKey('+', 'Zoom in', (chart) => chart.zoomIn()),
      chartKey('-', 'Zoom out', (chart) => chart.zoomOut()),
    ]
  }

  get #detail(): ActorDetail | undefined {
    const actor = this.#actor.data?.actor
    return actor?.kind === this.kind && actor.id === this.actorId ? actor : undefined
  }

  get #view(): SignalboxStatechart | null {
    return this.renderRoot.querySelector('signalbox-statechart')
  }

  /** Rounds that a machine goes by itself are not kept in its log: then it stands further than its last step. */
  get #isPastLog(): boolean {
    const { steps, isCaughtUp } = this.#log
    const last = steps.at(-1)
    return last !== undefined && isCaughtUp && last.revision < (this.#detail?.revision ?? 0)
  }

  /** Index of the step that is looked at; of the present while following live: the last step, or after it. -1 without steps. */
  get #at(): number {
    const { steps } = this.#log
    const found = this._looking === null ? -1 : steps.findIndex((step) => step.revision === this._looking)
    return found < 0 ? this.#present : found
  }

  get #present(): number {
    return this.#log.steps.length - (this.#isPastLog ? 0 : 1)
  }

  get #step(): ActorStep | undefined {
    return this._looking === null ? undefined : this.#log.steps.find((step) => step.revision === this._looking)
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('kind') || changed.has('actorId')) {
      this._looking = this.#lookingFromPath()
      this.#sight.forget()
    }
    this.#sight.measure(this.#logPane)
    const detail = this.#detail
    if (this.app && detail) this.#log.follow(this.app.api, detail.kind, detail.id, detail.revision)
  }

  override updated(changed: PropertyValues<this>): void {
    const { steps } = this.#log
    if (steps.length === 0) return
    const asked = changed.has('_looking') || changed.has('_pane')
    this.#sight.keep(this.#logPane, String(steps[this.#at]?.revision ?? 'now'), asked)
  }

  get #logPane(): HTMLElement | null {
    return this.renderRoot.querySelector('.log')
  }

  /** A link to a step: `/actors/command/<id>?step=5`. */
  #lookingFromPath(): number | null {
    const { page, query } = this.app?.router.get() ?? {}
    const step = page === 'actor' ? query?.get('step') : null
    return step !== null && step !== undefined && /^\d{1,9}$/.test(step) ? Number(step) : null
  }

  /** Past the last step is live again. */
  #look(index: number): void {
    const { steps } = this.#log
    if (index < 0 || steps.length === 0) return
    this._looking = index >= this.#present ? null : (steps[index]?.revision ?? null)
    this.#keepInPath()
  }

  #leavePast(): boolean {
    if (this._looking === null) return false
    this._looking = null
    this.#keepInPath()
    return true
  }

  #keepInPath(): void {
    const router = this.app?.router
    if (router?.get().page !== 'actor') return
    const path = actorPath(this.kind, this.actorId)
    router.replace(this._looking === null ? path : `${path}?step=${this._looking}`)
  }

  override render(): TemplateResult {
    const detail = this.#detail
    const { fault } = this.#actor.answer
    if (!this.app) return html``
    if (!detail) return fault ? this.#missing() : html`<div class="loading">${skeleton(6, 'page')}</div>`
    const past = this.#step
    const chart = this.#chart.data
    const told = this.#told()
    const part = this.#part(told !== nothing)
    return html`<div class="actor shows-${part}">
      ${this.#header(detail, past, chart !== undefined)}
      <div class="stage ${past ? 'past' : ''}">
        ${fault ? staleNotice(fault, () => this.#actor.refresh()) : nothing} ${told}
        ${this.#picture(past?.value ?? detail.value, chart)}
      </div>
      ${partChoice({
        label: 'Parts of this page',
        className: 'parts',
        parts: told === nothing ? ['chart', 'log', 'details'] : ['told', 'chart', 'log', 'details'],
        shown: part,
        choose: (chosen) => (this._pane = chosen),
      })}
      ${this.#below(this.#replay())}
      <aside class="scroll details" aria-label="Actor details" tabindex="0">
        <div class="sections">
          ${inspector({
            actor: detail,
            definition: chart?.definition,
            past,
            app: this.app,
            nowMs: this.#nowMs,
            isCounting: this.#isLive,
            isSilent: this.#actor.data !== undefined && isHolderSilent(this.#actor.data),
            explanations: this.#explanations.filter((each) => !this.#actor.data || !isAbove(each, this.#actor.data)),
          })}
        </div>
      </aside>
    </div>`
  }

  #missing(): TemplateResult {
    const { fault } = this.#actor.answer
    if (fault?.status !== 404) return html`${fault ? failure(fault, () => this.#actor.refresh()) : nothing}`
    return actorMissing(this.kind, this.actorId, this.app?.router.href('/actors'))
  }

  #header(actor: ActorDetail, past: ActorStep | undefined, hasChart: boolean): TemplateResult {
    return detailHeader({
      actor,
      past,
      hasChart,
      connected: this.#isLive,
      back: this.app?.router.href('/actors') ?? '/actors',
      copied: this.#copying.state,
      outline: this._outline,
      copy: () => this.#copying.copy(this.#view?.mermaid ?? ''),
      toggleOutline: () => (this._outline = !this._outline),
      zoomIn: () => this.#view?.zoomIn(),
      zoomOut: () => this.#view?.zoomOut(),
      showEverything: () => this.#view?.showEverything(),
    })
  }

  get #isLive(): boolean {
    return this.#live.value === 'live'
  }

  /** As last known it stands still: what time alone makes of a lease or a timer is not known without asking. */
  get #nowMs(): number {
    const { data } = this.#actor
    return data && !this.#isLive ? Date.parse(data.at) : this.#clock.nowMs(data)
  }

  get #explanations(): readonly Explanation[] {
    const { data } = this.#actor
    return data ? explainActor(data, this.#nowMs) : []
  }

  /** What needs a person or was settled by one, and what was sent; the former only of now, for the past needs nobody. */
  #told(): TemplateResult | typeof nothing {
    const { app } = this
    const { data } = this.#actor
    if (!app || !data) return nothing
    const above = this._looking === null ? this.#explanations.filter((each) => isAbove(each, data)) : []
    const stay = (): void => {
      this._pane = 'told'
      this.requestUpdate()
    }
    return toldPart({ app, seen: data, send: this.#sent.data?.send, above, root: this.renderRoot, stay })
  }

  #picture(value: StateValue, chart: ChartFile | undefined): TemplateResult {
    const { fault } = this.#chart.answer
    if (!chart && fault) return chartMissing(this.kind, this.#step?.machineVersion ?? this.#detail?.machineVersion)
    return html`<signalbox-statechart
      .definition=${chart?.definition}
      .layout=${chart?.layout}
      .steps=${this.#log.steps}
      .position=${this._looking === null ? -1 : this.#at}
      .value=${value}
      ?wandered=${this.#isPastLog}
      ?outline=${this._outline}
    ></signalbox-statechart>`
  }

  #replay(): Replay | undefined {
    const { app } = this
    const { steps, hasEarlier, reading } = this.#log
    return (
      app && {
        steps,
        hasEarlier,
        reading,
        at: this.#at,
        now: this.#isPastLog ? (this.#detail?.revision ?? null) : null,
        live: this.#step === undefined,
        format: app.format,
        look: (index) => this.#look(index),
        goLive: () => void this.#leavePast(),
        readEarlier: () => this.#log.readEarlier(),
      }
    )
  }

  /** What needs a person comes first, and what one writes stays; else where the actor is. Between the two widths, what is neither log nor details is the log. */
  #part(hasTold: boolean): Part {
    const isLoud = this._looking === null && this.#explanations.some(({ tone }) => tone !== 'quiet')
    const isTold = isLoud || writtenIn(this.renderRoot, this.actorId) !== undefined
    const part = this._pane ?? (isTold ? 'told' : 'chart')
    return part === 'told' && !hasTold ? 'chart' : part
  }

  /** The log is drawn anew only when it changes, not with every second of a countdown: it may hold 2,000 rows. */
  #below(replay: Replay | undefined): TemplateResult {
    const { fault } = this.#log
    return html`${replay ? replayBar(replay) : nothing}
      ${partChoice({
        label: 'Below the chart',
        className: 'panes',
        parts: ['log', 'details'],
        shown: this._pane === 'details' ? 'details' : 'log',
        choose: (chosen) => (this._pane = chosen),
      })}
      <div class="scroll log" role="region" aria-label="Log" tabindex="0">
        ${fault ? staleNotice(fault, () => this.#log.retry()) : nothing}
        ${replay ? guard([replay.steps, replay.at, replay.now, replay.hasEarlier, replay.reading], () => logTable(replay)) : nothing}
      </div>
      <p class="sr" role="status">${this.#spoken()}</p>`
  }

  /** The chart announces steps; without a picture the page does. */
  #spoken(): string {
    const step = this.#step
    return this.#chart.data || !step ? '' : `Step ${step.revision}: ${describeEvent(step.event.type).label}`
  }
}

define('signalbox-json', SignalboxJson)
define('signalbox-statechart', SignalboxStatechart)
define('signalbox-sent', SignalboxSent)
define('signalbox-actor', SignalboxActor)

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-actor': SignalboxActor
  }
}
