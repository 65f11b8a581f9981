/**
 * What a person typed and tried to send, kept in `sessionStorage`: it survives a reload, a sign-out and the way to another
 * page, and ends with the tab. Owns the storage's names and shapes, and that one person never meets another's words. Only the
 * person's own words are kept, nothing of an agent's.
 */
import * as z from 'zod/mini'

/** One try at sending, made once and repeated under the same key, so that however often it is retried it happens once. */
const Attempt = z.object({
  idempotencyKey: z.string(),
  messageId: z.string(),
  text: z.string(),
  startedAt: z.string(),
  /** The earlier send in whose place it goes. */
  replaces: z.optional(z.string()),
  /** Present from the moment the console accepted it. */
  commandId: z.optional(z.string()),
})
export type Attempt = z.infer<typeof Attempt>

const drafts = 'signalbox.draft.'
const attempts = 'signalbox.attempt.'
const ownerKey = 'signalbox.drafts-of'

export const newAttempt = (text: string, replaces?: string): Attempt => ({
  idempotencyKey: crypto.randomUUID(),
  messageId: crypto.randomUUID(),
  text,
  startedAt: new Date().toISOString(),
  ...(replaces === undefined ? {} : { replaces }),
})

const keptKeys = (): string[] =>
  Object.keys(sessionStorage).filter((key) => key.startsWith(drafts) || key.startsWith(attempts))

export class Drafts {
  #owned = false

  /** Until this was called nothing is read. What somebody else left in this tab ends here. */
  belongTo(personId: string): void {
    const before = sessionStorage.getItem(ownerKey)
    if (before !== null && before !== personId) for (const key of keptKeys()) sessionStorage.removeItem(key)
    sessionStorage.setItem(ownerKey, personId)
    this.#owned = true
  }

  /** Whether there is anything to come back for. */
  get any(): boolean {
    return keptKeys().length > 0
  }

  read(scope: string): string {
    return this.#item(drafts + scope) ?? ''
  }

  keep(scope: string, text: string): void {
    if (text === '') sessionStorage.removeItem(drafts + scope)
    else sessionStorage.setItem(drafts + scope, text)
  }

  /** Undefined when there is none, or when another version of this page left something we cannot read. */
  readAttempt(scope: string): Attempt | undefined {
    const kept = this.#item(attempts + scope)
    if (kept === null) return undefined
    try {
      const parsed = Attempt.safeParse(JSON.parse(kept))
      return parsed.success ? parsed.data : undefined
    } catch {
      return undefined
    }
  }

  keepAttempt(scope: string, attempt: Attempt | undefined): void {
    if (attempt) sessionStorage.setItem(attempts + scope, JSON.stringify(attempt))
    else sessionStorage.removeItem(attempts + scope)
  }

  #item(key: string): string | null {
    return this.#owned ? sessionStorage.getItem(key) : null
  }
}
