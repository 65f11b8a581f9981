/**
 * `<signalbox-audit>`: the audit trail, newest first. Owns the filters, which the address keeps, and paging through it. Rows are
 * audit-rows.ts, the chain and the exports audit-chain.ts; who may read what is the server's.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { auditGroups, type AuditAnswer, type AuditGroup } from '../../domain/audit.ts'
import { type ApiFault, faultOf } from '../api.ts'
import { type App, sessionQuestion } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { Select } from '../controllers/select.ts'
import { failure, skeleton } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { define } from '../elements/view.ts'
import type { Binding } from '../keys.ts'
import { agentsQuestion } from '../agent-questions.ts'
import { accessQuestion, adminsOnly, Directory } from './access-data.ts'
import { SignalboxAuditChain } from './audit-chain.ts'
import { auditRows, namesFrom } from './audit-rows.ts'
import { auditSheet } from './audit-sheet.ts'
import { auditPath, type AuditFilters, filtersIn, noFilters, queryOf, readAudit } from './audit-data.ts'

define('signalbox-audit-chain', SignalboxAuditChain)

type Shown = AuditGroup | 'all'
const groupWords: Record<Shown, string> = {
  all: 'Everything',
  approvals: 'Approvals',
  ownership: 'Ownership',
  commands: 'Messages',
  access: 'Access',
}
const groups: readonly Shown[] = ['all', ...auditGroups]

/** More rows than this are not read but exported. */
const shownLimit = 1_000

