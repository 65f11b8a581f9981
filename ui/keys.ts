/**
 * Keyboard shortcuts: one register that the keys, the list of keys and the palette all read. Views add their bindings
 * while they are shown. Heard only while focus is inside the console, never in a field, and single keys can be turned
 * off (WCAG 2.1.4), because speech input types them by accident.
 */
export interface Binding {
  /** One key as `KeyboardEvent.key` names it, or two that follow each other: 'g t'. */
  readonly keys: string
  readonly label: string
  readonly group: 'Move' | 'Go to' | 'This page' | 'Console'
  /** May return false: the key was not for it after all, and the browser may have it. */
  readonly run: (event: KeyboardEvent | undefined) => void | boolean
  /** False while it is not for this person: neither heard nor listed. */
  readonly open?: () => boolean
  /** Needs Ctrl or Command, and works inside fields as well. */
  readonly withControl?: true
}

const chordMs = 900
const storageKey = 'signalbox.single-keys'

export class Keys {
  readonly #sets = new Set<readonly Binding[]>()
  #pending: { readonly key: string; readonly atMs: number } | undefined
  /** Takes what is typed while a dialog is on its way: it is meant for that, and not for the page below. */
  divert: ((event: KeyboardEvent) => void) | undefined
  #singleKeys = localStorage.getItem(storageKey) !== 'off'

  add(bindings: readonly Binding[]): () => void {
    this.#sets.add(bindings)
    return () => void this.#sets.delete(bindings)
  }

  /** The latest view's bindings first: a page may take a key from the console. */
  get all(): Binding[] {
    return [...this.#sets]
      .toReversed()
      .flat()
      .filter((binding) => binding.open?.() !== false)
  }

  get singleKeys(): boolean {
    return this.#singleKeys
  }

  useSingleKeys(use: boolean): void {
    this.#singleKeys = use
    localStorage.setItem(storageKey, use ? 'on' : 'off')
  }

  handle(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing) return
    const control = event.ctrlKey || event.metaKey
    if (this.divert && !control) return this.divert(event)
    const candidates = this.all.filter((binding) => (binding.withControl === true) === control)
    if (!control && (!this.#singleKeys || event.altKey || isTyping(event))) return
    const chord = this.#takePending(event)
    const wanted = chord === undefined ? event.key : `${chord} ${event.key}`
    const binding = candidates.find(({ keys }) => keys === wanted)
    if (binding) {
      if (binding.run(event) !== false) event.preventDefault()
      return
    }
    if (candidates.some(({ keys }) => keys.startsWith(`${event.key} `))) {
      this.#pending = { key: event.key, atMs: event.timeStamp }
    }
  }

  #takePending(event: KeyboardEvent): string | undefined {
    const pending = this.#pending
    this.#pending = undefined
    return pending && event.timeStamp - pending.atMs < chordMs ? pending.key : undefined
  }
}

function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath()
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || target.matches('input:not([type=checkbox], [type=radio]), textarea, select')
}
