/**
 * `<signalbox-agents>`: the registered agents, one row each, and the page of one agent. Owns the list, its filter and the
 * way to "Add agent"; registering itself is add-agent.ts, one agent is agent.ts.
 */
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import type { Agent } from '../../domain/agent.ts'
import { sessionQuestion, type App } from '../app.ts'
import { hostOf } from '../card.ts'
import { Again } from '../controllers/again.ts'
import { KeepFocus } from '../controllers/keep-focus.ts'
import { Query } from '../controllers/query.ts'
import { RowKeys } from '../controllers/rows.ts'
import { Select } from '../controllers/select.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { scoreBar } from '../elements/report.ts'
import { reportSheet } from '../elements/report-sheet.ts'
import { sheet } from '../elements/sheet.ts'
import { define, View, viewProperties } from '../elements/view.ts'
import { isOutage } from '../queries.ts'
import { answeringQuestion, isUnanswered } from '../agent-questions.ts'
import { agentMark, trustMarks } from '../states.ts'
import { SignalboxAddAgent } from './add-agent.ts'
import { SignalboxAgent } from './agent.ts'
import { agentMarksSheet, troubledQuestion, troubleMark } from './agent-marks.ts'
import { agentsSheet } from './agents-sheet.ts'

define('signalbox-agent', SignalboxAgent)
define('signalbox-add-agent', SignalboxAddAgent)

const matches = (agent: Agent, wanted: string): boolean =>
  [agent.name ?? '', agent.cardUrl, ...(agent.skills ?? []).map(({ name }) => name)].some((text) =>
    text.toLowerCase().includes(wanted),
  )

/** That an agent answers again is no change that anybody hears of: while one is shown not to, the list asks them all once a minute. */
const brokenAgainMs = 60_000

const byName = (a: Agent, b: Agent): number => (a.name ?? a.cardUrl).localeCompare(b.name ?? b.cardUrl)

