/**
 * `<signalbox-agent agent-id>`: one agent: what its card says, how well the card keeps to A2A, the card itself, and removing
 * it. Everything a card says is shown as text; its URLs are never links.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import * as z from 'zod/mini'
import type { Role } from '../../domain/access.ts'
import type { Agent } from '../../domain/agent.ts'
import { type ApiFault, faultOf } from '../api.ts'
import { type App, sessionQuestion } from '../app.ts'
import { type CardFacts, hostOf, readCard } from '../card.ts'
import { Again } from '../controllers/again.ts'
import { Lazy } from '../controllers/lazy.ts'
import { Query } from '../controllers/query.ts'
import { failure, skeleton } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { SignalboxJson } from '../elements/json-view.ts'
import { whenLoaded } from '../elements/not-loaded.ts'
import '../elements/not-there.ts'
import { reportView } from '../elements/report.ts'
import { reportSheet } from '../elements/report-sheet.ts'
import { sheet } from '../elements/sheet.ts'
import { define } from '../elements/view.ts'
import type { Binding } from '../keys.ts'
import { type AgentDetail, agentQuestion, answeringQuestion } from '../agent-questions.ts'
import { refreshAgents } from '../questions.ts'
import { agentMark, chip, trustMarks } from '../states.ts'
import { agentActorsPath } from './agent-actors-path.ts'
import { SignalboxAgentCredential } from './agent-credential.ts'
import { agentSheet } from './agent-sheet.ts'
import { agentTrust } from './agent-trust.ts'

define('signalbox-json', SignalboxJson)
define('signalbox-agent-credential', SignalboxAgentCredential)

const loadTroubles = async (): Promise<void> =>
  define('signalbox-agent-troubles', (await import('./agent-troubles.ts')).SignalboxAgentTroubles)

/** In the place of what only the card tells. */
const awaited = html`<section>
  <p class="row muted late">${icon('clock', 15)}Its Agent Card is being fetched…</p>
  ${skeleton(4, 'page')}
</section>`

/** One that does not answer is asked again while somebody looks at its page. */
const againMs = 15_000

const Removed = z.object({ removed: z.boolean() })

