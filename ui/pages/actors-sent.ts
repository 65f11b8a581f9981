/**
 * `<signalbox-sent>`: what a command sent, to whom, and the names by which whoever runs the agent can look for it. Owns
 * unfolding and copying; reading the words is its page's (`GET /api/sends/{id}`, for whoever may see the command).
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { settledBy, type Reopening } from '../../domain/settlement.ts'
import type { SentWords } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import { icon } from '../elements/icon.ts'
import { sheet } from '../elements/sheet.ts'
import { plural } from '../format.ts'

/** As many characters as surely fit folded in, on a narrow screen too; of more the rest is shown on demand. */
const foldedLength = 100
/** What is drawn of them folded in: the sheet cuts at two lines, and a message may be megabytes. */
const drawnLength = 400

/**
 * @element signalbox-sent
 * @prop send - the command's words and names
 * @prop foundTaskId - the agent's own name of the task where the message was found; null where it was not
 * @prop replaces - the earlier command in whose place it was sent; null where there is none
 * @prop reopenings - decisions about it that were taken back, the newest first
 */
export class SignalboxSent extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    send: { attribute: false },
    foundTaskId: { attribute: false },
    replaces: { attribute: false },
    reopenings: { attribute: false },
    _unfolded: { state: true },
    _copied: { state: true },
  }
  static override styles = [
    sheet,
    css`
      :host {
        padding: 8px 16px;
        border-bottom: 1px solid var(--sb-border);
        font-size: var(--sb-text-s);
      }
      p {
        max-width: 92ch;
        overflow-wrap: anywhere;
      }
      .folded {
        display: -webkit-box;
        -webkit-box-orient: vertical;
        -webkit-line-clamp: 2;
        overflow: hidden;
      }
      .whole {
        margin-top: 4px;
        max-height: 320px;
        overflow: auto;
        padding: 6px 8px;
        border: 1px solid var(--sb-border);
        border-radius: var(--sb-radius-s);
      }
      .link {
        text-decoration: underline;
        text-underline-offset: 2px;
        font-weight: 560;
      }
      /* Its words begin where the lines do. */
      p ~ .ghost {
        margin-inline-start: -8px;
      }
      dl {
        display: flex;
        flex-wrap: wrap;
        gap: 0 16px;
        margin-top: 2px;
      }
      dl > div {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: 0 6px;
        min-width: 0;
      }
      dt {
        color: var(--sb-text-3);
      }
      dd {
        display: flex;
        align-items: center;
        gap: 2px;
        min-width: 0;
        overflow-wrap: anywhere;
      }
      ul {
        margin: 6px 0 2px;
        padding: 0;
        list-style: none;
        overflow-wrap: anywhere;
      }
      li + li {
        margin-top: 4px;
      }
      /* For a finger, without moving the lines. */
      @container console (max-width: 720px) {
        .link {
          padding-block: 4px;
        }
      }
    `,
  ]
  declare app: App | undefined
  declare send: SentWords | undefined
  declare foundTaskId: string | null
  declare replaces: string | null
  /** As they stand now: what was sent never changes, and is asked for once. */
  declare reopenings: readonly Reopening[]
  /** The command whose words are shown in full. */
  declare _unfolded: string | null
  declare _copied: { readonly text: string; readonly done: boolean } | null

  constructor() {
    super()
    this.foundTaskId = null
    this.replaces = null
    this.reopenings = []
    this._unfolded = null
    this._copied = null
  }

  #copy(text: string): void {
    const told = (done: boolean) => (): void => {
      this._copied = { text, done }
    }
    // A page on plain HTTP off loopback has no clipboard; elsewhere a browser may deny it.
    if (!('clipboard' in navigator)) return told(false)()
    void navigator.clipboard.writeText(text).then(told(true), told(false))
  }

  override render(): TemplateResult | typeof nothing {
    const { app, send } = this
    if (!app || !send) return nothing
    const agentPath = `/agents/${encodeURIComponent(send.agentId)}`
    const agent = html`<a class="link" href=${app.router.href(agentPath)} data-route=${agentPath}
      ><bdi>${send.agentName}</bdi></a
    >`
    const isCancel = send.action === 'cancelTask'
    const taskId = send.taskId ?? this.foundTaskId
    return html`<section aria-label="What was sent">
      ${isCancel ? this.#cancel(app, send, agent) : this.#message(send, agent)} ${this.#earlier(app)}
      <dl>
        ${isCancel ? this.#name('Request id', send.id) : this.#name('Message id', send.messageId)}
        ${taskId === null ? nothing : this.#name('The agent’s task id', taskId)}
      </dl>
      ${this.#takenBack(app)}
      <p class="sr" role="status">${this._copied ? copiedWords(this._copied.done) : ''}</p>
    </section>`
  }

  #earlier(app: App): TemplateResult | typeof nothing {
    if (this.replaces === null) return nothing
    const path = `/actors/command/${this.replaces}`
    return html`<p>
      It was sent in the place of
      <a class="link" href=${app.router.href(path)} data-route=${path}>an earlier one</a>
    </p>`
  }

  /** What was decided and is not so any more: whoever decides next should know why. */
  #takenBack(app: App): TemplateResult | typeof nothing {
    if (this.reopenings.length === 0) return nothing
    const said = (note: string | null) => (note === null ? nothing : html`: “<bdi>${note}</bdi>”`)
    return html`<ul aria-label="Decisions that were taken back">
      ${this.reopenings.map(
        ({ settlement, by, at, note }) =>
          html`<li>
            <span class="muted">${app.format.at(settlement.at)}</span> ${settledBy(settlement)}${said(settlement.note)}
            <br /><span class="muted">${app.format.at(at)}</span> <bdi>${by.name}</bdi> took that back${said(note)}
          </li>`,
      )}
    </ul>`
  }

  #cancel(app: App, { localId, title }: SentWords, agent: TemplateResult): TemplateResult {
    const path = localId === null ? null : `/tasks/${encodeURIComponent(localId)}`
    const words = title === '' ? 'its task' : title
    const task =
      path === null
        ? html`a task that is not known here`
        : html`<a class="link" href=${app.router.href(path)} data-route=${path}><bdi>${words}</bdi></a>`
    return html`<p>Cancel of ${task}, to ${agent}</p>`
  }

  #message({ id, text, otherParts }: SentWords, agent: TemplateResult): TemplateResult {
    const others = otherParts === 0 ? '' : plural(otherParts, text === '' ? 'part' : 'more part')
    const isLong = text.length > foldedLength || text.includes('\n')
    const isWhole = isLong && this._unfolded === id
    if (text === '') return html`<p>Message to ${agent}: ${others === '' ? 'no words' : `${others}, no words`}</p>`
    return html`<p class=${isWhole ? nothing : 'folded'}>
        Message to
        ${agent}${isWhole ? nothing : html`: “<bdi>${text.slice(0, drawnLength)}</bdi>${text.length > drawnLength ? '…' : '”'}`}${
          others === '' ? nothing : html` <span class="muted">and ${others}</span>`
        }
      </p>
      ${isWhole ? html`<p class="whole said" tabindex="0">${text}</p>` : nothing}
      ${
        isLong
          ? html`<button
              class="ghost small"
              aria-expanded=${isWhole ? 'true' : 'false'}
              @click=${() => (this._unfolded = isWhole ? null : id)}
            >
              ${isWhole ? 'Show less' : 'Show the whole message'}
            </button>`
          : nothing
      }`
  }

  #name(words: string, id: string): TemplateResult {
    const copied = this._copied?.text === id ? this._copied : null
    return html`<div>
      <dt>${words}</dt>
      <dd>
        <span class="mono">${id}</span>
        <button
          class="ghost small icon-only"
          aria-label=${`Copy: ${words}`}
          title=${copied ? copiedWords(copied.done) : `Copy: ${words}`}
          @click=${() => this.#copy(id)}
        >
          ${icon(copied?.done ? 'check' : 'copy', 13)}
        </button>
      </dd>
    </div>`
  }
}

const copiedWords = (done: boolean): string => (done ? 'Copied' : 'Could not copy: mark the text instead')

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-sent': SignalboxSent
  }
}
