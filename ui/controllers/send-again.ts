/**
 * Words that were sent before, put into a composer to be sent again by a person. Owns fetching them, filling the field once
 * and saying plainly what sending them means. Sending itself is the composer's: a new command with a new key.
 */
import { html, nothing, type LitElement, type ReactiveController, type TemplateResult } from 'lit'
import { type SentWords, SentWordsAnswer } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import type { SignalboxComposer } from '../elements/composer.ts'
import { icon } from '../elements/icon.ts'
import type { Question } from '../queries.ts'
import { plural } from '../format.ts'
import { Query } from './query.ts'

const sentQuestion = (commandId: string): Question<SentWordsAnswer> => ({
  path: `/api/sends/${encodeURIComponent(commandId)}`,
  schema: SentWordsAnswer,
  freshness: 'steady',
})

export class SendAgain implements ReactiveController {
  readonly #host: LitElement
  readonly #app: () => App | undefined
  readonly #composer: () => SignalboxComposer | null
  readonly #sent: Query<SentWordsAnswer>
  /** What is in the field, or would be; kept when the address no longer asks for it. */
  #told: { readonly send: SentWords; readonly filled: boolean } | undefined
  #filledFor: string | undefined

  constructor(host: LitElement, app: () => App | undefined, composer: () => SignalboxComposer | null) {
    this.#host = host
    this.#app = app
    this.#composer = composer
    this.#sent = new Query(host, () => {
      const id = this.#asked
      const queries = app()?.queries
      return queries && id !== null ? { queries, question: sentQuestion(id) } : undefined
    })
    host.addController(this)
  }

  /** `?again=<command>`, which a link to the composer carries. */
  get #asked(): string | null {
    return this.#app()?.router.get().query.get('again') ?? null
  }

  hostConnected(): void {}

  hostUpdated(): void {
    const composer = this.#composer()
    const send = this.#sent.data?.send
    if (!composer || !send || this.#filledFor === send.id) return
    this.#filledFor = send.id
    // Its draft is read with its first update; filling before that would write over what a person had begun.
    void composer.updateComplete.then(() => {
      this.#told = { send, filled: composer.fill(send.text) }
      this.#host.requestUpdate()
    })
  }

  /** Another task or agent is shown, or the words were sent. */
  forget(): void {
    if (!this.#told) return
    this.#told = undefined
    this.#host.requestUpdate()
  }

  notice(): TemplateResult | typeof nothing {
    const { fault } = this.#sent.answer
    if (fault && this.#asked !== null)
      return html`<p class="notice warn" role="status">
        ${icon('triangle-alert', 15)}<span>The words to send again could not be read: ${fault.message}</span>
      </p>`
    const told = this.#told
    if (!told) return nothing
    const { send, filled } = told
    const twice =
      send.status === 'uncertain'
        ? 'The agent may have them already, and would then get them twice.'
        : 'The agent did not take them the first time.'
    const others =
      send.otherParts > 0
        ? `It also carried ${plural(send.otherParts, 'part')} that cannot be written into a field: not included.`
        : ''
    return html`<div class="notice warn" role="status">
      ${icon('triangle-alert', 15)}
      <div class="grow">
        <b>${filled ? 'These words were sent before' : 'Your draft was kept; these words were sent before'}</b>
        ${filled ? nothing : html`<p class="said quoted">${send.text}</p>`}
        <p>Sending them is a new command with a new key. ${twice} ${others}</p>
      </div>
      <button class="small ghost" @click=${() => this.forget()}>Dismiss</button>
    </div>`
  }
}
