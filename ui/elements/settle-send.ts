/**
 * `<signalbox-settle>`: where a person says what they decided about a send that failed or is uncertain. Owns unfolding, the choice,
 * the note and telling why it did not work, or who was quicker; what is shown of a settled send is its page's, which hears `settled`
 * and moves the focus on before the send leaves its list.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import {
  settledBy,
  SettlementAnswer,
  settlementRefusals,
  type SettleDecision,
  type Settlement,
} from '../../domain/settlement.ts'
import { SentWordsAnswer } from '../../domain/unsettled-send.ts'
import { type ApiFault, faultOf } from '../api.ts'
import type { App } from '../app.ts'
import { sentQuestion } from '../record-questions.ts'
import { nameOf } from '../pages/explanation-view.ts'
import { icon } from './icon.ts'
import { meanwhile, noteField, settleFault } from './settle-parts.ts'
import { settleSheet } from './settle-sheet.ts'
import { sheet } from './sheet.ts'

export const settlePath = (commandId: string): string => `/api/sends/${encodeURIComponent(commandId)}/settle`

const choices: readonly { readonly decision: SettleDecision; readonly words: string; readonly hint: string }[] = [
  { decision: 'arrived', words: 'The agent has it', hint: 'It arrived, whatever was heard of it.' },
  { decision: 'not-arrived', words: 'The agent does not have it', hint: 'It can be sent again.' },
  { decision: 'sent-again', words: 'It was sent again', hint: 'A later message took its place.' },
  { decision: 'no-matter', words: 'It no longer matters', hint: 'Nothing more is to be done.' },
]

/** The commands that somebody is about to settle below `root`: their forms are unfolded. */
const beingSettled = (root: ParentNode): ReadonlySet<string> =>
  new Set([...root.querySelectorAll('signalbox-settle')].flatMap(({ open, commandId }) => (open ? [commandId] : [])))

/**
 * `fresh`, and of what was `shown` below `root` whatever somebody is settling: it stays until they are done, for that another was
 * quicker is said there, and what they wrote with it. The newest by `at` first.
 */
export function withBeingSettled<T extends { readonly id: string }>(
  root: ParentNode,
  shown: readonly T[],
  fresh: readonly T[],
  at: (each: T) => string,
): readonly T[] {
  const settling = beingSettled(root)
  const held = shown.filter(({ id }) => settling.has(id) && fresh.every((each) => each.id !== id))
  // In one order, so that what is being written in is not moved about.
  return held.length === 0 ? fresh : [...fresh, ...held].toSorted((a, b) => at(b).localeCompare(at(a)))
}

/** An address of a command, or its id alone. */
const idIn = (text: string): string | undefined => /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i.exec(text)?.[0]

/**
 * @element signalbox-settle
 * @prop commandId - what is to be settled
 * @prop about - its words, where several stand in one list: the button's name says which
 * @prop decided - what somebody else has decided since, where its page knows that while the form is unfolded; null where nobody has
 * @attr open - the form is unfolded
 * @fires settled - `detail`: the command's id; once the console has it, or who settles has read that another did
 */
