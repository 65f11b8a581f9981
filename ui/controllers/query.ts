/** Holds one question open for as long as its host shows the answer, and redraws the host when the answer changes. */
import type { LitElement, ReactiveController } from 'lit'
import type { Answer, Question, Queries } from '../queries.ts'

const unasked: Answer<never> = { data: undefined, fault: undefined, fetching: false }

export class Query<T> implements ReactiveController {
  readonly #host: LitElement
  readonly #ask: () => { queries: Queries; question: Question<T> } | undefined
  #path: string | undefined
  #queries: Queries | undefined
  #watched: { get(): Answer<T>; stop(): void } | undefined

  /** `ask` is called before every update and every look; another path, or none, ends the watching of the one before. */
  constructor(host: LitElement, ask: () => { queries: Queries; question: Question<T> } | undefined) {
    this.#host = host
    this.#ask = ask
    host.addController(this)
  }

  /** Also right in `willUpdate`, which Lit calls before `hostUpdate`: an answer that is known already brings no update of its own. */
  get answer(): Answer<T> {
    this.#follow()
    return this.#watched?.get() ?? unasked
  }

  get data(): T | undefined {
    return this.answer.data
  }

  refresh(): void {
    if (this.#path !== undefined) this.#queries?.refresh(this.#path)
  }

  hostConnected(): void {
    this.#host.requestUpdate()
  }

  hostUpdate(): void {
    this.#follow()
  }

  /** An update that was pending when its host was removed still runs: nothing would end what that one subscribed to. */
  #follow(): void {
    if (!this.#host.isConnected) return
    const asked = this.#ask()
    if (asked?.question.path === this.#path && asked?.queries === this.#queries) return
    this.#stop()
    if (!asked) return
    this.#path = asked.question.path
    this.#queries = asked.queries
    const watched = asked.queries.watch(asked.question)
    const subscription = watched.answer.subscribe(() => this.#host.requestUpdate())
    this.#watched = {
      get: () => watched.answer.get(),
      stop: () => {
        subscription.unsubscribe()
        watched.release()
      },
    }
  }

  hostDisconnected(): void {
    this.#stop()
  }

  #stop(): void {
    this.#watched?.stop()
    this.#watched = undefined
    this.#path = undefined
    this.#queries = undefined
  }
}