export class SignalboxAgent extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    agentId: { attribute: 'agent-id' },
    _removing: { state: true },
    _fault: { state: true },
  }
  static override styles = [sheet, reportSheet, agentSheet]
  declare app: App
  declare agentId: string
  declare _removing: 'no' | 'asked' | 'running'
  declare _fault: ApiFault | undefined
  #agent = new Query(this, () => ({ queries: this.app.queries, question: agentQuestion(this.agentId) }))
  #all = new Query(this, () => ({ queries: this.app.queries, question: answeringQuestion }))
  #session = new Query(this, () => ({ queries: this.app.queries, question: sessionQuestion }))
  #lazy = new Lazy(this)
  #askedMs = performance.now()
  #stopKeys: (() => void) | undefined

  constructor() {
    super()
    this.agentId = ''
    this._removing = 'no'
    this._fault = undefined
    new Again(
      this,
      () => this.app,
      () => this.#askAgain(),
    )
  }

  /** That it answers again is no change that anybody hears of. */
  #askAgain(): void {
    const { fault, fetching } = this.#agent.answer
    if (!fault || fetching || this.#isGone || performance.now() - this.#askedMs < againMs) return
    this.#askedMs = performance.now()
    this.#agent.refresh()
  }

  override connectedCallback(): void {
    super.connectedCallback()
    const bindings: Binding[] = [
      { keys: 'Escape', label: 'Back to agents', group: 'Move', run: () => this.app.router.go('/agents') },
      {
        keys: 'c',
        label: 'New task for this agent',
        group: 'This page',
        open: () => this.#maySend,
        run: () => this.#compose(),
      },
    ]
    this.#stopKeys = this.app.keys.add(bindings)
  }

  override disconnectedCallback(): void {
    this.#stopKeys?.()
    super.disconnectedCallback()
  }

  get #role(): Role | undefined {
    return this.#session.data?.user.role
  }

  get #listed(): Agent | undefined {
    return this.#all.data?.agents.find(({ id }) => id === this.agentId)
  }

  get #isGone(): boolean {
    return this.#agent.answer.fault?.status === 404
  }

  /** Also while it is not known: where nothing may be sent the next page says why. */
  get #maySend(): boolean {
    const { operableSkills } = this.#agent.data ?? this.#listed ?? {}
    return !this.#isGone && this.#role !== 'viewer' && operableSkills?.length !== 0
  }

  #compose(): void {
    this.app.router.go(`/tasks/new?agent=${encodeURIComponent(this.agentId)}`)
  }

  async #remove(): Promise<void> {
    this._removing = 'running'
    this._fault = undefined
    try {
      await this.app.api.change(`/api/agents/${this.agentId}`, { method: 'DELETE' }, Removed)
      refreshAgents(this.app.queries)
      this.app.router.go('/agents')
    } catch (error) {
      this._fault = faultOf(error)
      this._removing = 'asked'
    }
  }

  #ask(): void {
    this._fault = undefined
    this._removing = 'asked'
    void this.updateComplete.then(() => this.renderRoot.querySelector('dialog')?.showModal())
  }

  override render(): TemplateResult {
    if (this.#isGone)
      return html`<signalbox-not-there
        .app=${this.app}
        what="agent"
        why="It may have been removed."
        path="/agents"
        way="Back to the list"
      ></signalbox-not-there>`
    const { data, fault } = this.#agent.answer
    const listed = this.#listed
    // Only the list tells the trust of a card that is not believed; of one that is, it may be what was true a while ago.
    const refused = listed?.error === undefined ? undefined : listed
    const trust = data?.trust ?? refused?.trust
    const cardUrl = data?.cardUrl ?? listed?.cardUrl
    const facts = readCard(data?.card)
    const actors = agentActorsPath(this.agentId, {})
    const name = facts?.name ?? listed?.name ?? (cardUrl === undefined ? 'Agent' : hostOf(cardUrl))
    return html`<header class="head">
        <p class="row crumb">
          <a class="row muted" href=${this.app.router.href('/agents')} data-route="/agents"
            >${icon('arrow-left', 14)}Back to the list</a
          >
          <a class="row muted aside" href=${this.app.router.href(actors)} data-route=${actors}
            >${icon('workflow', 14)}Its actors</a
          >
        </p>
        <div class="row title">
          ${agentMark()}
          <div class="grow">
            <h1 class="h-xl"><bdi>${name}</bdi></h1>
            <p class="mono faint ell" title=${cardUrl ?? nothing}>${cardUrl ?? ''}</p>
          </div>
          ${trust ? chip(trustMarks[trust]) : nothing}
          ${
            this.#role === 'admin'
              ? html`<button class="ghost danger" @click=${() => this.#ask()}>${icon('trash-2', 14)}Remove</button>`
              : nothing
          }
          ${
            this.#maySend
              ? html`<button class="primary" @click=${() => this.#compose()}>${icon('plus', 15)}New task</button>`
              : nothing
          }
        </div>
      </header>
      <div class="body scroll" tabindex="0" role="region" aria-label="About this agent">
        ${listed || data || fault ? this.#about(facts, refused) : skeleton(5, 'page')}
      </div>
      ${this._removing === 'no' ? nothing : this.#confirm(name, (data ?? listed)?.source === 'env')}`
  }

  /**
   * An agent that does not answer, or not yet, is still registered: it can be given a credential, and removed. One template whether
   * its card has come or not, so that what somebody types meanwhile stays. What stands in its way is not known either where it is
   * the database that does not answer.
   */
  #about(facts: CardFacts | undefined, refused: Agent | undefined): TemplateResult {
    const { data, fault } = this.#agent.answer
    const judged = data ?? refused
    const first = fault ? failure(fault, () => this.#agent.refresh()) : awaited
    return html`<div class="in">
      ${!data && fault?.status === 503 ? nothing : this.#troubles()} ${data ? this.#card(data, facts) : first}
      ${judged?.trust ? agentTrust(judged.trust, judged.signing, judged.cardUrl) : nothing} ${this.#credential()}
      ${data ? this.#asReceived(data, facts) : nothing}
    </div>`
  }

  /** Beside what the card says, and where it cannot be read. */
  #troubles(): TemplateResult | typeof nothing {
    const draw = (): TemplateResult =>
      html`<signalbox-agent-troubles .app=${this.app} agent-id=${this.agentId}></signalbox-agent-troubles>`
    return whenLoaded(this.#lazy, 'signalbox-agent-troubles', loadTroubles, draw, 'notice warn')
  }

  #credential(): TemplateResult | typeof nothing {
    if (this.#role !== 'admin') return nothing
    return html`<signalbox-agent-credential .app=${this.app} agent-id=${this.agentId}></signalbox-agent-credential>`
  }

  #card(agent: AgentDetail, facts: CardFacts | undefined): TemplateResult {
    if (facts) return this.#facts(facts, agent)
    return html`<p class="notice bad">${icon('circle-x', 15)}<span>This agent's card is not a JSON object.</span></p>`
  }

  /** Below what a person does with the agent: how its card is judged, and the card itself. */
  #asReceived(agent: AgentDetail, facts: CardFacts | undefined): TemplateResult {
    return html`${
        agent.report
          ? html`<section>
              <h2 class="label">Compliance report</h2>
              <div class="card pad">${reportView(agent.report)}</div>
            </section>`
          : nothing
      }
      ${facts ? this.#skills(facts) : nothing}
      <section>
        <h2 class="label">Card as received</h2>
        <div class="card pad"><signalbox-json .value=${agent.card}></signalbox-json></div>
      </section>`
  }

  #facts(facts: CardFacts, agent: AgentDetail): TemplateResult {
    const modes = `${facts.inputModes.join(', ') || 'any'} in, ${facts.outputModes.join(', ') || 'any'} out`
    const row = (term: string, value: unknown): TemplateResult =>
      html`<div>
        <dt>${term}</dt>
        <dd>${value}</dd>
      </div>`
    return html`<section>
      ${facts.description ? html`<p class="said lead">${facts.description}</p>` : nothing}
      <dl class="facts">
        ${facts.provider ? row('Provider', html`<bdi>${facts.provider}</bdi>`) : nothing}
        ${facts.version ? row('Version', html`<bdi>${facts.version}</bdi>`) : nothing}
        ${row('Registered', agent.source === 'env' ? 'By the environment (A2A_REGISTERED_AGENTS)' : 'In this console')}
        ${row(
          'Abilities',
          html`<ul class="abilities">
            ${facts.abilities.map(
              ({ word, has }) =>
                html`<li class=${has ? 'row' : 'row faint'}>
                  ${icon(has ? 'check' : 'minus', 14)}${word}${has ? '' : ': no'}
                </li>`,
            )}
          </ul>`,
        )}
        ${row('Modes', html`<bdi>${modes}</bdi>`)}
        ${row('Sign-in', facts.security.length > 0 ? html`<bdi>${facts.security.join(', ')}</bdi>` : 'None asked for')}
        ${row(
          'Interfaces',
          html`<ul>
            ${facts.interfaces.map(
              ({ url, binding, version }) =>
                html`<li><bdi>${binding} ${version}</bdi> <bdi class="mono faint">${url}</bdi></li>`,
            )}
          </ul>`,
        )}
        ${row(
          'Extensions',
          facts.extensions.length === 0
            ? 'None'
            : html`<ul>
                ${facts.extensions.map(
                  ({ uri, description, required }) =>
                    html`<li>
                      <bdi class="mono">${uri}</bdi
                      >${required ? html` <span class="chip line">required</span>` : nothing}
                      ${description ? html`<p class="faint said">${description}</p>` : nothing}
                    </li>`,
                )}
              </ul>`,
        )}
      </dl>
    </section>`
  }

  #skills({ skills }: CardFacts): TemplateResult {
    return html`<section>
      <h2 class="label">Skills <span class="num">${skills.length}</span></h2>
      ${
        skills.length === 0
          ? html`<p class="muted">The card names no skills.</p>`
          : html`<ul class="card skills">
              ${skills.map(
                ({ id, name, description, tags, examples }) =>
                  html`<li>
                    <p class="row">
                      <b><bdi>${name ?? id}</bdi></b
                      ><bdi class="mono faint ell">${id}</bdi>
                    </p>
                    ${description ? html`<p class="said muted">${description}</p>` : nothing}
                    ${tags.length > 0 ? html`<p class="tags">${tags.map((tag) => html`<bdi class="chip line">${tag}</bdi>`)}</p>` : nothing}
                    ${(examples ?? []).map((example) => html`<p class="said faint example">“${example}”</p>`)}
                  </li>`,
              )}
            </ul>`
      }
    </section>`
  }

  #confirm(name: string, seeded: boolean): TemplateResult {
    const close = (): void => this.renderRoot.querySelector('dialog')?.close()
    return html`<dialog
      class="confirm"
      aria-labelledby="ask"
      @keydown=${(event: KeyboardEvent) => event.stopPropagation()}
      @close=${() => {
        this._removing = 'no'
      }}
    >
      <h2 id="ask" class="h-xl">Remove <bdi>${name}</bdi>?</h2>
      ${
        seeded
          ? html`<p>
              This agent comes from the environment variable <span class="mono">A2A_REGISTERED_AGENTS</span>, so it
              cannot be removed here. Take it out of that list and restart the console.
            </p>`
          : html`<p>
              Nothing can be sent to it from here any more. Its tasks and their history stay. Adding the same URL again
              brings it back.
            </p>`
      }
      ${this._fault ? html`<p class="fault" role="alert">${icon('triangle-alert', 14)}<span>${this._fault.message}</span></p>` : nothing}
      <footer>
        <button autofocus @click=${close}>${seeded ? 'Close' : 'Keep it'}</button>
        ${
          seeded
            ? nothing
            : html`<button
                class="destructive"
                ?disabled=${this._removing === 'running'}
                @click=${() => void this.#remove()}
              >
                ${this._removing === 'running' ? 'Removing…' : 'Remove agent'}
              </button>`
        }
      </footer>
    </dialog>`
  }
}
