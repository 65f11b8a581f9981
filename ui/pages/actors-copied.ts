/** Copies a chart as text, and knows for a moment how that went. Owns the clipboard of an actor's page. */
import type { LitElement, ReactiveController } from 'lit'
import type { Copied } from './actors-header.ts'

/** What was copied is told for this long. */
const copiedMs = 2000

export class Copying implements ReactiveController {
  readonly #host: LitElement
  #state: Copied = 'no'
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(host: LitElement) {
    this.#host = host
    host.addController(this)
  }

  get state(): Copied {
    return this.#state
  }

  hostDisconnected(): void {
    clearTimeout(this.#timer)
  }

  copy(text: string): void {
    // A page on plain HTTP off loopback has no clipboard.
    if (!('clipboard' in navigator)) return this.#tell('failed')
    void navigator.clipboard.writeText(text).then(
      () => this.#tell('yes'),
      () => this.#tell('failed'),
    )
  }

  #tell(state: Copied): void {
    this.#state = state
    this.#host.requestUpdate()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#state = 'no'
      this.#host.requestUpdate()
    }, copiedMs)
  }
}
