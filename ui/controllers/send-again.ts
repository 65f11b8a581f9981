/**
 * Words of an earlier send, put into a composer to be sent again by a person. Owns fetching them with what is on record of that
 * send, filling the field once and telling what sending them means, which domain/send-again.ts says. Sending itself is the
 * composer's: a new command with a new key; once it is accepted, the earlier send is settled by it.
 */
import { html, nothing, type LitElement, type ReactiveController, type TemplateResult } from 'lit'
import type { ActorAnswer } from '../../domain/actor.ts'
import { againWords, isSaidAgain, isSameAddress, type AgainWords, type Caution } from '../../domain/send-again.ts'
import { needsPerson, SettlementAnswer, settlementRefusals, whyNotSettled } from '../../domain/settlement.ts'
import type { SentWords, SentWordsAnswer } from '../../domain/unsettled-send.ts'
import { faultOf } from '../api.ts'
import type { App } from '../app.ts'
import type { SignalboxComposer } from '../elements/composer.ts'
import { icon } from '../elements/icon.ts'
import { settlePath } from '../elements/settle-send.ts'
import { plural } from '../format.ts'
import { actorQuestion, asItStands, sentQuestion } from '../record-questions.ts'
import type { Sending, Target } from '../sending.ts'
import { Query } from './query.ts'

export class SendAgain implements ReactiveController {
  readonly #host: LitElement
  readonly #app: () => App | undefined
  readonly #composer: () => SignalboxComposer | null
  readonly #sent: Query<SentWordsAnswer>
  /** What became of it, and what was found at the agent: it may be found while somebody hesitates. */
  readonly #record: Query<ActorAnswer>
  /** What is in the field, or would be; kept when the address no longer asks for it. */
  #told: { readonly send: SentWords; readonly filled: boolean; readonly words: AgainWords } | undefined
  #dismissed = false
  /** Why the earlier one could not be settled, and on which page that is news. */
  #unsettled: { readonly why: string; readonly page: string | undefined } | undefined
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
    this.#record = new Query(host, () => {
      const id = this.#asked
      const queries = app()?.queries
      return queries && id !== null ? { queries, question: actorQuestion('command', id) } : undefined
    })
    host.addController(this)
  }

  /** `?again=<command>`, which a link to the composer carries. */
  get #asked(): string | null {
    return this.#app()?.router.get().query.get('again') ?? null
  }

  hostConnected(): void {}

  hostUpdate(): void {
    const told = this.#told
    const send = this.#sent.data?.send
    if (told && send?.id === told.send.id) this.#told = { ...told, ...this.#standing(send) }
  }

  hostUpdated(): void {
    const composer = this.#composer()
    const send = this.#sent.data?.send
    if (!composer || !send || this.#filledFor === send.id) return
    const { data, fault } = this.#record.answer
    // Words without what is known of them could be sent at once, and said twice.
    if (!data && !fault) return
    this.#filledFor = send.id
    this.#dismissed = false
    // Its draft is read with its first update; filling before that would write over what a person had begun.
    void composer.updateComplete.then(() => {
      this.#told = { ...this.#standing(send), filled: composer.fill(send.text) }
      this.#host.requestUpdate()
    })
  }

  /** As it is known now: it may end, be found or be settled while somebody hesitates. */
  #standing(sent: SentWords): { readonly send: SentWords; readonly words: AgainWords } {
    const send = asItStands(sent, this.#record.data)
    const { delivery = null, evidence = null } = this.#record.data ?? {}
    return { send, words: againWords({ status: send.status, settlement: send.settlement, delivery, evidence }) }
  }

  /** Another task or agent is shown, or the words were sent. */
  forget(): void {
    if (!this.#told) return
    this.#told = undefined
    this.#host.requestUpdate()
  }

  /** What to ask once more before these words are sent: also after the notice was put away, and with more words around them. */
  readonly caution = (text: string, { agentId }: Target): Caution | null => {
    const told = this.#told
    return told?.send.agentId === agentId && text.includes(told.send.text.trim()) ? told.words.caution : null
  }

  /** These words go out: as soon as the console has them as a command, that one takes the place of the earlier. */
  readonly sent = (text: string, sending: Sending, target: Target): void => {
    const app = this.#app()
    const told = this.#told
    if (!app || !told || !needsPerson(told.send.status) || told.send.settlement) return
    const { send, filled } = told
    if (!isSaidAgain({ ...send, filled, dismissed: this.#dismissed }, text, target)) return
    this.#unsettled = undefined
    const begun = sending.phase.get()
    const key = 'attempt' in begun ? begun.attempt.idempotencyKey : undefined
    // Beyond this page: who sent it may be elsewhere by then. Ends with the attempt, whatever becomes of it.
    const watch = sending.phase.subscribe((phase) => {
      const isOurs = 'attempt' in phase && phase.attempt.idempotencyKey === key
      if (isOurs && phase.at !== 'accepted') return
      watch.unsubscribe()
      if (isOurs && phase.at === 'accepted') void this.#settle(app, send.id, phase.commandId)
    })
  }

  /** The send is not disturbed by it: what could not be settled still needs a person, and is shown where it was. */
  async #settle(app: App, commandId: string, successorId: string): Promise<void> {
    const body = { decision: 'sent-again', successorId }
    try {
      await app.api.change(settlePath(commandId), { method: 'POST', body }, SettlementAnswer)
    } catch (error) {
      const fault = faultOf(error)
      // Somebody has decided about it meanwhile: it needs nobody.
      if (fault.message !== settlementRefusals.taken)
        this.#unsettled = { why: whyNotSettled(fault), page: app.router.get().params['id'] }
    }
    app.queries.invalidate()
    this.#host.requestUpdate()
  }

  #dismiss(): void {
    this.#dismissed = true
    this.#host.requestUpdate()
  }

  /** `target`: to whom the words in the field would go now. */
  notice(target: Target | undefined): TemplateResult | typeof nothing {
    const { fault } = this.#sent.answer
    if (fault && this.#asked !== null)
      return html`<p class="notice warn" role="status">
        ${icon('triangle-alert', 15)}<span>The words to send again could not be read: ${fault.message}</span>
      </p>`
    const unsettled = this.#unsettled
    if (unsettled !== undefined && unsettled.page === this.#app()?.router.get().params['id'])
      return html`<p class="notice" role="status">
        ${icon('info', 15)}<span>The message is sent. The earlier one could not be settled: ${unsettled.why}</span>
      </p>`
    const told = this.#told
    if (!told || this.#dismissed) return nothing
    const { send, filled, words } = told
    const isOpen = needsPerson(send.status) && !send.settlement
    const settles = isOpen && filled && target !== undefined && isSameAddress(send, target)
    const others =
      send.otherParts > 0
        ? `It also carried ${plural(send.otherParts, 'part')} that cannot be written into a field: not included.`
        : ''
    return html`<div class="notice ${words.tone}" role="status">
      ${icon(words.tone === 'warn' ? 'triangle-alert' : 'reply', 15)}
      <div class="grow">
        <b>${words.title}</b>
        ${filled ? nothing : html`<p>Your draft was kept; the message is not in the field.</p>`}
        ${filled ? nothing : html`<p class="said quoted">${send.text}</p>`}
        ${words.sentences.map((sentence) => html`<p><bdi>${sentence}</bdi></p>`)}
        ${others === '' ? nothing : html`<p>${others}</p>`}
        ${settles ? html`<p>Accepted with these words, it settles the earlier one.</p>` : nothing}
      </div>
      <button class="small ghost" @click=${() => this.#dismiss()}>Dismiss</button>
    </div>`
  }
}