export class SignalboxSettle extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    commandId: { attribute: false },
    about: { attribute: false },
    decided: { attribute: false },
    open: { type: Boolean, reflect: true },
    _decision: { state: true },
    _note: { state: true },
    _successor: { state: true },
    _taken: { state: true },
    _running: { state: true },
    _fault: { state: true },
  }
  static override styles = [sheet, settleSheet]
  declare app: App
  declare commandId: string
  declare about: string | undefined
  declare decided: Settlement | null
  /** The form is unfolded. Reflected, so that whoever holds it can make room. */
  declare open: boolean
  declare _decision: SettleDecision | undefined
  /** What was written stays while the form is folded, as the decision does. */
  declare _note: string
  declare _successor: string
  /** What somebody else has decided meanwhile. */
  declare _taken: Settlement | undefined
  declare _running: boolean
  declare _fault: ApiFault | undefined

  constructor() {
    super()
    this.decided = null
    this.#begin()
    this._running = false
  }

  #begin(): void {
    this.open = false
    this._decision = undefined
    this._note = ''
    this._successor = ''
    this._taken = undefined
    this._fault = undefined
  }

  /** The same element may come to stand beside another send: what was written about the one before is not about that. */
  override willUpdate(changed: PropertyValues): void {
    if (changed.get('commandId') !== undefined) this.#begin()
  }

  /** It may be unfolded at the lower edge of something that scrolls: then the button stays in sight, and as much of the form as there is room. */
  override updated(changed: PropertyValues): void {
    if (changed.has('_taken') && this._taken) this.renderRoot.querySelector<HTMLElement>('.taken')?.focus()
    // The page tells of it above the form, too, and so moves it down.
    if (changed.has('decided') && this.#isOver) this.renderRoot.querySelector('form')?.scrollIntoView({ block: 'end' })
    if (!changed.has('open') || !this.open) return
    this.renderRoot.querySelector('form')?.scrollIntoView({ block: 'nearest' })
    this.renderRoot.querySelector('button')?.scrollIntoView({ block: 'nearest' })
  }

  #fold(): void {
    this.open = false
    this._fault = undefined
    this.renderRoot.querySelector('button')?.focus()
  }

  /** Escape leaves the form, not the page: the next one goes back. Also on the button, where the focus is after unfolding. */
  #leave(event: KeyboardEvent): void {
    if (event.key !== 'Escape' || !this.open) return
    event.stopPropagation()
    // There is nothing to come back to, so what was written goes only by a press of its own.
    if (!this.#isOver) this.#fold()
  }

  /** One's own decision may be on its page before its answer is here. */
  get #isOver(): boolean {
    return this.decided !== null && !this._running
  }

  #key(event: KeyboardEvent): void {
    this.#leave(event)
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    if (!this.#isOver) this.renderRoot.querySelector('form')?.requestSubmit()
  }

  async #settle(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const { _decision: decision, commandId, app } = this
    if (decision === undefined || this._running || this.#isOver) return
    const successor = this.renderRoot.querySelector<HTMLInputElement>('#successor')
    const successorId = successor ? idIn(this._successor) : undefined
    successor?.setCustomValidity(successorId === undefined ? 'There is no id in it.' : '')
    if (successor && !successor.reportValidity()) return
    const note = this._note.trim()
    const body = { decision, ...(note === '' ? {} : { note }), ...(successorId === undefined ? {} : { successorId }) }
    this._running = true
    this._fault = undefined
    try {
      await app.api.change(settlePath(commandId), { method: 'POST', body }, SettlementAnswer)
      this.#done(commandId)
    } catch (error) {
      const fault = faultOf(error)
      const taken = fault.message === settlementRefusals.taken ? await this.#whoWas(commandId) : null
      if (this.commandId === commandId) {
        this._taken = taken ?? undefined
        this._fault = taken ? undefined : fault
      }
    }
    this._running = false
    // Of a refusal, too: that somebody else was quicker is best said by what they decided.
    app.queries.invalidate()
  }

  /** Null where that cannot be read, or was taken back since. */
  async #whoWas(commandId: string): Promise<Settlement | null> {
    try {
      return (await this.app.api.get(sentQuestion(commandId).path, SentWordsAnswer)).send.settlement
    } catch (error) {
      faultOf(error)
      return null
    }
  }

  #done(commandId: string): void {
    this.#begin()
    this.dispatchEvent(new CustomEvent('settled', { detail: commandId, bubbles: true, composed: true }))
  }

  #takenBy(settlement: Settlement): TemplateResult {
    const mine = this._note.trim()
    return html`<div class="settling taken" id="settling" role="alert" tabindex="-1">
      <p><bdi>${settledBy(settlement)}.</bdi></p>
      ${settlement.note === null ? nothing : html`<p class="muted">Note: <bdi>“${settlement.note}”</bdi></p>`}
      ${mine === '' ? nothing : html`<p>Your note was not kept: <bdi>“${mine}”</bdi></p>`}
      <div class="row"><button class="small" @click=${() => this.#done(this.commandId)}>Close</button></div>
    </div>`
  }

  override render(): TemplateResult {
    if (this._taken) return this.#takenBy(this._taken)
    return html`${this.open && this.#isOver ? nothing : this.#button()} ${this.open ? this.#form() : nothing}`
  }

  #button(): TemplateResult {
    return html`<button
      class="small"
      aria-label=${nameOf('Settle…', this.about)}
      aria-expanded=${this.open ? 'true' : 'false'}
      aria-controls="settling"
      @click=${() => (this.open = !this.open)}
      @keydown=${(event: KeyboardEvent) => this.#leave(event)}
    >
      ${icon('check', 13)}Settle…
    </button>`
  }

  #form(): TemplateResult {
    const chosen = this._decision
    return html`<form
      class="settling"
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
                .value=${this._successor}
                @input=${({ currentTarget }: Event & { currentTarget: HTMLInputElement }) => {
                  currentTarget.setCustomValidity('')
                  this._successor = currentTarget.value
                }}
              />
            </div>`
          : nothing
      }
      ${noteField(this._note, (note) => (this._note = note))} ${settleFault('Not settled', this._fault)}
      ${this.#isOver && this.decided ? meanwhile(settledBy(this.decided), this._note) : nothing}
      <div class="row">${this.#isOver ? this.#close() : this.#ways()}</div>
    </form>`
  }

  #ways(): TemplateResult {
    return html`<button class="primary small" ?disabled=${this._running}>
        ${this._running ? 'Settling…' : 'Settle'}
      </button>
      <button type="button" class="ghost small" @click=${() => this.#fold()}>Leave it open</button>
      <span class="muted grow">Nothing is sent. It is kept for everybody, with your name.</span>`
  }

  #close(): TemplateResult {
    return html`<button type="button" class="small" @click=${() => this.#done(this.commandId)}>Close</button>
      <span class="muted grow">Who decides otherwise reopens it first.</span>`
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'signalbox-settle': SignalboxSettle
  }
}
