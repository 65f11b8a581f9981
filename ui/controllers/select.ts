/** Reads a part of something observable and redraws its host when that part changes. Lit has no binding for @xstate/store. */
import type { LitElement, ReactiveController } from 'lit'

/** A store, an atom, a router or an XState actor's readable face: one case. */
export interface Readable<T> {
  get(): T
  subscribe(listener: (value: T) => void): { unsubscribe(): void }
}

export class Select<T, R> implements ReactiveController {
  readonly #host: LitElement
  readonly #source: () => Readable<T> | undefined
  readonly #pick: (value: T) => R
  #from: Readable<T> | undefined
  #value: R | undefined
  #subscription: { unsubscribe(): void } | undefined

  /** `source` is asked again before every update, because a view gets its app, and its app's parts, after construction. */
  constructor(host: LitElement, source: () => Readable<T> | undefined, pick: (value: T) => R) {
    this.#host = host
    this.#source = source
    this.#pick = pick
    host.addController(this)
  }

  /** Undefined only while there is no source. */
  get value(): R | undefined {
    return this.#value
  }

  hostConnected(): void {
    this.#attach()
  }

  hostUpdate(): void {
    this.#attach()
  }

  hostDisconnected(): void {
    this.#subscription?.unsubscribe()
    this.#subscription = undefined
    this.#from = undefined
  }

  /** Not by an update that was still pending when its host was removed. */
  #attach(): void {
    if (!this.#host.isConnected) return
    const from = this.#source()
    if (from === this.#from) return
    this.#subscription?.unsubscribe()
    this.#from = from
    this.#value = from && this.#pick(from.get())
    this.#subscription = from?.subscribe((value) => this.#take(value))
  }

  #take(value: T): void {
    const picked = this.#pick(value)
    if (Object.is(picked, this.#value)) return
    this.#value = picked
    this.#host.requestUpdate()
  }
}
