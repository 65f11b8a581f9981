/**
 * `<signalbox-under-way>`: a person's own messages that are accepted and not delivered yet, above the list of tasks: they have no
 * task to stand on, and whoever sent them may be in another tab; on an agent's page those to it alone. Owns showing and unfolding; the words are domain/under-way.ts.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { stuckAfterMs } from '../../domain/patience.ts'
import {
  UnderWayAnswer,
  underWayGraceMs,
  type UnderWaySend,
  underWayStanding,
  underWayWords,
} from '../../domain/under-way.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import type { Question } from '../queries.ts'
import { ServerClock } from '../server-clock.ts'
import { icon } from './icon.ts'
import { sheet } from './sheet.ts'

const underWayTo = (agentId: string | null): Question<UnderWayAnswer> => ({
  path: `/api/sends/under-way${agentId === null ? '' : `?agentId=${encodeURIComponent(agentId)}`}`,
  schema: UnderWayAnswer,
  freshness: 'live',
})
export const underWayQuestion = underWayTo(null)

/** @element signalbox-under-way */
export class SignalboxUnderWay extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    agentId: { attribute: false },
    _open: { state: true },
  }
  static override styles = [
    sheet,
    css`
      section {
        margin-top: 6px;
        border: 1px solid var(--sb-border);
        border-radius: var(--sb-radius-m);
        background: var(--sb-surface);
        overflow: hidden;
      }
      button.fold {
        width: 100%;
        height: auto;
        min-height: 30px;
        padding: 4px 8px;
        justify-content: flex-start;
        line-height: 18px;
        text-align: start;
        white-space: normal;
        color: var(--sb-text);
      }
      button.fold.late {
        color: var(--sb-warn);
      }
      .sends {
        max-height: 34cqh;
        border-top: 1px solid var(--sb-border);
      }
      li {
        padding: 6px 10px;
        font-size: var(--sb-text-s);
      }
      li + li {
        border-top: 1px solid var(--sb-border);
      }
      li b {
        font-weight: 540;
      }
    `,
  ]
  declare app: App | undefined
  /** Only those to this agent; null: to any. */
  declare agentId: string | null
  declare _open: boolean
  readonly #sends = new Query(this, () => this.app && { queries: this.app.queries, question: underWayTo(this.agentId) })
  readonly #clock = new ServerClock()
  #older: ReturnType<typeof setTimeout> | undefined

  constructor() {
    super()
    this.agentId = null
    this._open = false
  }

  override disconnectedCallback(): void {
    clearTimeout(this.#older)
    super.disconnectedCallback()
  }

  /** How long the oldest has waited, by the server's clock; undefined where nothing is under way. */
  get #ageMs(): number | undefined {
    const { data } = this.#sends
    const oldest = data?.sends[0]
    return oldest && this.#clock.nowMs(data) - Date.parse(oldest.createdAt)
  }

  /** What waits for a worker commits nothing, and time passes for it all the same: it is drawn again when that says something. */
  override updated(): void {
    clearTimeout(this.#older)
    const ageMs = this.#ageMs
    const nextMs = ageMs === undefined ? undefined : [underWayGraceMs, stuckAfterMs + 1].find((told) => ageMs < told)
    if (ageMs !== undefined && nextMs !== undefined && this.isConnected)
      this.#older = setTimeout(() => this.requestUpdate(), nextMs - ageMs)
  }

  override render(): TemplateResult | typeof nothing {
    const { app } = this
    const { data } = this.#sends
    const ageMs = this.#ageMs
    const oldest = data?.sends[0]
    if (!app || !data || !oldest || ageMs === undefined || ageMs < underWayGraceMs) return nothing
    const late = ageMs > stuckAfterMs
    const words = underWayWords(data, late)
    return html`<section aria-label="Messages under way">
      <p class="sr" role="status">${words}</p>
      <button
        class="ghost small fold ${late ? 'late' : ''}"
        aria-expanded=${this._open ? 'true' : 'false'}
        aria-controls="sends"
        @click=${() => (this._open = !this._open)}
      >
        ${icon(late ? 'triangle-alert' : 'clock', 14)}
        <span>${words}, ${data.count > 1 ? 'the oldest ' : ''}since ${app.format.atMinute(oldest.createdAt)}</span>
      </button>
      <ul class="sends scroll" id="sends" ?hidden=${!this._open}>
        ${this._open ? data.sends.map((send) => this.#send(app, send)) : nothing}
        ${this._open && data.count > data.sends.length ? html`<li class="muted">The oldest ${data.sends.length} are shown.</li>` : nothing}
      </ul>
    </section>`
  }

  #send(app: App, { id, agentName, action, status, title, createdAt }: UnderWaySend): TemplateResult {
    const path = `/actors/command/${id}`
    return html`<li>
      <p class="ell" title=${title}>
        <b><bdi>${action === 'cancelTask' ? 'Cancel: ' : ''}${title || 'Without words'}</bdi></b>
      </p>
      <p class="muted">
        ${this.agentId === null ? html`<bdi>${agentName}</bdi> · ` : nothing}${app.format.at(createdAt)} ·
        ${underWayStanding({ status })}
      </p>
      <a class="link" href=${app.router.href(path)} data-route=${path}>What the command does</a>
    </li>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-under-way': SignalboxUnderWay
  }
}
