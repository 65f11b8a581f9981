/**
 * Claims that were asked for and never answered, because the connection ended first: what they took is marked as begun, under
 * tokens that nobody works under. Remembers those tokens until their leases would have run out, so that the next claim takes
 * the rows as what they are: not begun. Without it a command waits a minute for its lease and may end in doubt for nothing.
 */
interface Unheard {
  readonly tokens: readonly string[]
  /** Monotonic milliseconds. */
  readonly until: number
}

/** Of one kind. Beyond it the oldest wait for their leases. */
const claimsRemembered = 50

export class UnheardClaims {
  readonly #byKind = new Map<string, Unheard[]>()

  /** The claim may have been granted up to now, or may still be: a server notices late that nobody listens. */
  lost(kind: string, tokens: readonly string[], until: number): void {
    const known = this.#byKind.get(kind) ?? []
    this.#byKind.set(kind, [...known, { tokens, until }].slice(-claimsRemembered))
  }

  tokens(kind: string, now: number): readonly string[] {
    const known = this.#byKind.get(kind)
    if (!known) return []
    const current = known.filter(({ until }) => now < until)
    if (current.length === 0) this.#byKind.delete(kind)
    else this.#byKind.set(kind, current)
    return current.flatMap(({ tokens }) => tokens)
  }
}
