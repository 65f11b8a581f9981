/**
 * `<signalbox-unsettled>`: sends that ended while nobody looked, above the foot of the task list: the first send of a task that
 * never came to be has no other place there. Owns showing, unfolding and putting away (in this browser: what is put away
 * stays on the Actors page); what a send's end means is domain/command-explanation.ts.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { explainCommand } from '../../domain/command-explanation.ts'
import { needingWords } from '../../domain/needing-words.ts'
import { UnsettledAnswer, type UnsettledSend } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import { Clock } from '../controllers/clock.ts'
import { Query } from '../controllers/query.ts'
import { explanationSheet, knownList, remedyLinks } from '../pages/explanation-view.ts'
import type { Question } from '../queries.ts'
import { icon } from './icon.ts'
import { sheet } from './sheet.ts'

const unsettledQuestion: Question<UnsettledAnswer> = {
  path: '/api/sends/unsettled',
  schema: UnsettledAnswer,
  freshness: 'live',
}
const seenKey = 'signalbox.sends-seen'

/** @element signalbox-unsettled */
export class SignalboxUnsettled extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    _open: { state: true },
    _seen: { state: true },
  }
  static override styles = [
    sheet,
    explanationSheet,
    css`
      .strip {
        display: grid;
        grid-template-rows: auto minmax(0, 1fr);
        max-height: 44cqh;
        overflow: hidden;
        border-top: 1px solid var(--sb-border);
        background: var(--sb-warn-soft);
      }
      .line {
        display: flex;
        align-items: center;
        gap: 4px;
        padding: 4px 8px 4px 4px;
      }
      .line .fold {
        flex: 1;
        justify-content: flex-start;
        color: var(--sb-warn);
      }
      ul.sends {
        overflow: auto;
        scrollbar-width: thin;
        background: var(--sb-surface);
        border-top: 1px solid var(--sb-border);
      }
      ul.sends > li {
        padding: 9px 14px 11px;
        font-size: var(--sb-text-s);
      }
      ul.sends > li + li {
        border-top: 1px solid var(--sb-border);
      }
      .what {
        display: flex;
        gap: 8px;
        align-items: baseline;
      }
      .what bdi {
        font-weight: 540;
      }
      p {
        overflow-wrap: anywhere;
      }
      li > p:last-child {
        margin-top: 6px;
      }
    `,
  ]
  declare app: App | undefined
  declare _open: boolean
  /** The newest that was put away (ISO 8601); everything up to it stays away. */
  declare _seen: string
  readonly #sends = new Query(this, () => this.app && { queries: this.app.queries, question: unsettledQuestion })

  constructor() {
    super()
    this._open = false
    this._seen = localStorage.getItem(seenKey) ?? ''
    new Clock(this)
  }

  #putAway(newest: UnsettledSend): void {
    this._seen = newest.updatedAt
    this._open = false
    localStorage.setItem(seenKey, this._seen)
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    const { data } = this.#sends
    if (!app || !data) return nothing
    const sends = data.sends.filter(({ updatedAt }) => updatedAt > this._seen)
    const [newest] = sends
    if (!newest) return nothing
    const more = data.more && sends.length === data.sends.length ? '+' : ''
    const words = needingWords(sends, more === '')
    const why = 'Puts these away in this browser; they stay on the Actors page'
    return html`<section class="strip" aria-label="Messages that need you">
      <p class="sr" role="status">${words}</p>
      <div class="line">
        <button
          class="ghost small fold"
          aria-expanded=${this._open ? 'true' : 'false'}
          aria-controls="sends"
          @click=${() => (this._open = !this._open)}
        >
          ${icon('triangle-alert', 14)}${words}
        </button>
        <button class="ghost small" title=${why} @click=${() => this.#putAway(newest)}>Put away</button>
      </div>
      <ul class="sends" id="sends" ?hidden=${!this._open}>
        ${this._open ? sends.map((send) => this.#send(app, send)) : nothing}
      </ul>
    </section>`
  }

  #send(app: App, send: UnsettledSend): TemplateResult | typeof nothing {
    const { id, agentId, agentName, action, title, updatedAt, evidence } = send
    const explanation = explainCommand(send, null, evidence)
    if (!explanation) return nothing
    const subject = { app, commandId: id, agentId, localId: send.localId ?? evidence?.localId ?? null }
    const actor = `/actors/command/${id}`
    return html`<li>
      <div class="what">
        <bdi class="grow ell" title=${title}
          >${action === 'cancelTask' ? 'Cancel: ' : ''}${title || 'Without words'}</bdi
        ><span class="faint num">${app.format.when(updatedAt)}</span>
      </div>
      <p>
        <bdi class="muted">${agentName}</bdi> ·
        <b class="tone-${explanation.tone}">${explanation.title}</b>
      </p>
      <p class="muted"><bdi>${explanation.sentences[0]}</bdi></p>
      ${knownList(explanation.known, app)} ${remedyLinks(explanation, subject)}
      <p><a class="link" href=${app.router.href(actor)} data-route=${actor}>What the command did</a></p>
    </li>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-unsettled': SignalboxUnsettled
  }
}
