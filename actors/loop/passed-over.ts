/**
 * What claims have seen and had no room for, so that the next one need not walk past it again: a hundred thousand commands of
 * one agent that hangs stand before everybody else's in the order in which they fell due, and each claim would read them all.
 * Owns how far back a claim looks. Every few seconds one looks at everything again, so that a row that came late, or came
 * back, waits for seconds and never for ever.
 */
interface Look {
  /** Whose rows were left where they are. */
  readonly leftOut: ReadonlySet<string>
  /** Of what had fallen due by then nothing is left but theirs. Monotonic milliseconds. */
  readonly upTo: number
  /** When everything was looked at last. */
  readonly wholeAt: number
}

/** A claim that was answered. */
export interface Claimed {
  readonly kind: string
  /** Lanes whose rows were left where they are, and `doubted` where all that failed or was slow last was. */
  readonly leftOut: readonly string[]
  /** As `reach` said. */
  readonly reach: number | undefined
  /** When it was asked for, monotonic milliseconds. */
  readonly at: number
  /** How long the last row that it took had been due, where it took as many as it might; null: it took all that there was. */
  readonly lastDueMs: number | null
}

/** A row's time is that of its transaction, which may commit later than that. */
const lateMs = 2_000
const wholeEveryMs = 5_000

export class PassedOver {
  readonly #byKind = new Map<string, Look>()

  /** How far back a claim has to look, milliseconds; undefined: at everything that is due. */
  reach(kind: string, leftOut: readonly string[], now: number): number | undefined {
    const last = this.#byKind.get(kind)
    if (!last || now - last.wholeAt >= wholeEveryMs) return undefined
    // What has room again has rows of any age.
    const full = new Set(leftOut)
    return [...last.leftOut].every((lane) => full.has(lane)) ? now - last.upTo + lateMs : undefined
  }

  note({ kind, leftOut, reach, at, lastDueMs }: Claimed): void {
    const last = this.#byKind.get(kind)
    if (leftOut.length === 0) this.#byKind.delete(kind)
    else {
      const upTo = at - Math.max(0, lastDueMs ?? 0)
      const left = new Set(leftOut)
      if (reach === undefined || !last) this.#byKind.set(kind, { leftOut: left, upTo, wholeAt: at })
      else this.#byKind.set(kind, { leftOut: left, upTo: Math.max(upTo, last.upTo), wholeAt: last.wholeAt })
    }
  }
}