export class SignalboxAgents extends View {
  static override properties: PropertyDeclarations = {
    ...viewProperties,
    _adding: { state: true },
    _wanted: { state: true },
  }
  static override styles = [sheet, reportSheet, agentsSheet, agentMarksSheet]
  declare _adding: boolean
  declare _wanted: string
  #route = new Select(
    this,
    () => this.app?.router,
    (route) => route,
  )
  #askedMs = performance.now()
  #agents = new Query(this, () => this.app && { queries: this.app.queries, question: answeringQuestion })
  #troubled = new Query(this, () =>
    this.app && this.#route.value?.page === 'agents'
      ? { queries: this.app.queries, question: troubledQuestion }
      : undefined,
  )
  #session = new Query(this, () => this.app && { queries: this.app.queries, question: sessionQuestion })

  constructor() {
    super()
    this._adding = false
    this._wanted = ''
    // To ask for the list is to ask every agent; what stands in their way the database knows, so this also tells whether it answers.
    new Again(
      this,
      () => this.app,
      () => {
        this.#troubled.refresh()
        // That the database is back is no change that would be told of, and agents are asked for nothing while it is away.
        const { fault, fetching, data } = this.#agents.answer
        const isBack = isOutage(fault) && !isOutage(this.#troubled.answer.fault)
        const mayBeBack =
          data?.agents.some(({ error }) => error !== undefined) && performance.now() - this.#askedMs >= brokenAgainMs
        if (this.#route.value?.page === 'agents' && !fetching && (isBack || mayBeBack)) this.#askAgain()
      },
    )
    new KeepFocus(this, () => this.#whereNow())
    new RowKeys(this, 'tbody a', () => [
      { keys: '/', label: 'Filter agents', group: 'This page', run: () => this.#focusFilter() },
      {
        keys: 'n',
        label: 'Add an agent',
        group: 'This page',
        open: () => this.#mayAdminister,
        run: () => this.#add(),
      },
    ])
  }

  #askAgain(): void {
    this.#askedMs = performance.now()
    this.#agents.refresh()
  }

  protected override get startPath(): string {
    return '/agents'
  }

  #focusFilter(): void | false {
    const field = this.renderRoot.querySelector<HTMLInputElement>('input[type=search]')
    if (!field) return false
    field.focus()
  }

  #add(): void {
    this._adding = true
  }

  /** The button was inert while the dialog was open, so the browser could not give the focus back to it. */
  #added(): void {
    this._adding = false
    void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>('.head .primary')?.focus())
  }

  /** Back from an agent at its row; where no row was left, at the field that says which are. */
  #whereNow(): HTMLElement | null {
    if (this.#route.value?.page !== 'agents') return null
    const id = this.#left
    const row =
      id === undefined ? null : this.renderRoot.querySelector<HTMLElement>(`[data-route='/agents/${CSS.escape(id)}']`)
    return row ?? this.renderRoot.querySelector<HTMLElement>('input[type=search]')
  }
  /** The agent that was shown last, until the list is drawn again. */
  #left: string | undefined

  override updated(changed: PropertyValues): void {
    super.updated(changed)
    if (this.#route.value?.page === 'agents') this.#left = undefined
  }

  get #mayAdminister(): boolean {
    return this.#session.data?.user.role === 'admin'
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    const route = this.#route.value
    if (!app || !route) return nothing
    const id = route.page === 'agent' ? route.params['id'] : undefined
    this.#left = id ?? this.#left
    if (id !== undefined) return html`<signalbox-agent .app=${app} agent-id=${id}></signalbox-agent>`
    return this.#list(app)
  }

  #list(app: App): TemplateResult {
    const all = this.#agents.data?.agents
    return html`<header class="head" ?inert=${this._adding} aria-hidden=${this._adding ? 'true' : nothing}>
        <h1 class="h-xl">Agents</h1>
        ${all ? html`<span class="chip num">${all.length}</span>` : nothing}
        <span class="grow"></span>
        ${
          all && all.length > 0
            ? html`<input
                type="search"
                aria-label="Filter agents"
                placeholder="Filter by name, skill or URL"
                .value=${this._wanted}
                @input=${(event: Event & { currentTarget: HTMLInputElement }) => {
                  this._wanted = event.currentTarget.value
                }}
              />`
            : nothing
        }
        ${
          this.#mayAdminister
            ? html`<button class="primary" @click=${() => this.#add()}>${icon('plus', 15)}Add agent</button>`
            : nothing
        }
      </header>
      <div class="body scroll">${this.#rows(app, all)}</div>
      ${
        this._adding
          ? html`<signalbox-add-agent .app=${app} @close=${() => this.#added()}></signalbox-add-agent>`
          : nothing
      }`
  }

  #rows(app: App, all: readonly Agent[] | undefined): TemplateResult {
    const { at } = this.#agents.answer
    const away = this.#troubled.answer.fault
    const fault = this.#agents.answer.fault ?? (isOutage(away) ? away : undefined)
    const retry = (): void => {
      this.#agents.refresh()
      this.#troubled.refresh()
    }
    if (!all) return fault ? failure(fault, retry) : skeleton(6)
    if (all.length === 0) {
      return html`<div class="empty">
        ${icon('bot', 28)}<b>No agents yet</b>
        <p>
          ${
            this.#mayAdminister
              ? 'Add one by the URL of its Agent Card. The console reads the card, says how well it keeps to A2A, and can then send it work.'
              : 'An administrator adds agents, and grants them to people and teams. What is granted to you shows here.'
          }
        </p>
      </div>`
    }
    const wanted = this._wanted.trim().toLowerCase()
    const shown = all.filter((agent) => matches(agent, wanted)).toSorted(byName)
    return html`${fault ? staleNotice(fault, retry, at && app.format.clock(at)) : nothing}
    ${
      shown.length === 0
        ? html`<div class="empty">
            ${icon('list-filter', 28)}<b>No agent matches</b>
            <p>
              Nothing in ${all.length} names, skills and
              URLs.${all.some(isUnanswered) ? ' Some Agent Cards are still being fetched: their skills are not known yet.' : ''}
            </p>
            <div class="row">
              <button
                @click=${() => {
                  this._wanted = ''
                }}
              >
                Clear filter
              </button>
            </div>
          </div>`
        : this.#table(app, shown)
    }`
  }

  #table(app: App, agents: readonly Agent[]): TemplateResult {
    return html`<table>
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col">Card</th>
          <th scope="col">A2A</th>
          <th scope="col" class="right">Skills</th>
          <th scope="col">Report</th>
        </tr>
      </thead>
      <tbody>
        ${repeat(
          agents,
          ({ id }) => id,
          (agent) => this.#row(app, agent),
        )}
      </tbody>
    </table>`
  }

  #row(app: App, agent: Agent): TemplateResult {
    const path = `/agents/${agent.id}`
    return html`<tr>
      <th scope="row">
        <a class="who" href=${app.router.href(path)} data-route=${path}>
          ${agentMark()}<span class="names"
            ><bdi class="ell name">${agent.name ?? hostOf(agent.cardUrl)}</bdi
            ><span class="mono ell faint" title=${agent.cardUrl}
              >${agent.error === undefined ? hostOf(agent.cardUrl) : agent.cardUrl}</span
            >${troubleMark(this.#troubled.data, agent.id)}</span
          >
        </a>
      </th>
      ${isUnanswered(agent) ? this.#unanswered() : this.#answer(agent)}
    </tr>`
  }

  /** Of its answer nothing has come; where the list broke off, nothing is on its way either. */
  #unanswered(): TemplateResult {
    const words = this.#agents.answer.fault ? 'Its Agent Card was not fetched.' : 'Its Agent Card is being fetched…'
    return html`<td colspan="4" class="unread late">
      <span class="row muted">${icon('clock', 14)}<span class="grow">${words}</span></span>
    </td>`
  }

  #answer({ trust: judged, error, report, skills }: Agent): TemplateResult {
    const trust = judged && trustMarks[judged]
    if (error !== undefined)
      return html`<td colspan="4" class="unread broken">
        <span class="row tone-bad"
          >${icon('circle-x', 14)}<span class="grow">${trust ? `${trust.word}: ` : ''}${error}</span></span
        >
      </td>`
    return html`<td>
        ${
          trust
            ? html`<span class=${trust.tone ? `trust tone-${trust.tone}` : 'trust muted'}
                >${icon(trust.icon, 14)}${trust.word}</span
              >`
            : nothing
        }
      </td>
      <td class="num">${report?.version ?? ''}</td>
      <td class="num right">${skills?.length ?? ''}</td>
      <td>${report ? scoreBar(report.score) : nothing}</td>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-agents': SignalboxAgents
  }
}
