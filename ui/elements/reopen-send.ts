/**
 * `<signalbox-reopen>`: where a person takes back what was decided about a send, asked once more in place. Owns unfolding, the note and
 * telling why it did not work; what is shown of a send that is open again is its page's, which hears `reopened`.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import { reopenedBy, ReopenedAnswer, type Reopening } from '../../domain/settlement.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { meanwhile, noteField, settleFault } from './settle-parts.ts'
import { settleSheet } from './settle-sheet.ts'
import { sheet } from './sheet.ts'

/**
 * @element signalbox-reopen
 * @prop commandId - what is to be open again
 * @prop reopened - who has reopened it since, where its page knows that while the form is unfolded; null where nobody has
 * @attr open - the form is unfolded
 * @fires reopened - once the console has it, or who reopens has read that another did
 */
export class SignalboxReopen extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    commandId: { attribute: false },
    reopened: { attribute: false },
    open: { type: Boolean, reflect: true },
    _note: { state: true },
    _running: { state: true },
    _fault: { state: true },
  }
  static override styles = [sheet, settleSheet]
  declare app: App
  declare commandId: string
  declare reopened: Reopening | null
  declare open: boolean
  declare _note: string
  declare _running: boolean
  declare _fault: ApiFault | undefined

  constructor() {
    super()
    this._running = false
    this.reopened = null
    this.#begin()
  }

  #begin(): void {
    this.open = false
    this._note = ''
    this._fault = undefined
  }

  override willUpdate(changed: PropertyValues): void {
    if (changed.get('commandId') !== undefined) this.#begin()
  }

  /** The page tells of it above the form, too, and so moves it down. */
  override updated(changed: PropertyValues): void {
    if (changed.has('reopened') && this.#isOver) this.renderRoot.querySelector('form')?.scrollIntoView({ block: 'end' })
  }

  #fold(): void {
    this.open = false
    this._fault = undefined
    this.renderRoot.querySelector('button')?.focus()
  }

  #key(event: KeyboardEvent): void {
    if (event.key !== 'Escape' || !this.open) return
    // Leaves the form, not the page: the next Escape goes back. Where it is over there is nothing to come back to.
    event.stopPropagation()
    if (!this.#isOver) this.#fold()
  }

  /** What one did oneself may be on its page before its answer is here. */
  get #isOver(): boolean {
    return this.reopened !== null && !this._running
  }

  async #reopen(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    if (this._running || this.#isOver) return
    const note = this._note.trim()
    const body = note === '' ? {} : { note }
    this._running = true
    this._fault = undefined
    try {
      const path = `/api/sends/${encodeURIComponent(this.commandId)}/reopen`
      await this.app.api.change(path, { method: 'POST', body }, ReopenedAnswer)
      this.#done()
    } catch (error) {
      this._fault = faultOf(error)
    }
    this._running = false
    this.app.queries.invalidate()
  }

  #done(): void {
    this.#begin()
    this.dispatchEvent(new Event('reopened', { bubbles: true, composed: true }))
  }

  override render(): TemplateResult {
    return html`${this.open && this.#isOver ? nothing : this.#button()} ${this.open ? this.#form() : nothing}`
  }

  #button(): TemplateResult {
    return html`<button
      class="small ghost"
      aria-expanded=${this.open ? 'true' : 'false'}
      aria-controls="reopening"
      @click=${() => (this.open = !this.open)}
      @keydown=${(event: KeyboardEvent) => this.#key(event)}
    >
      Reopen…
    </button>`
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
      ${this.#isOver && this.reopened ? meanwhile(reopenedBy(this.reopened), this._note) : nothing}
      <div class="row">${this.#isOver ? this.#close() : this.#ways()}</div>
    </form>`
  }

  #ways(): TemplateResult {
    return html`<button class="primary small" ?disabled=${this._running}>
        ${this._running ? 'Reopening…' : 'Reopen'}
      </button>
      <button type="button" class="ghost small" @click=${() => this.#fold()}>Leave it settled</button>`
  }

  #close(): TemplateResult {
    return html`<button type="button" class="small" @click=${() => this.#done()}>Close</button>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-reopen': SignalboxReopen
  }
}
