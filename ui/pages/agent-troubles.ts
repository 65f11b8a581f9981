/**
 * `<signalbox-agent-troubles agent-id>`: what stands in an agent's way, above everything that its card says: that it cannot be
 * read and since when, what was sent to it and did not arrive or may not have, what it did not get yet, and that all its places are
 * taken. Nothing where all is
 * well, and that it is old where it cannot be read. Draws; the words are domain/agent-troubles.ts and domain/command-explanation.ts.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import {
  AgentTroubles,
  fullWords,
  othersWords,
  unreachedWords,
  type UnfollowedTask,
} from '../../domain/agent-troubles.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import type { Explanation } from '../../domain/explanation.ts'
import { needingWords } from '../../domain/needing-words.ts'
import { UnsettledAnswer, type UnsettledSend } from '../../domain/unsettled-send.ts'
import { type App, sessionQuestion } from '../app.ts'
import { Again } from '../controllers/again.ts'
import { Clock } from '../controllers/clock.ts'
import { Query } from '../controllers/query.ts'
import { staleNotice } from '../elements/fetching.ts'
import { icon } from '../elements/icon.ts'
import { SignalboxUnderWay } from '../elements/sends-under-way.ts'
import { sheet } from '../elements/sheet.ts'
import { define } from '../elements/view.ts'
import type { Question } from '../queries.ts'
import { agentActorsPath } from './agent-actors-path.ts'
import { explanationSheet, knownList, remedyLinks } from './explanation-view.ts'

define('signalbox-under-way', SignalboxUnderWay)

/** The newest are enough: the others are among its actors. */
const shownLimit = 3

const troublesQuestion = (agentId: string): Question<AgentTroubles> => ({
  path: `/api/agents/${encodeURIComponent(agentId)}/troubles`,
  schema: AgentTroubles,
  freshness: 'steady',
})

const unsettledQuestion = (agentId: string): Question<UnsettledAnswer> => ({
  path: `/api/sends/unsettled?agentId=${encodeURIComponent(agentId)}`,
  schema: UnsettledAnswer,
  freshness: 'steady',
})

/** What was known then, without what was to come: nobody knows whether it came, or how it goes on. */
function asOfThen(troubles: AgentTroubles): Explanation | null {
  const scopes = troubles.looks.scopes.map((scope) => ({ ...scope, nextTryAt: null }))
  const tasks = troubles.unfollowed.tasks.map((task) => ({ ...task, nextTryAt: null }))
  const { looks, unfollowed } = troubles
  const explanation = unreachedWords({
    ...troubles,
    looks: { ...looks, scopes },
    unfollowed: { ...unfollowed, tasks },
  })
  return explanation && { ...explanation, sentences: [] }
}

