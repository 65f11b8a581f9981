/**
 * What a person typed and tried to send, kept in `sessionStorage`: it survives a reload, a sign-out and the way to another
 * page, and ends with the tab. Owns the storage's names and shapes. Only the person's own words are kept, nothing of an agent's.
 */
import * as z from 'zod/mini'

/** One try at sending, made once and repeated under the same key, so that however often it is retried it happens once. */
const Attempt = z.object({
  idempotencyKey: z.string(),
  messageId: z.string(),
  text: z.string(),
  startedAt: z.string(),
  /** Present from the moment the console accepted it. */
  commandId: z.optional(z.string()),
})
export type Attempt = z.infer<typeof Attempt>

const draftKey = (scope: string): string => `signalbox.draft.${scope}`
const attemptKey = (scope: string): string => `signalbox.attempt.${scope}`

export const newAttempt = (text: string): Attempt => ({
  idempotencyKey: crypto.randomUUID(),
  messageId: crypto.randomUUID(),
  text,
  startedAt: new Date().toISOString(),
})

export const readDraft = (scope: string): string => sessionStorage.getItem(draftKey(scope)) ?? ''

export function keepDraft(scope: string, text: string): void {
  if (text === '') sessionStorage.removeItem(draftKey(scope))
  else sessionStorage.setItem(draftKey(scope), text)
}

/** Undefined when there is none, or when another version of this page left something we cannot read. */
export function readAttempt(scope: string): Attempt | undefined {
  const kept = sessionStorage.getItem(attemptKey(scope))
  if (kept === null) return undefined
  try {
    const parsed = Attempt.safeParse(JSON.parse(kept))
    return parsed.success ? parsed.data : undefined
  } catch {
    return undefined
  }
}

export function keepAttempt(scope: string, attempt: Attempt | undefined): void {
  if (attempt) sessionStorage.setItem(attemptKey(scope), JSON.stringify(attempt))
  else sessionStorage.removeItem(attemptKey(scope))
}
