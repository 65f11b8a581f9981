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

/** What is known of a message, by its name: where it stands, and what it says, or a digest of that. */
export type KnownMessage = Pick<SaidMessage, 'role'> & { readonly position: number } & (
    | Pick<SaidMessage, 'parts'>
    | { readonly digest: string | null }
  )

/** Null where it is long, or was not asked for: then it is taken for the same. */
function digestOf(message: Pick<SaidMessage, 'parts'> | { readonly digest: string | null }, chain: Chain) {
  if ('digest' in message) return message.digest
  return typeof message.parts === 'string' && !isLong(message.parts) ? chain('', message.parts) : null
}

/** Without its words, for whoever remembers many. */
export const withoutWords = (message: KnownMessage, chain: Chain): KnownMessage => ({
  role: message.role,
  position: message.position,
  digest: digestOf(message, chain),
})

/** As long as it takes for two of one task's messages not to meet by accident. */
const digestCharacters = 16

/** The name of what the other side says under an id. */
const nameOfSide = ({ id, role }: SaidMessage): string => `${id}#${role}`

/** The name of further words of the same side. */
const nameOfWords = (message: SaidMessage, digest: string): string =>
  `${nameOfSide(message)}-${digest.slice(0, digestCharacters)}`

/** What may be known of it stands under these. Only words of a status, and our own, are told apart from others of the same side. */
export function namesOf(message: SaidMessage, chain: Chain, isOwn: boolean): readonly string[] {
  const digest = message.fromStatus || isOwn ? digestOf(message, chain) : null
  const names = [message.id, nameOfSide(message)]
  return digest === null ? names : [...names, nameOfWords(message, digest)]
}

/** The first message of the same side under its id. */
function ofSide(message: SaidMessage, known: ReadonlyMap<string, KnownMessage>): KnownMessage | undefined {
  const own = known.get(message.id)
  return own && own.role !== message.role ? known.get(nameOfSide(message)) : own
}

/** The message that it is, where it is known: of a status, the one of these words where its id was used for several. */
export function knownAs(
  message: SaidMessage,
  known: ReadonlyMap<string, KnownMessage>,
  chain: Chain,
): KnownMessage | undefined {
  const side = ofSide(message, known)
  const digest = side && message.fromStatus ? digestOf(message, chain) : null
  return (digest === null ? undefined : known.get(nameOfWords(message, digest))) ?? side
}

/**
 * The name that it is kept by; null where these words are known. Of the same side only a status that counts says something new under
 * an id, and our own words where those that are known are older: histories and late events repeat what was said, in a form that may be another.
 */
export function nameFor(
  message: SaidMessage,
  known: ReadonlyMap<string, KnownMessage>,
  isNews: (known: KnownMessage) => boolean,
  chain: Chain,
): string | null {
  const own = known.get(message.id)
  if (!own) return message.id
  const side = ofSide(message, known)
  if (side && !isNews(side)) return null
  const digest = digestOf(message, chain)
  const areOthers = (than: KnownMessage): boolean => {
    const thanDigest = digestOf(than, chain)
    return digest !== null && thanDigest !== null && digest !== thanDigest
  }
  // What the one side said is no news where the other says it.
  if (digest === null || !areOthers(own)) return null
  if (!side) return nameOfSide(message)
  const name = nameOfWords(message, digest)
  return areOthers(side) && !known.has(name) ? name : null
}