export class SignalboxAudit extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    _pages: { state: true },
    _fault: { state: true },
    _reading: { state: true },
    _utc: { state: true },
  }
  static override styles = [sheet, auditSheet]
  declare app: App
  declare _pages: readonly AuditAnswer[]
  declare _fault: ApiFault | undefined
  declare _reading: boolean
  declare _utc: boolean
  #session = new Query(this, () => ({ queries: this.app.queries, question: sessionQuestion }))
  #record = new Query(this, () => (this.#isAdmin ? { queries: this.app.queries, question: accessQuestion } : undefined))
  #agents = new Query(this, () => (this.#isAdmin ? { queries: this.app.queries, question: agentsQuestion } : undefined))
  #route = new Select(
    this,
    () => this.app.router,
    (route) => route,
  )
  /** People who were seen doing something, for the filter: there is no list of all who ever did. */
  readonly #actors = new Map<string, string>()
  #asked: string | undefined
  #cut: AbortController | undefined
  #stopKeys: (() => void) | undefined

  constructor() {
    super()
    this._pages = []
    this._fault = undefined
    this._reading = false
    this._utc = false
  }

  override connectedCallback(): void {
    super.connectedCallback()
    const keys = groups.map((group, at): Binding => ({
      keys: String(at + 1),
      label: `Audit: ${groupWords[group].toLowerCase()}`,
      group: 'This page',
      run: () => this.#filter({ group }),
    }))
    this.#stopKeys = this.app.keys.add([
      ...keys,
      { keys: 'n', label: 'Read the newest records', group: 'This page', run: () => void this.#read() },
    ])
  }

  override disconnectedCallback(): void {
    this.#stopKeys?.()
    this.#cut?.abort()
    super.disconnectedCallback()
  }

  get #isAdmin(): boolean {
    return this.#session.data?.user.role === 'admin'
  }

  get #filters(): AuditFilters {
    return filtersIn(this.#route.value?.query)
  }

  #filter(changed: Partial<AuditFilters>): void {
    const query = queryOf({ ...this.#filters, ...changed })
    this.app.router.go(query === '' ? '/audit' : `/audit?${query}`)
  }

  override willUpdate(_changed: PropertyValues): void {
    if (this.#route.value?.page !== 'audit' || !this.#isAdmin) return
    const wanted = auditPath(this.#filters)
    if (wanted === this.#asked) return
    this.#asked = wanted
    void this.#read()
  }

  /** The first page anew, or the one behind the last. Another filter meanwhile makes the answer nobody's. */
  async #read(cursor?: string): Promise<void> {
    this.#cut?.abort()
    const cut = new AbortController()
    this.#cut = cut
    this._fault = undefined
    this._reading = true
    if (cursor === undefined && this.#asked !== auditPath(this.#filters)) this._pages = []
    try {
      const page = await readAudit(this.app.api, { ...this.#filters, cursor }, cut.signal)
      if (cut.signal.aborted) return
      for (const { actorUserId } of page.entries)
        if (actorUserId !== null) this.#actors.set(actorUserId, page.people[actorUserId] ?? actorUserId.slice(0, 8))
      this._pages = cursor === undefined ? [page] : [...this._pages, page]
    } catch (error) {
      if (cut.signal.aborted) return
      this._fault = faultOf(error)
      if (cursor === undefined) this._pages = []
    }
    this._reading = false
  }

  override render(): TemplateResult {
    if (this.#session.data && !this.#isAdmin) {
      return html`<header class="head"><h1 class="h-xl">Audit</h1></header>
        ${adminsOnly('The audit trail')}`
    }
    return html`<header class="head">
        <h1 class="h-xl">Audit</h1>
        <span class="grow"></span>
        <button
          class="small ghost"
          aria-pressed=${this._utc}
          title="Times of this machine or of the world"
          @click=${() => {
            this._utc = !this._utc
          }}
        >
          ${this._utc ? 'UTC' : 'Local time'}
        </button>
        <button class="small" title="Read the newest records (n)" @click=${() => void this.#read()}>
          ${icon('refresh-cw', 14)}Newest
        </button>
      </header>
      <div class="body scroll" tabindex="0" role="region" aria-label="Audit trail">
        <div class="in">
          ${
            this.#isAdmin
              ? html`<signalbox-audit-chain .app=${this.app} .filters=${this.#filters}></signalbox-audit-chain>`
              : nothing
          }
          ${this.#filterBar()} ${this.#list()}
        </div>
      </div>`
  }

  #filterBar(): TemplateResult {
    const { group, actor, since, until, taskId } = this.#filters
    const actors = [...this.#actors].toSorted(([, a], [, b]) => a.localeCompare(b))
    const dateField = (which: 'since' | 'until', label: string, value: string): TemplateResult =>
      html`<label class="field"
        ><span>${label}</span
        ><input
          type="date"
          .value=${value}
          @change=${(event: Event & { currentTarget: HTMLInputElement }) =>
            this.#filter({ [which]: event.currentTarget.value })}
      /></label>`
    const isFiltered = queryOf(this.#filters) !== ''
    return html`<div class="filters" role="search" aria-label="Audit trail">
      <div class="segments" role="group" aria-label="What it is about">
        ${groups.map(
          (each) =>
            html`<button aria-pressed=${group === each} @click=${() => this.#filter({ group: each })}>
              ${groupWords[each]}
            </button>`,
        )}
      </div>
      <label class="field"
        ><span>Who</span
        ><select
          @change=${(event: Event & { currentTarget: HTMLSelectElement }) =>
            this.#filter({ actor: event.currentTarget.value })}
        >
          <option value="" ?selected=${actor === ''}>Anybody</option>
          ${actor !== '' && !this.#actors.has(actor) ? html`<option value=${actor} selected>${actor.slice(0, 8)}</option>` : nothing}
          ${actors.map(([id, name]) => html`<option value=${id} ?selected=${id === actor}>${name}</option>`)}
        </select></label
      >
      ${dateField('since', 'From', since)} ${dateField('until', 'To', until)}
      ${
        taskId === ''
          ? nothing
          : html`<button class="small" title="Show every task" @click=${() => this.#filter({ taskId: '' })}>
              One task${icon('x', 13)}
            </button>`
      }
      ${isFiltered ? html`<button class="small ghost" @click=${() => this.#filter(noFilters)}>Clear</button>` : nothing}
    </div>`
  }

  #nothing(isFiltered: boolean): TemplateResult {
    return html`<div class="empty small">
      ${icon('scroll-text', 28)}<b>${isFiltered ? 'No record matches' : 'Nothing is recorded yet'}</b>
      <p>
        ${isFiltered ? 'Nothing that was recorded fits these filters.' : 'What people send, approve and change here is listed as it happens.'}
      </p>
      ${isFiltered ? html`<div class="row"><button @click=${() => this.#filter(noFilters)}>Clear filters</button></div>` : nothing}
    </div>`
  }

  #list(): TemplateResult {
    const entries = this._pages.flatMap((page) => page.entries)
    const retry = (): void => void this.#read()
    const last = this._pages.at(-1)
    if (!last) return this._fault ? failure(this._fault, retry) : skeleton(8)
    if (entries.length === 0) return this.#nothing(queryOf(this.#filters) !== '')
    const directory = this.#record.data && new Directory(this.#record.data, this.#agents.data?.agents)
    const { next } = last
    return html`${auditRows(entries, {
      app: this.app,
      utc: this._utc,
      names: namesFrom(this._pages, directory),
      context: Object.fromEntries(this._pages.flatMap((page) => Object.entries(page.context))),
      onActor: (actor) => this.#filter({ actor }),
      onTask: (taskId) => this.#filter({ taskId }),
    })}
    ${this._fault ? html`<p class="fault" role="alert">${icon('triangle-alert', 14)}<span>${this._fault.message}</span></p>` : nothing}
    ${
      next !== null && entries.length < shownLimit
        ? html`<button class="more" ?disabled=${this._reading} @click=${() => void this.#read(next)}>
            ${this._reading ? 'Reading…' : 'Older records'}
          </button>`
        : html`<p class="faint end">
            ${next === null ? 'This is where it begins.' : `The newest ${shownLimit} are shown. Narrow the dates, or export.`}
          </p>`
    }`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-audit': SignalboxAudit
  }
}
