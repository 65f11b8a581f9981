/**
 * `<signalbox-composer>`: where a person writes to an agent. Owns the field, its draft, and telling how the sending stands. The
 * sending itself, with its key, is sending.ts and outlives this element.
 */
import { html, LitElement, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from 'lit'
import type { Command } from '../../domain/command.ts'
import { explainCommand } from '../../domain/command-explanation.ts'
import type { Caution } from '../../domain/send-again.ts'
import { whyNotAccepted } from '../../domain/settlement.ts'
import { needsPerson } from '../../domain/settlement.ts'
import type { App } from '../app.ts'
import { Query } from '../controllers/query.ts'
import { Select } from '../controllers/select.ts'
import { commandQuestion } from '../questions.ts'
import { actorQuestion } from '../record-questions.ts'
import type { Phase, Sending, Target } from '../sending.ts'
import { composerSheet } from './composer-sheet.ts'
import { explanationSheet, knownList, remedyLinks, toneIcon } from '../pages/explanation-view.ts'
import { SignalboxConfirm } from './confirm.ts'
import { icon } from './icon.ts'
import { sheet } from './sheet.ts'
import { define } from './view.ts'

define('signalbox-confirm', SignalboxConfirm)

export const viewersRead = 'You may read here. Sending needs the role operator.'
export const readersRead =
  'You may read here. Sending needs a grant to send to this agent; an administrator can give one.'
export const agentRemoved =
  'This agent was removed, so nothing can be sent to it. What was said stays; adding its URL again brings it back.'

/** Where a sending's drafts and attempts are kept: by task, and before there is one by agent. */
export const scopeOfTask = (localId: string): string => `task:${localId}`

/**
 * @slot actions - buttons beside Send, for what else can be done with the task
 */
export class SignalboxComposer extends LitElement {
  static override properties: PropertyDeclarations = {
    app: { attribute: false },
    scope: { type: String },
    target: { attribute: false },
    hint: { type: String },
    closed: { type: String },
    caution: { attribute: false },
    replacing: { attribute: false },
    _text: { state: true },
    _asking: { state: true },
  }
  static override styles = [sheet, explanationSheet, composerSheet]
  declare app: App
  declare scope: string
  /** Undefined while nobody is chosen to send to. */
  declare target: Target | undefined
  declare hint: string
  /** Why nothing can be written here; empty when something can. */
  declare closed: string
  /** What a person is asked once more before these words are sent; null where nothing. */
  declare caution: (text: string, target: Target) => Caution | null
  /** Id of the earlier send in whose place these words go, if any. */
  declare replacing: (text: string, target: Target) => string | undefined
  declare _text: string
  declare _asking: Caution | null
  #sending: Sending | undefined
  #phase = new Select<Phase, Phase>(
    this,
    () => this.#sending?.phase,
    (phase) => phase,
  )
  /** Whose words are in the field: drafts can be read once that is known, and are not another's. */
  #writer: string | undefined
  #person = new Select<string | undefined, string | undefined>(
    this,
    () => this.app.person,
    (person) => person,
  )
  #command = new Query(this, () => {
    const phase = this.#phase.value
    if (phase?.at !== 'accepted') return undefined
    return { queries: this.app.queries, question: commandQuestion(phase.commandId) }
  })
  /** What is on record of a send that needs a person: what was looked for since, and what somebody decided. */
  #record = new Query(this, () => {
    const command = this.#command.data?.command
    return command && needsPerson(command.status)
      ? { queries: this.app.queries, question: actorQuestion('command', command.id) }
      : undefined
  })

  constructor() {
    super()
    this.scope = ''
    this.target = undefined
    this.hint = ''
    this.closed = ''
    this.caution = () => null
    this.replacing = () => undefined
    this._text = ''
    this._asking = null
  }

  override willUpdate(changed: PropertyValues): void {
    const person = this.#person.value
    if (changed.has('scope') || changed.has('app') || person !== this.#writer) {
      this.#writer = person
      this._text = this.app.drafts.read(this.scope)
      this.#sending = this.app.sendings.of(this.scope)
      this.requestUpdate()
    }
    this.#conclude()
  }

  /** The sending moved on: its words are the console's now, or it is over, or it made a task to go to. */
  #conclude(): void {
    const phase = this.#phase.value
    if (phase?.at !== 'accepted') return
    if (this._text === phase.attempt.text && this.app.drafts.read(this.scope) === '') this._text = ''
    const command = this.#command.data?.command
    const localId = phase.localId ?? command?.result?.localId
    if (localId !== undefined && this.target?.taskId === undefined && this.scope !== scopeOfTask(localId)) {
      const { scope, app } = this
      if (this.matches(':focus-within')) app.arrival = localId
      // After this update: navigating replaces this element.
      queueMicrotask(() => {
        app.sendings.rename(scope, scopeOfTask(localId))
        app.router.go(`/tasks/${localId}`)
      })
      return
    }
    if (command?.status === 'succeeded') this.#sending?.dismiss()
  }

  #focusAsked = false
  /** Takes the focus now, or as soon as the field is there and open. */
  override focus(): void {
    this.#focusAsked = true
    this.#takeFocus()
  }

  #takeFocus(): void {
    const field = this.renderRoot.querySelector('textarea')
    if (!this.#focusAsked || !field || field.disabled) return
    this.#focusAsked = false
    field.focus()
  }

  /** Other words that were sent off while the words before them were still on their way: they follow, in order. */
  #next: string | null = null

  override updated(): void {
    this.#takeFocus()
    if (this.#next === null || this.#busy) return
    const next = this.#next
    this.#next = null
    // After a failure the person decides, and words changed since were not sent off.
    if (this.#phase.value?.at === 'idle' && next === this._text) this.#send()
  }

  /** Puts words into an empty field; a person's own are never overwritten. False when there were some. */
  fill(text: string): boolean {
    const empty = this._text.trim() === ''
    if (empty) {
      this._text = text
      this.app.drafts.keep(this.scope, text)
    }
    this.focus()
    return empty || this._text === text
  }

  get #busy(): boolean {
    const phase = this.#phase.value
    if (phase?.at === 'sending') return true
    const status = this.#command.data?.command.status
    return phase?.at === 'accepted' && status !== 'failed' && status !== 'uncertain'
  }

  get #whyNot(): string {
    if (!this.target) return 'Choose an agent first.'
    const phase = this.#phase.value
    const open = phase?.at === 'unknown' && phase.attempt.text !== this._text
    return open && this._text !== '' ? 'Retry or discard the unconfirmed message first.' : ''
  }

  #send(): void {
    const { target } = this
    if (this.#busy) {
      const under = this.#phase.value
      this.#next = under && 'attempt' in under && under.attempt.text !== this._text ? this._text : null
      return
    }
    if (!target || this._text.trim() === '' || this.#whyNot !== '') return
    // Nobody confirmed the last one: the same words again are that attempt again, or they could arrive twice.
    if (this.#phase.value?.at === 'unknown') this.#sending?.retry(target)
    else {
      this._asking = this.caution(this._text, target)
      if (!this._asking) this.#sendOff(target)
    }
  }

  #sendOff(target: Target): void {
    const sending = this.#sending
    if (!sending) return
    sending.send(target, this._text, this.replacing(this._text, target))
  }

  #confirm(): TemplateResult | typeof nothing {
    const { target, _asking: asking } = this
    if (!asking || !target) return nothing
    const run = (): Promise<void> => Promise.resolve(this.#sendOff(target))
    const close = (): void => {
      this._asking = null
      this.focus()
    }
    return html`<signalbox-confirm
      .title=${asking.title}
      .sentences=${asking.sentences}
      .word=${asking.word}
      .run=${run}
      @close=${close}
    ></signalbox-confirm>`
  }

  #write(event: Event & { currentTarget: HTMLTextAreaElement }): void {
    this._text = event.currentTarget.value
    this.app.drafts.keep(this.scope, this._text)
  }

  #key(event: KeyboardEvent): void {
    if (event.key === 'Escape') {
      // Leaves the field, not the task: the next Escape goes back.
      event.stopPropagation()
      if (event.currentTarget instanceof HTMLElement) event.currentTarget.blur()
      this.dispatchEvent(new Event('leave'))
    }
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    this.#send()
  }

  override render(): TemplateResult {
    const sending = this.#phase.value?.at === 'sending'
    const why = this.#whyNot
    if (this.closed !== '') {
      return html`${this.#notice()}
        <p class="notice closed">
          ${icon(this.closed === agentRemoved ? 'unplug' : 'key-round', 15)}<span class="grow">${this.closed}</span>
        </p>`
    }
    return html`${this.#notice()} ${this.#underWay()} ${this.#confirm()}
      <div class="box">
        <label class="sr" for="text">Message</label>
        <textarea
          id="text"
          rows="2"
          dir="auto"
          placeholder=${this.hint}
          ?readonly=${sending}
          .value=${this._text}
          @input=${(event: Event & { currentTarget: HTMLTextAreaElement }) => this.#write(event)}
          @keydown=${(event: KeyboardEvent) => this.#key(event)}
        ></textarea>
        <div class="row actions">
          <span class="faint grow ell" role="status">${this.#standing() || why}</span>
          <slot name="actions"></slot>
          <button
            class="primary"
            ?disabled=${this.#busy || this._text.trim() === '' || why !== ''}
            @click=${() => this.#send()}
          >
            ${sending ? 'Sending…' : html`Send<kbd aria-hidden="true">Ctrl ↵</kbd>`}
          </button>
        </div>
      </div>`
  }

  /** One line for what is under way; how it ended badly is a notice. */
  #standing(): string {
    const phase = this.#phase.value
    if (phase?.at !== 'accepted') return ''
    const status = this.#command.data?.command.status ?? 'pending'
    if (status === 'pending') return 'Accepted, waiting to be delivered'
    return status === 'dispatching' ? 'Accepted, being delivered' : ''
  }

  /** It writes to a task that there is, which the page around it shows. */
  get #inTask(): boolean {
    return this.scope.startsWith(scopeOfTask(''))
  }

  /** What is under way, since when, and where to look. A task's conversation shows the words itself. */
  #underWay(): TemplateResult | typeof nothing {
    const phase = this.#phase.value
    if (phase?.at !== 'accepted' || this.#standing() === '') return nothing
    const { text, startedAt } = phase.attempt
    const since = this.#command.data?.command.createdAt ?? startedAt
    const actor = `/actors/command/${phase.commandId}`
    return html`<div class="notice under-way">
      ${icon('clock', 15)}
      <div class="grow">
        ${this.#inTask ? nothing : html`<p class="said quoted">${text}</p>`}
        <p class="muted">
          Accepted at ${this.app.format.at(since)}. It is delivered whether or not this page stays open.
        </p>
        <a class="link" href=${this.app.router.href(actor)} data-route=${actor}>What the command does</a>
      </div>
    </div>`
  }

  #notice(): TemplateResult | typeof nothing {
    const phase = this.#phase.value
    if (phase?.at === 'unknown') return this.#unconfirmed(phase.message, phase.attempt.text)
    if (phase?.at === 'refused') {
      return html`<div class="notice bad" role="alert">
        ${icon('circle-x', 15)}
        <div class="grow">
          <b>Not accepted</b>
          <p>${whyNotAccepted(phase.fault.message)}</p>
        </div>
        <button class="small" @click=${() => this.#sending?.dismiss()}>Dismiss</button>
      </div>`
    }
    const command = phase?.at === 'accepted' ? this.#command.data?.command : undefined
    return command && phase?.at === 'accepted' ? this.#outcome(command, phase.attempt.text) : nothing
  }

  #unconfirmed(message: string, text: string): TemplateResult {
    return html`<div class="notice warn" role="alert">
      ${icon('unplug', 15)}
      <div class="grow">
        <b>Not confirmed</b>
        <p>${message} Trying again is safe: it carries the same key, so the console takes it only once.</p>
        ${text === this._text ? nothing : html`<p class="said quoted">${text}</p>`}
      </div>
      <button class="small" ?disabled=${!this.target} @click=${() => this.target && this.#sending?.retry(this.target)}>
        Retry
      </button>
      <button class="small ghost" @click=${() => this.#sending?.dismiss()}>Discard</button>
    </div>`
  }

  #outcome(command: Command, text: string): TemplateResult | typeof nothing {
    const { delivery, evidence, settlement = null } = this.#record.data ?? {}
    // Before its record is read this much is known: words that were to begin a task have none to look at.
    const about = delivery ? { localId: delivery.localId } : this.#inTask ? {} : { localId: null }
    const explanation = explainCommand(
      { ...command, ...about, cause: delivery?.cause ?? null, ended: delivery?.ended ?? null },
      Date.now(),
      null,
      evidence ?? command.evidence,
      settlement,
    )
    if (!explanation) return nothing
    const { id, agentId } = command
    const { tone, title, known } = explanation
    const [what, ...advice] = explanation.sentences
    const isOpen = settlement === null
    const sentences = [what, ...(isOpen && delivery?.cause ? [delivery.cause] : []), ...advice]
    const shown = this.#inTask ? ['open-successor'] : ['open-successor', 'open-task']
    const found = { ...explanation, remedies: explanation.remedies.filter((remedy) => shown.includes(remedy)) }
    const successorId = settlement?.successorId ?? null
    const ways = { app: this.app, commandId: id, agentId, localId: evidence?.localId ?? null, successorId }
    const actor = `/actors/command/${id}`
    return html`<div class="notice ${tone}" role="alert">
      ${icon(toneIcon(tone), 15)}
      <div class="grow">
        <b>${title}</b>
        ${sentences.map((sentence) => html`<p><bdi>${sentence}</bdi></p>`)} ${knownList(known, this.app)}
        <p class="said quoted">${text}</p>
        ${remedyLinks(found, ways)}
        <a class="link" href=${this.app.router.href(actor)} data-route=${actor}>What the command did</a>
      </div>
      ${tone === 'bad' ? html`<button class="small" @click=${() => this.#putBack(text)}>Put text back</button>` : nothing}
      <button class="small ghost" @click=${() => this.#sending?.dismiss()}>Dismiss</button>
    </div>`
  }

  #putBack(text: string): void {
    this._text = this._text.trim() === '' ? text : `${text}\n${this._text}`
    this.app.drafts.keep(this.scope, this._text)
    this.#sending?.dismiss()
    this.focus()
  }
}
