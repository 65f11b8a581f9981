/**
 * What is typed while the code of a dialog is on its way: it is meant for that, and not for the page below. Owns which keys are
 * taken, and what they make; when they are, is the console's to say.
 */

/** Characters: as many as the palette's own field takes. */
const limit = 200

export class TypeAhead {
  #text = ''
  readonly #leave: () => void

  /** `leave`: Escape was pressed. */
  constructor(leave: () => void) {
    this.#leave = leave
  }

  get text(): string {
    return this.#text
  }

  clear(): void {
    this.#text = ''
  }

  readonly take = (event: KeyboardEvent): void => {
    if (event.altKey) return
    if (event.key === 'Escape') this.#leave()
    else if (event.key === 'Backspace') this.#text = this.#text.slice(0, -1)
    else if (event.key.length === 1) this.#text = (this.#text + event.key).slice(0, limit)
    // Enter would press what has the focus below; Tab, F5 and the like are the browser's.
    else if (event.key !== 'Enter') return
    event.preventDefault()
  }
}
