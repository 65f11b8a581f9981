/**
 * `<signalbox-unsettled>`: sends that ended while nobody looked, above the foot of the task list: the first send of a task that
 * never came to be has no other place there. Owns showing, unfolding and where the focus goes when the last one is settled; what a
 * send's end means is domain/command-explanation.ts, and settling is settle-send.ts.
 */
import {
  css,
  html,
  LitElement,
  nothing,
  type PropertyDeclarations,
  type PropertyValues,
  type TemplateResult,
} from 'lit'
import { repeat } from 'lit/directives/repeat.js'
import { explainCommand } from '../../domain/command-explanation.ts'
import { byKind, needingWords } from '../../domain/needing-words.ts'
import { UnsettledAnswer, type UnsettledSend } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import { Clock } from '../controllers/clock.ts'
import { Query } from '../controllers/query.ts'
import { explanationSheet, knownList, nameOf, remedyLinks } from '../pages/explanation-view.ts'
import type { Question } from '../queries.ts'
import { icon } from './icon.ts'
import { SignalboxSettle, withBeingSettled } from './settle-send.ts'
import { sheet } from './sheet.ts'
import { define } from './view.ts'

define('signalbox-settle', SignalboxSettle)

/** Where all of them are, however old: commands that need a person. */
const allPath = '/actors?kind=command&needs=attention'

const unsettledQuestion: Question<UnsettledAnswer> = {
  path: '/api/sends/unsettled',
  schema: UnsettledAnswer,
  freshness: 'live',
}

/** @element signalbox-unsettled */
class SignalboxUnsettled extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    _open: { state: true },
    _isDone: { state: true },
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
      .strip:has(signalbox-settle[open]) {
        max-height: 72cqh;
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
      .done {
        display: flex;
        align-items: center;
        gap: 7px;
        padding: 8px 12px;
        border-top: 1px solid var(--sb-border);
        font-size: var(--sb-text-s);
        color: var(--sb-text-2);
      }
      .done:focus-visible {
        outline-offset: -2px;
      }
      li > p:last-child {
        margin-top: 6px;
      }
    `,
  ]
  declare app: App | undefined
  declare _open: boolean
  /** The last one was settled here: said where the focus is, until that moves on. */
  declare _isDone: boolean
  readonly #sends = new Query(this, () => this.app && { queries: this.app.queries, question: unsettledQuestion })

  constructor() {
    super()
    this._open = false
    this._isDone = false
    new Clock(this)
  }

  get #fold(): HTMLElement | null {
    return this.renderRoot.querySelector('.fold')
  }

  #shown: readonly UnsettledSend[] = []

  override willUpdate(): void {
    const { data } = this.#sends
    if (!data) return
    this.#shown = withBeingSettled(this.renderRoot, this.#shown, data.sends, ({ updatedAt }) => updatedAt)
    const isEmpty = this.#shown.length === 0
    if (!isEmpty) this._isDone = false
    else if (this.shadowRoot?.activeElement) this._isDone = true
    if (isEmpty) this._open = false
  }

  #settled(): void {
    this.#fold?.focus()
    this.requestUpdate()
  }

  override updated(changed: PropertyValues): void {
    if (changed.has('_isDone') && this._isDone) this.renderRoot.querySelector<HTMLElement>('.done')?.focus()
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    const { data } = this.#sends
    if (!app || !data) return nothing
    const sends = this.#shown
    if (sends.length === 0) return this._isDone ? this.#done() : nothing
    // What is being settled stays in sight although it counts no more.
    const words = needingWords(data.more ? data.count : byKind(sends))
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
      </div>
      <ul class="sends" id="sends" ?hidden=${!this._open} @settled=${() => this.#settled()}>
        ${
          this._open
            ? repeat(
                sends,
                ({ id }) => id,
                (send) => this.#send(app, send),
              )
            : nothing
        }
        ${
          this._open && data.more
            ? html`<li>
                <a class="link" href=${app.router.href(allPath)} data-route=${allPath}>All of them, and older ones</a>
              </li>`
            : nothing
        }
      </ul>
    </section>`
  }

  #done(): TemplateResult {
    return html`<p class="done" tabindex="-1" role="status" @blur=${() => (this._isDone = false)}>
      ${icon('circle-check', 14)}Settled: no message needs you
    </p>`
  }

  #send(app: App, send: UnsettledSend): TemplateResult | typeof nothing {
    const { id, agentId, agentName, action, title, updatedAt, evidence, operable } = send
    const explanation = explainCommand(send, Date.now(), null, evidence)
    if (!explanation) return nothing
    const about = `${action === 'cancelTask' ? 'Cancel: ' : ''}${title || 'Without words'}`
    const subject = {
      app,
      about,
      commandId: id,
      agentId,
      localId: send.localId ?? evidence?.localId ?? null,
      successorId: null,
    }
    const actor = `/actors/command/${id}`
    const settle = operable
      ? html`<signalbox-settle .app=${app} .commandId=${id} .about=${about}></signalbox-settle>`
      : nothing
    return html`<li>
      <div class="what">
        <bdi class="grow ell" title=${title}>${about}</bdi><span class="faint num">${app.format.when(updatedAt)}</span>
      </div>
      <p>
        <bdi class="muted">${agentName}</bdi> ·
        <b class="tone-${explanation.tone}">${explanation.title}</b>
      </p>
      <p class="muted"><bdi>${explanation.sentences[0]}</bdi></p>
      ${knownList(explanation.known, app)} ${remedyLinks(explanation, subject, settle)}
      <p>
        <a
          class="link"
          href=${app.router.href(actor)}
          data-route=${actor}
          aria-label=${nameOf('What the command did', about)}
          >What the command did</a
        >
      </p>
    </li>`
  }
}

define('signalbox-unsettled', SignalboxUnsettled)

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-unsettled': SignalboxUnsettled
  }
}
