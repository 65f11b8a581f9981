/**
 * `<signalbox-reopen>`: where a person takes back what was decided about a send, asked once more in place. Owns unfolding, the note and
 * telling why it did not work; what is shown of a send that is open again is its page's, which hears `reopened`.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { ReopenedAnswer } from '../../domain/settlement.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { noteField, settleFault } from './settle-parts.ts'
import { settleSheet } from './settle-sheet.ts'
import { sheet } from './sheet.ts'

/**
 * @element signalbox-reopen
 * @prop commandId - what is to be open again
 * @fires reopened - once the console has it
 */
export class SignalboxReopen extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    commandId: { attribute: false },
    _open: { state: true },
    _note: { state: true },
    _running: { state: true },
    _fault: { state: true },
  }
  static override styles = [sheet, settleSheet]
  declare app: App
  declare commandId: string
  declare _open: boolean
  declare _note: string
  declare _running: boolean
  declare _fault: ApiFault | undefined

  constructor() {
    super()
    this._running = false
    this.#begin()
  }

  #begin(): void {
    this._open = false
    this._note = ''
    this._fault = undefined
  }

  override willUpdate(changed: PropertyValues): void {
    if (changed.get('commandId') !== undefined) this.#begin()
  }

  #fold(): void {
    this._open = false
    this._fault = undefined
    this.renderRoot.querySelector('button')?.focus()
  }

  #key(event: KeyboardEvent): void {
    if (event.key !== 'Escape' || !this._open) return
    // Leaves the form, not the page: the next Escape goes back.
    event.stopPropagation()
    this.#fold()
  }

  async #reopen(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    if (this._running) return
    const note = this._note.trim()
    const body = note === '' ? {} : { note }
    this._running = true
    this._fault = undefined
    try {
      const path = `/api/sends/${encodeURIComponent(this.commandId)}/reopen`
      await this.app.api.change(path, { method: 'POST', body }, ReopenedAnswer)
      this.#begin()
      this.dispatchEvent(new Event('reopened', { bubbles: true, composed: true }))
    } catch (error) {
      this._fault = faultOf(error)
    }
    this._running = false
    this.app.queries.invalidate()
  }

  override render(): TemplateResult {
    return html`<button
        class="small ghost"
        aria-expanded=${this._open ? 'true' : 'false'}
        aria-controls="reopening"
        @click=${() => (this._open = !this._open)}
        @keydown=${(event: KeyboardEvent) => this.#key(event)}
      >
        Reopen…
      </button>
      ${this._open ? this.#form() : nothing}`
  }

  #form(): TemplateResult {
    return html`<form
      class="settling"
      id="reopening"
      @submit=${(event: SubmitEvent) => void this.#reopen(event)}
      @keydown=${(event: KeyboardEvent) => this.#key(event)}
    >
      <p>The decision is taken back, and the send needs a person again. Both stay on this page, with their notes.</p>
      ${noteField(this._note, (note) => (this._note = note))} ${settleFault('Not reopened', this._fault)}
      <div class="row">
        <button class="primary small" ?disabled=${this._running}>${this._running ? 'Reopening…' : 'Reopen'}</button>
        <button type="button" class="ghost small" @click=${() => this.#fold()}>Leave it settled</button>
      </div>
    </form>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-reopen': SignalboxReopen
  }
}
