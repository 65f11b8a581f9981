/**
 * `<signalbox-confirm>`: asks before something is changed, in sentences that say what changes. Owns the dialog and telling why it
 * did not work; what is done is its caller's.
 */
import { css, html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from 'lit'
import { type ApiFault, faultOf } from '../api.ts'
import { icon } from './icon.ts'
import { keepKeys, openModal } from './modal.ts'
import { sheet } from './sheet.ts'

export class SignalboxConfirm extends LitElement {
  static override properties: PropertyDeclarations = {
    title: { attribute: false },
    sentences: { attribute: false },
    word: { attribute: false },
    run: { attribute: false },
    _fault: { state: true },
    _running: { state: true },
  }
  static override styles = [
    sheet,
    css`
      :host {
        display: contents;
      }
      dialog {
        width: min(480px, calc(100vw - 32px));
        padding: 20px 24px;
      }
      li,
      .fault {
        margin-top: 10px;
        overflow-wrap: anywhere;
      }
      footer {
        display: flex;
        justify-content: flex-end;
        gap: 8px;
        margin-top: 20px;
      }
    `,
  ]
  declare title: string
  declare sentences: readonly string[]
  /** On the button that does it. */
  declare word: string
  declare run: () => Promise<void>
  declare _fault: ApiFault | undefined
  declare _running: boolean
  #dialog: HTMLDialogElement | undefined

  constructor() {
    super()
    this._fault = undefined
    this._running = false
  }

  override firstUpdated(): void {
    this.#dialog = openModal(this)
  }

  async #do(): Promise<void> {
    this._fault = undefined
    this._running = true
    try {
      await this.run()
      this.#dialog?.close()
    } catch (error) {
      this._fault = faultOf(error)
    }
    this._running = false
  }

  override render(): TemplateResult {
    return html`<dialog aria-labelledby="ask" aria-describedby="what" @keydown=${keepKeys}>
      <h2 id="ask" class="h-xl">${this.title}</h2>
      <ul id="what">
        ${this.sentences.map((sentence) => html`<li>${sentence}</li>`)}
      </ul>
      ${this._fault ? html`<p class="fault" role="alert">${icon('triangle-alert', 14)}<span>Not changed: ${this._fault.message}</span></p>` : nothing}
      <footer>
        <button autofocus @click=${() => this.#dialog?.close()}>Leave it</button>
        <button class="primary" ?disabled=${this._running} @click=${() => void this.#do()}>${this.word}</button>
      </footer>
    </dialog>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-confirm': SignalboxConfirm
  }
}
