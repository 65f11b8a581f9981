/**
 * Which cards may be used here: the keys that the configuration pins for each card origin, and what follows from what the
 * signatures prove. Owns the specification's "Card trust" policy. Does not own cryptography (a2a/signatures.ts) or fetching
 * (discovery.ts).
 *
 * Nothing is remembered: keys are a matter of this start, so a card that was kept is judged again whenever it is used.
 */
import { parseCard, type AgentCard } from '../a2a/card.ts'
import { isObject } from '../a2a/proto-json.ts'
import { judgeSignatures, signatureHeader, type PinnedKey } from '../a2a/signatures.ts'
import type { CardSigning, Trust } from '../domain/agent.ts'

export interface CardPolicy {
  /** Only a card that a pinned key signed may be used. */
  readonly requireSigned: boolean
  /** Card origin, exactly as `URL.origin` writes it, to the keys whose signature is believed there. */
  readonly trustedKeys: Readonly<Record<string, readonly PinnedKey[]>>
}

/** Nothing is pinned and nothing is asked. */
export const anyCard: CardPolicy = { requireSigned: false, trustedKeys: {} }

/** The specification's sentence; why is in `signing`. */
export const trustRejected = 'Agent Card trust policy rejected this connection.'

export interface JudgedCard {
  readonly trust: Trust
  readonly signing: CardSigning
  /** What may be read and kept of the card: all of it, or what its verified signature covers. Null: it may not be used. */
  readonly usable: { readonly card: AgentCard; readonly json: unknown } | null
}

const shownKeys = 16
const shownFields = 32
const shown = (name: string): string => name.slice(0, 256).toWellFormed()

export class CardTrust {
  readonly #policy: CardPolicy

  constructor(policy: CardPolicy = anyCard) {
    this.#policy = policy
  }

  /** Judges a card that `parseCard` could read, for the origin that it was fetched from. */
  async judge(parsed: AgentCard, json: unknown, cardUrl: string): Promise<JudgedCard> {
    if (!isObject(json)) throw new TypeError('A card that was read is an object.')
    const { origin } = new URL(cardUrl)
    const { trustedKeys, requireSigned } = this.#policy
    const verdict = await judgeSignatures(json, Object.hasOwn(trustedKeys, origin) ? (trustedKeys[origin] ?? []) : [])
    const { trust, explanation } = verdict
    const signing: CardSigning = {
      explanation: requireSigned && trust !== 'verified' ? `${explanation} ${signatureNeeded}` : explanation,
      namedKeys: namedKeys(parsed.signatures),
      ...('keyId' in verdict ? { keyId: verdict.keyId } : {}),
    }
    if (trust === 'invalid' || (requireSigned && trust !== 'verified')) return { trust, signing, usable: null }
    if (trust !== 'verified') return { trust, signing, usable: { card: parsed, json } }
    const covered = parseCard(verdict.covered)
    // A signature over too little, such as a card without its name, vouches for no card.
    if ('fault' in covered) {
      const explanation = `The signature by the pinned key “${verdict.keyId}” covers no usable card.`
      return { trust: 'invalid', signing: { ...signing, explanation }, usable: null }
    }
    const ignoredFields = Object.keys(json).filter((name) => !Object.hasOwn(verdict.covered, name))
    const told =
      ignoredFields.length === 0
        ? signing
        : { ...signing, ignoredFields: ignoredFields.slice(0, shownFields).map(shown) }
    return { trust, signing: told, usable: { card: covered.card, json: verdict.covered } }
  }
}

const signatureNeeded = 'This deployment uses only cards that a pinned key has signed.'

/** What the signatures say of their keys; an agent's words. */
const namedKeys = (signatures: readonly unknown[]): string[] =>
  signatures
    .slice(0, shownKeys)
    .flatMap((entry) => signatureHeader(entry)?.kid ?? [])
    .map(shown)
