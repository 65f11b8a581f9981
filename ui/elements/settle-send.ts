/**
 * `<signalbox-settle>`: where a person says what they decided about a send that failed or is uncertain. Owns unfolding, the choice,
 * the note and telling why it did not work; what is shown of a settled send is its page's, which hears `settled` and moves the focus
 * on before the send leaves its list.
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
import { settleNoteLimit, SettlementAnswer, type SettleDecision } from '../../domain/settlement.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { icon } from './icon.ts'
import { sheet } from './sheet.ts'

export const settlePath = (commandId: string): string => `/api/sends/${encodeURIComponent(commandId)}/settle`

const choices: readonly { readonly decision: SettleDecision; readonly words: string; readonly hint: string }[] = [
  { decision: 'arrived', words: 'The agent has it', hint: 'It arrived, whatever was heard of it.' },
  { decision: 'not-arrived', words: 'The agent does not have it', hint: 'It can be sent again.' },
  { decision: 'sent-again', words: 'It was sent again', hint: 'A later message took its place.' },
  { decision: 'no-matter', words: 'It no longer matters', hint: 'Nothing more is to be done.' },
]

/** An address of a command, or its id alone. */
const idIn = (text: string): string | undefined => /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i.exec(text)?.[0]

/**
 * @element signalbox-settle
 * @prop commandId - what is to be settled
 * @attr open - the form is unfolded
 * @fires settled - `detail`: the command's id; once the console has it
 */
export class SignalboxSettle extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    commandId: { attribute: false },
    open: { type: Boolean, reflect: true },
    _decision: { state: true },
    _running: { state: true },
    _fault: { state: true },
  }
  static override styles = [
    sheet,
    css`
      /* A row of ways has the button in it, and below it the whole width for the form. */
      :host {
        display: contents;
      }
      form {
        display: grid;
        gap: 10px;
        flex: 1 0 100%;
        min-width: 0;
        max-width: 520px;
        margin-top: 4px;
        padding: 12px;
        border: 1px solid var(--sb-border);
        border-radius: var(--sb-radius-m);
        background: var(--sb-surface);
        font-size: var(--sb-text-s);
      }
      fieldset {
        display: grid;
        gap: 2px;
        margin: 0;
        padding: 0;
        border: 0;
        min-width: 0;
      }
      legend {
        padding: 0 0 4px;
        font-weight: 540;
        color: var(--sb-text);
      }
      .choice {
        display: flex;
        gap: 8px;
        padding: 3px 6px;
        margin-inline: -6px;
        border-radius: var(--sb-radius-s);
        color: var(--sb-text);
      }
      .choice:hover {
        background: var(--sb-hover);
      }
      .choice input {
        flex: none;
        margin-top: 2px;
      }
      .choice b {
        margin-inline-end: 4px;
        font-weight: 520;
      }
      .field > label {
        color: var(--sb-text);
      }
      textarea {
        resize: vertical;
        max-height: 160px;
        field-sizing: content;
      }
      .row {
        flex-wrap: wrap;
      }
      .row .grow {
        flex-basis: 180px;
      }
      .fault {
        overflow-wrap: anywhere;
      }
    `,
  ]
  declare app: App
  declare commandId: string
  /** The form is unfolded. Reflected, so that whoever holds it can make room. */
  declare open: boolean
  declare _decision: SettleDecision | undefined
  declare _running: boolean
  declare _fault: ApiFault | undefined

  constructor() {
    super()
    this.open = false
    this._decision = undefined
    this._running = false
    this._fault = undefined
  }

  /** It may be unfolded at the lower edge of something that scrolls: then the button stays in sight, and as much of the form as there is room. */
  override updated(changed: PropertyValues): void {
    if (!changed.has('open') || !this.open) return
    this.renderRoot.querySelector('form')?.scrollIntoView({ block: 'nearest' })
    this.renderRoot.querySelector('button')?.scrollIntoView({ block: 'nearest' })
  }

  #field<Field extends HTMLElement>(id: string): Field | null {
    return this.renderRoot.querySelector<Field>(`#${id}`)
  }

  #fold(): void {
    this.open = false
    this._fault = undefined
    this.renderRoot.querySelector('button')?.focus()
  }

  #key(event: KeyboardEvent): void {
    // Leaves the form, not the page: the next Escape goes back.
    if (event.key === 'Escape') {
      event.stopPropagation()
      this.#fold()
    }
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    this.renderRoot.querySelector('form')?.requestSubmit()
  }

  async #settle(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const { _decision: decision, commandId, app } = this
    if (decision === undefined || this._running) return
    const successor = this.#field<HTMLInputElement>('successor')
    const successorId = successor ? idIn(successor.value) : undefined
    successor?.setCustomValidity(successorId === undefined ? 'There is no id in it.' : '')
    if (successor && !successor.reportValidity()) return
    const note = this.#field<HTMLTextAreaElement>('note')?.value.trim() ?? ''
    const body = { decision, ...(note === '' ? {} : { note }), ...(successorId === undefined ? {} : { successorId }) }
    this._running = true
    this._fault = undefined
    try {
      await app.api.change(settlePath(commandId), { method: 'POST', body }, SettlementAnswer)
      this.open = false
      this.dispatchEvent(new CustomEvent('settled', { detail: commandId, bubbles: true, composed: true }))
    } catch (error) {
      this._fault = faultOf(error)
    }
    this._running = false
    // Of a refusal, too: that somebody else was quicker is best said by what they decided.
    app.queries.invalidate()
  }

  override render(): TemplateResult {
    return html`<button
        class="small"
        aria-expanded=${this.open ? 'true' : 'false'}
        aria-controls="settling"
        @click=${() => (this.open = !this.open)}
      >
        ${icon('check', 13)}Settle…
      </button>
      ${this.open ? this.#form() : nothing}`
  }

  #form(): TemplateResult {
    const chosen = this._decision
    return html`<form
      id="settling"
      @submit=${(event: SubmitEvent) => void this.#settle(event)}
      @keydown=${(event: KeyboardEvent) => this.#key(event)}
    >
      <fieldset>
        <legend>What has become of it?</legend>
        ${choices.map(
          ({ decision, words, hint }) =>
            html`<label class="choice"
              ><input
                type="radio"
                name="decision"
                required
                .checked=${chosen === decision}
                @change=${() => (this._decision = decision)}
              /><span><b>${words}</b> <span class="muted">${hint}</span></span></label
            >`,
        )}
      </fieldset>
      ${
        chosen === 'sent-again'
          ? html`<div class="field">
              <label for="successor">Address or id of the later command</label>
              <input
                id="successor"
                required
                autocomplete="off"
                spellcheck="false"
                @input=${(event: Event & { currentTarget: HTMLInputElement }) => event.currentTarget.setCustomValidity('')}
              />
            </div>`
          : nothing
      }
      <div class="field">
        <label for="note">Note, if there is more to say</label>
        <textarea id="note" rows="2" maxlength=${settleNoteLimit} dir="auto"></textarea>
      </div>
      ${
        this._fault
          ? html`<p class="fault" role="alert">
              ${icon('triangle-alert', 14)}<span>Not settled: ${this._fault.message}</span>
            </p>`
          : nothing
      }
      <div class="row">
        <button class="primary small" ?disabled=${this._running}>${this._running ? 'Settling…' : 'Settle'}</button>
        <button type="button" class="ghost small" @click=${() => this.#fold()}>Leave it open</button>
        <span class="muted grow">Nothing is sent. It is kept for everybody, with your name.</span>
      </div>
    </form>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-settle': SignalboxSettle
  }
}
