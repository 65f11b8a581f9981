/**
 * Words of an earlier send, put into a composer to be sent again by a person. Owns fetching them with what is on record of that
 * send, filling the field once and telling what sending them means, which domain/send-again.ts says. Sending itself is the
 * composer's: a new command with a new key, which names the earlier send where it takes its place.
 */
import { html, nothing, type LitElement, type ReactiveController, type TemplateResult } from 'lit'
import type { ActorAnswer } from '../../domain/actor.ts'
import {
  againWords,
  isSaidAgain,
  isSameAddress,
  type Address,
  type AgainWords,
  type Caution,
} from '../../domain/send-again.ts'
import { needsPerson } from '../../domain/settlement.ts'
import type { SentWords, SentWordsAnswer } from '../../domain/unsettled-send.ts'
import type { App } from '../app.ts'
import type { SignalboxComposer } from '../elements/composer.ts'
import { icon } from '../elements/icon.ts'
import { plural } from '../format.ts'
import { actorQuestion, asItStands, sentQuestion } from '../record-questions.ts'
import type { Target } from '../sending.ts'
import { Query } from './query.ts'

export class SendAgain implements ReactiveController {
  readonly #host: LitElement
  readonly #app: () => App | undefined
  readonly #composer: () => SignalboxComposer | null
  readonly #skillOfTask: () => string | null
  readonly #sent: Query<SentWordsAnswer>
  /** What became of it, and what was found at the agent: it may be found while somebody hesitates. */
  readonly #record: Query<ActorAnswer>
  /** What is in the field, or would be; kept when the address no longer asks for it. */
  #told: { readonly send: SentWords; readonly filled: boolean; readonly words: AgainWords } | undefined
  #dismissed = false
  #accepted: string | undefined
  #filledFor: string | undefined

  /** `skillOfTask`: of the task that is shown, where there is one. */
  constructor(
    host: LitElement,
    app: () => App | undefined,
    composer: () => SignalboxComposer | null,
    skillOfTask: () => string | null = () => null,
  ) {
    this.#host = host
    this.#app = app
    this.#composer = composer
    this.#skillOfTask = skillOfTask
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

  /**
   * Which command the composer's words have become, if any. These are accepted with the next one: until then what is known of the
   * earlier send still counts, and that one may be what the composer had sent before.
   */
  heard(commandId: string | undefined): void {
    if (commandId === undefined || commandId === this.#accepted) return
    this.#accepted = commandId
    this.forget()
  }

  /** Another task or agent is shown. */
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

  /** Id of the earlier send whose place these words take, if any: the commit that accepts them settles it. */
  readonly replacing = (text: string, target: Target): string | undefined => {
    const told = this.#told
    if (!told || !needsPerson(told.send.status) || told.send.settlement) return undefined
    const { send, filled } = told
    return isSaidAgain({ ...send, filled, dismissed: this.#dismissed }, text, this.#addressOf(target))
      ? send.id
      : undefined
  }

  #addressOf({ agentId, tenant, skillId, taskId }: Target): Address {
    return { agentId, tenant, skillId: taskId === undefined ? (skillId ?? null) : this.#skillOfTask() }
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
    const told = this.#told
    if (!told || this.#dismissed) return nothing
    const { send, filled, words } = told
    const isOpen = needsPerson(send.status) && !send.settlement
    const settles = isOpen && filled && target !== undefined && isSameAddress(send, this.#addressOf(target))
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
