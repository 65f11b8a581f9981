/**
 * `<signalbox-access>`: who may see and do what. Owns the record that its views show, and asking before every change, with what it
 * changes for whom. The views are access-*.ts; what a grant means is the server's.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import * as z from 'zod/mini'
import { effectsOf, effectWords } from '../../domain/access-effects.ts'
import { type App, sessionQuestion } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { Select } from '../controllers/select.ts'
import { SignalboxConfirm } from '../elements/confirm.ts'
import { failure, skeleton, staleNotice } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { define } from '../elements/view.ts'
import type { Binding } from '../keys.ts'
import { agentsQuestion } from '../agent-questions.ts'
import { accessQuestion, adminsOnly, Directory, type Proposal, type ProposeEvent } from './access-data.ts'
import { SignalboxAccessGrants } from './access-grants.ts'
import { credentials, people } from './access-people.ts'
import { accessSheet } from './access-sheet.ts'
import { SignalboxAccessTeams } from './access-teams.ts'
import { SignalboxAccessWhy } from './access-why.ts'

define('signalbox-confirm', SignalboxConfirm)
define('signalbox-access-grants', SignalboxAccessGrants)
define('signalbox-access-teams', SignalboxAccessTeams)
define('signalbox-access-why', SignalboxAccessWhy)

const views = [
  { id: 'people', label: 'People' },
  { id: 'teams', label: 'Teams' },
  { id: 'grants', label: 'Grants' },
  { id: 'why', label: 'Why can they see it?' },
  { id: 'credentials', label: 'Credentials' },
] as const
type Shown = (typeof views)[number]['id']

const Updated = z.object({ updated: z.boolean() })
const pathOf = (view: Shown): string => (view === 'people' ? '/access' : `/access/${view}`)

export class SignalboxAccess extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    _proposal: { state: true },
    _wanted: { state: true },
    _done: { state: true },
  }
  static override styles = [sheet, accessSheet]
  declare app: App
  declare _proposal: Proposal | undefined
  declare _wanted: string
  /** What was changed last, for those who do not see the table change. */
  declare _done: string
  #session = new Query(this, () => ({ queries: this.app.queries, question: sessionQuestion }))
  #record = new Query(this, () => (this.#isAdmin ? { queries: this.app.queries, question: accessQuestion } : undefined))
  #agents = new Query(this, () => (this.#isAdmin ? { queries: this.app.queries, question: agentsQuestion } : undefined))
  #route = new Select(
    this,
    () => this.app.router,
    (route) => route,
  )
  #stopKeys: (() => void) | undefined

  constructor() {
    super()
    this._proposal = undefined
    this._wanted = ''
    this._done = ''
  }

  override connectedCallback(): void {
    super.connectedCallback()
    const keys = views.map(({ id, label }, at): Binding => ({
      keys: String(at + 1),
      label: `Access: ${label}`,
      group: 'This page',
      run: () => this.app.router.go(pathOf(id)),
    }))
    this.#stopKeys = this.app.keys.add(keys)
    this.addEventListener('propose', this.#heard)
  }

  override disconnectedCallback(): void {
    this.#stopKeys?.()
    this.removeEventListener('propose', this.#heard)
    super.disconnectedCallback()
  }

  get #isAdmin(): boolean {
    return this.#session.data?.user.role === 'admin'
  }

  get #shown(): Shown | undefined {
    const wanted = this.#route.value?.params['view'] ?? 'people'
    return views.find(({ id }) => id === wanted)?.id
  }

  readonly #heard = (event: Event): void => {
    this._proposal = (event as ProposeEvent).proposal
  }

  async #change({ change, title }: Proposal): Promise<void> {
    await this.app.api.change(accessQuestion.path, { method: 'POST', body: change }, Updated)
    this.#record.refresh()
    this._done = `Done: ${title.replace(/\?$/, '.')}`
  }

  override render(): TemplateResult {
    const shown = this.#shown
    return html`<header class="head">
        <h1 class="h-xl">Access</h1>
        ${
          this.#isAdmin
            ? html`<nav class="segments" aria-label="Access">
                ${views.map(
                  ({ id, label }) =>
                    html`<a
                      href=${this.app.router.href(pathOf(id))}
                      data-route=${pathOf(id)}
                      aria-current=${id === shown ? 'page' : nothing}
                      >${label}</a
                    >`,
                )}
              </nav>`
            : nothing
        }
      </header>
      <div class="body scroll" tabindex="0" role="region" aria-label="Access">${this.#body(shown)}</div>
      <p class="sr" role="status">${this._done}</p>
      ${this.#confirm()}`
  }

  #body(shown: Shown | undefined): TemplateResult {
    const { data, fault } = this.#record.answer
    const retry = (): void => this.#record.refresh()
    if (this.#session.data && !this.#isAdmin) return adminsOnly('Access')
    if (!data) return fault ? failure(fault, retry) : skeleton(6)
    const directory = new Directory(data, this.#agents.data?.agents)
    return html`<div class="in">${fault ? staleNotice(fault, retry) : nothing}${this.#view(shown, directory)}</div>`
  }

  #view(shown: Shown | undefined, directory: Directory): TemplateResult {
    const { app } = this
    const filter = (wanted: string): void => {
      this._wanted = wanted
    }
    switch (shown) {
      case 'people':
        return people(directory, { app, wanted: this._wanted, filter })
      case 'teams':
        return html`<signalbox-access-teams .app=${app} .directory=${directory}></signalbox-access-teams>`
      case 'grants':
        return html`<signalbox-access-grants .app=${app} .directory=${directory}></signalbox-access-grants>`
      case 'why':
        return html`<signalbox-access-why
          .app=${app}
          .directory=${directory}
          .query=${this.#route.value?.query}
        ></signalbox-access-why>`
      case 'credentials':
        return credentials(directory, app)
      case undefined:
        return html`<div class="empty">${icon('users', 28)}<b>There is no such view</b></div>`
    }
  }

  #confirm(): TemplateResult | typeof nothing {
    const proposal = this._proposal
    const record = this.#record.data
    if (!proposal || !record) return nothing
    const directory = new Directory(record, this.#agents.data?.agents)
    const effects = effectWords(effectsOf(record, proposal.change, directory.routesSkills), (id) => directory.agent(id))
    const now = effects.length === 0 ? ['Nobody gains or loses anything by it now.'] : effects
    return html`<signalbox-confirm
      .title=${proposal.title}
      .sentences=${[...now, ...proposal.sentences]}
      .word=${proposal.word}
      .run=${() => this.#change(proposal)}
      @close=${() => {
        this._proposal = undefined
      }}
    ></signalbox-confirm>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-access': SignalboxAccess
  }
}