/** @element signalbox-agent-troubles */
export class SignalboxAgentTroubles extends LitElement {
  static override properties: PropertyDeclarations = { app: { attribute: false }, agentId: { attribute: 'agent-id' } }
  static override styles = [
    sheet,
    explanationSheet,
    css`
      :host,
      signalbox-under-way {
        display: contents;
      }
      section {
        display: grid;
        gap: 8px;
        min-width: 0;
      }
      p,
      li {
        overflow-wrap: anywhere;
      }
      .which {
        display: grid;
        gap: 8px;
        margin-top: 6px;
      }
      .which bdi {
        font-weight: 540;
      }
      .what {
        display: flex;
        gap: 8px;
        align-items: baseline;
      }
      .which .link {
        display: inline-block;
      }
      .all {
        margin-top: 8px;
      }
    `,
  ]
  declare app: App
  declare agentId: string
  readonly #troubles = new Query(this, () => ({ queries: this.app.queries, question: troublesQuestion(this.agentId) }))
  readonly #unsettled = new Query(this, () => ({
    queries: this.app.queries,
    question: unsettledQuestion(this.agentId),
  }))
  readonly #session = new Query(this, () => ({ queries: this.app.queries, question: sessionQuestion }))

  constructor() {
    super()
    this.agentId = ''
    new Clock(this)
    new Again(
      this,
      () => this.app,
      () => this.#ask(),
    )
  }

  #ask(): void {
    this.#troubles.refresh()
    this.#unsettled.refresh()
  }

  override render(): TemplateResult {
    const { app, agentId } = this
    const { data, fault = this.#unsettled.answer.fault } = this.#troubles.answer
    const unreached = data && (fault ? asOfThen(data) : unreachedWords(data))
    const others = data && othersWords(data)
    const notices = [
      ...(data && unreached ? [this.#unreached(unreached, data.unfollowed.tasks)] : []),
      ...this.#ended(),
      // What was full then is not known to wait still, or when it goes on.
      ...(data && !fault ? data.full.map((each) => this.#full(each.kind, fullWords(each))) : []),
      ...(others ? [this.#others(others)] : []),
    ]
    const troubles =
      notices.length === 0
        ? nothing
        : html`<section aria-labelledby="troubles">
            <h2 class="label" id="troubles">What stands in its way</h2>
            ${notices}
          </section>`
    const stale = fault ? staleNotice(fault, () => this.#ask(), data && app.format.clock(data.at)) : nothing
    return html`${stale}${troubles}<signalbox-under-way .app=${app} .agentId=${agentId}></signalbox-under-way>`
  }

  #link(path: string, words: string | TemplateResult): TemplateResult {
    return html`<a class="link" href=${this.app.router.href(path)} data-route=${path}>${words}</a>`
  }

  /** Only the title is news: times below it change with every try, for as long as it lasts. */
  #unreached(explanation: Explanation, tasks: readonly UnfollowedTask[]): TemplateResult {
    const { title, sentences, known } = explanation
    // What waits and who works is administrators' to see.
    const ways =
      this.#session.data?.user.role === 'admin'
        ? remedyLinks(explanation, {
            app: this.app,
            agentId: this.agentId,
            commandId: null,
            localId: null,
            successorId: null,
          })
        : nothing
    return html`<div class="notice warn" role="note">
      ${icon('unplug', 15)}
      <div class="grow">
        <b role="status">${title}</b>
        ${sentences.map((sentence) => html`<p><bdi>${sentence}</bdi></p>`)} ${knownList(known, this.app)} ${ways}
        ${
          tasks.length === 0
            ? nothing
            : html`<ul class="which" aria-label="The newest of these tasks">
                ${tasks.map(({ localId, title: name }) => html`<li><span class="muted">Task</span> ${this.#link(`/tasks/${localId}`, html`<bdi>${name || 'without words'}</bdi>`)}</li>`)}
              </ul>`
        }
      </div>
    </div>`
  }

  /** What ended failed or in doubt: the newest, and where the others are. */
  #ended(): readonly TemplateResult[] {
    const { data } = this.#unsettled
    if (!data || data.sends.length === 0) return []
    const { sends, more, count } = data
    const shown = sends.slice(0, shownLimit)
    const rest = more || sends.length > shown.length
    return [
      html`<div class="notice warn" role="note">
        ${icon('triangle-alert', 15)}
        <div class="grow">
          <b>${needingWords(count)}</b>
          <ul class="which" aria-label=${rest ? 'The newest of them' : 'All of them'}>
            ${shown.map((send) => this.#send(send))}
          </ul>
          ${
            rest
              ? html`<p class="all">
                  ${this.#link(agentActorsPath(this.agentId, { kind: 'command', attention: true }), 'All of them, and older ones')}
                </p>`
              : nothing
          }
        </div>
      </div>`,
    ]
  }

  #send(send: UnsettledSend): TemplateResult | typeof nothing {
    const explanation = explainCommand(send, Date.now(), null, send.evidence)
    if (!explanation) return nothing
    const { id, action, title, updatedAt } = send
    const { tone, title: explained, sentences } = explanation
    return html`<li>
      <div class="what">
        <span class="grow ell" title=${title}
          >${action === 'cancelTask' ? 'Cancel: ' : ''}<bdi>${title || 'Without words'}</bdi></span
        ><span class="muted num">${this.app.format.when(updatedAt)}</span>
      </div>
      <p>
        <span class="tone-${tone}">${explained}.</span>
        ${
          // What is in doubt is in doubt alike; why something failed is its own.
          tone === 'bad' ? html`<bdi>${sentences[0]}</bdi>` : nothing
        }
        ${this.#link(`/actors/command/${id}`, 'What the command did')}
      </p>
    </li>`
  }

  #full(kind: string, { title, sentences, known }: Explanation): TemplateResult {
    return html`<div class="notice warn" role="note">
      ${icon('clock', 15)}
      <div class="grow">
        <b role="status">${title}</b>
        ${sentences.map((sentence) => html`<p>${sentence}</p>`)} ${knownList(known, this.app)}
        <p class="all">${this.#link(agentActorsPath(this.agentId, { kind, due: true }), 'What waits')}</p>
      </div>
    </div>`
  }

  #others({ title, known }: Explanation): TemplateResult {
    return html`<div class="notice" role="note">
      ${icon('clock', 15)}
      <div class="grow">
        <b>${title}</b>
        ${knownList(known, this.app)}
        <p class="all">${this.#link(agentActorsPath(this.agentId, { kind: 'command' }), 'Its commands')}</p>
      </div>
    </div>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-agent-troubles': SignalboxAgentTroubles
  }
}
