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

/** The name of what the other side says under an id. */
const nameOfSide = ({ id, role }: SaidMessage): string => `${id}#${role}`

/** The name of further words of the same side; its first, where they are too long to be compared. */
function nameOfWords(message: SaidMessage, first: string, chain: Chain): string {
  const digest = digestOf(message, chain)
  return digest === null ? first : `${nameOfSide(message)}-${digest.slice(0, digestCharacters)}`
}

/** What may be known of it stands under these. */
export const namesOf = (message: SaidMessage, chain: Chain): ReadonlySet<string> =>
  new Set([message.id, nameOfSide(message), nameOfWords(message, message.id, chain)])

/**
 * The name that it is kept by; null where these words are known. Of the same side only a status that counts says something new under
 * an id: histories and late events repeat what was said, in a form that may be another.
 */
export function nameFor(
  message: SaidMessage,
  known: ReadonlyMap<string, KnownMessage>,
  counts: boolean,
  chain: Chain,
): string | null {
  const own = known.get(message.id)
  if (!own) return message.id
  const isSide = own.role !== message.role
  const side = isSide ? known.get(nameOfSide(message)) : own
  if (!side) return areOthers(message, own, chain) ? nameOfSide(message) : null
  if (!(message.fromStatus && counts) || !areOthers(message, side, chain)) return null
  // What the one side said is no news where the other says it.
  if (isSide && !areOthers(message, own, chain)) return null
  const name = nameOfWords(message, isSide ? nameOfSide(message) : message.id, chain)
  return known.has(name) ? null : name
}

function areOthers(message: SaidMessage, known: KnownMessage, chain: Chain): boolean {
  const [digest, knownDigest] = [digestOf(message, chain), digestOf(known, chain)]
  return digest !== null && knownDigest !== null && digest !== knownDigest
}
