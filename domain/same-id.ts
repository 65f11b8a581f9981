/**
 * What else is said under a message's id that was used before: A2A asks that each is unique, and some agents name all their
 * questions alike, or answer under the name of what they were asked. Owns when such words are others, and the name that they are
 * kept by. Pure; a rebuild comes to the same.
 */
import type { Chain } from './fold.ts'
import { isLong, type JsonText } from './json-text.ts'

export interface SaidMessage {
  readonly id: string
  readonly role: 'user' | 'agent'
  readonly parts: JsonText
  readonly fromStatus: boolean
}

/** What is known of a message, by its name: what it says, or a digest of that. */
export type KnownMessage = Pick<SaidMessage, 'role'> & (Pick<SaidMessage, 'parts'> | { readonly digest: string | null })

/** Null where it is long, or was not asked for: then it is taken for the same. */
function digestOf(message: Pick<SaidMessage, 'parts'> | { readonly digest: string | null }, chain: Chain) {
  if ('digest' in message) return message.digest
  return typeof message.parts === 'string' && !isLong(message.parts) ? chain('', message.parts) : null
}

/** Without its words, for whoever remembers many. */
export const withoutWords = (message: KnownMessage, chain: Chain): KnownMessage => ({
  role: message.role,
  digest: digestOf(message, chain),
})

/** As long as it takes for two of one task's messages not to meet by accident. */
const digestCharacters = 16

/** The name of other words under its id; its own, where they are too long to be compared. */
export function otherName(message: SaidMessage, chain: Chain): string {
  const digest = digestOf(message, chain)
  return digest === null ? message.id : `${message.id}#${message.role}-${digest.slice(0, digestCharacters)}`
}

/** What may be known of it stands under these. */
export const namesOf = (message: SaidMessage, chain: Chain): ReadonlySet<string> =>
  new Set([message.id, otherName(message, chain)])

/**
 * Whether these are other words than those that are known by its id. Of the same role only a status that counts says something new:
 * histories and late events repeat what was said, in a form that may be another.
 */
export function isAnother(message: SaidMessage, known: KnownMessage, counts: boolean, chain: Chain): boolean {
  if (message.role === known.role && !(message.fromStatus && counts)) return false
  const [digest, knownDigest] = [digestOf(message, chain), digestOf(known, chain)]
  return digest !== null && knownDigest !== null && digest !== knownDigest
}
