/**
 * What a card's signatures prove, given the keys that an operator pinned for where the card came from [A2A 1.0, 8.4; RFC 7515].
 * Owns the verdict and what a verified signature covers. Does not own the canonical forms (signed-forms.ts) or which keys
 * are pinned for whom (actors/card-trust.ts).
 *
 * Nothing in the card chooses a key: `jku`, `jwk` and `x5c` are not read, the unprotected header is not even passed on, and
 * the algorithm is the pinned key's own.
 */
import { base64url, errors, flattenedVerify, type JWK } from 'jose'
import { canonicalJson } from './canonical-json.ts'
import { isObject } from './proto-json.ts'
import type { JsonObject } from './proto-json.ts'
import { signedForms } from './signed-forms.ts'

/** A public JWK; `alg` is the one algorithm that it verifies. */
export interface PinnedKey extends JWK {
  readonly kid: string
  readonly alg: string
}

/** `explanation` is one sentence that is safe to show. */
export type SignatureVerdict =
  | { readonly trust: 'unsigned' | 'untrusted'; readonly explanation: string }
  | { readonly trust: 'invalid'; readonly explanation: string; readonly keyId: string }
  | {
      readonly trust: 'verified'
      readonly explanation: string
      readonly keyId: string
      /** What the signature covers, and its `signatures`: the only thing to be read of such a card. */
      readonly covered: JsonObject
    }

/** Entries beyond these are not read: each costs up to five hashes of two megabytes. */
const signatureLimit = 16
const headerLimit = 8_192
/** RSA with 8192 bits has 1366 characters. */
const signatureLengthLimit = 2_048

/** Asymmetric only: with a symmetric one whoever verifies can sign, and `none` is anybody's. */
const asymmetric: ReadonlySet<string> = new Set(
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '),
)

export interface SignatureHeader {
  readonly kid: string | null
  readonly alg: string | null
  /** `crit` and `b64` change what is signed; we understand none of them, so such a signature proves nothing [RFC 7515 4.1.11]. */
  readonly isPlain: boolean
}

/** A signature that names a key. */
interface Claim extends SignatureHeader {
  readonly kid: string
  readonly protected: string
  readonly signature: string
}

/** The protected header of one entry of `signatures`; null when it has none that can be read. */
export function signatureHeader(entry: unknown): SignatureHeader | null {
  const said = isObject(entry) ? entry['protected'] : undefined
  if (typeof said !== 'string' || said.length > headerLimit) return null
  let header: unknown
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(base64url.decode(said)))
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) return null
    throw error
  }
  if (!isObject(header)) return null
  const text = (name: string): string | null => {
    const value = Object.hasOwn(header, name) ? header[name] : undefined
    return typeof value === 'string' && value !== '' ? value : null
  }
  const isPlain = !Object.hasOwn(header, 'crit') && !Object.hasOwn(header, 'b64')
  return { kid: text('kid'), alg: text('alg'), isPlain }
}

/** Whether an algorithm may verify a card at all, whatever is pinned. */
export const isAsymmetric = (alg: string): boolean => asymmetric.has(alg)

/** Judges a card that is an object and not nested without bounds. `pinned`: the keys for the card's origin. */
export async function judgeSignatures(card: JsonObject, pinned: readonly PinnedKey[]): Promise<SignatureVerdict> {
  const said = card['signatures']
  if (said === undefined || said === null || (Array.isArray(said) && said.length === 0)) return unsigned(pinned)
  const entries: unknown[] = Array.isArray(said) ? said.slice(0, signatureLimit) : []
  if (pinned.length === 0)
    return {
      trust: 'untrusted',
      explanation: 'No key is pinned for this origin, so the signature proves nothing here.',
    }
  const named = entries.flatMap(claimOf).filter(({ kid }) => pinned.some((key) => key.kid === kid))
  const [first] = named
  if (!first) return { trust: 'untrusted', explanation: 'No signature names a key that is pinned for this origin.' }
  const usable = named.flatMap((claim) => keysOf(claim, pinned).map((key) => ({ claim, key })))
  for (const text of usable.length === 0 ? [] : signedForms(card)) {
    const payload = base64url.encode(text)
    for (const { claim, key } of usable) {
      if (!(await verifies(claim, payload, key))) continue
      return verified(text, key.kid, said)
    }
  }
  return { trust: 'invalid', keyId: first.kid, explanation: whyInvalid(first.kid, named, usable.length > 0) }
}

function unsigned(pinned: readonly PinnedKey[]): SignatureVerdict {
  const explanation =
    pinned.length === 0
      ? 'The card carries no signature.'
      : 'The card carries no signature, although keys are pinned for its origin.'
  return { trust: 'unsigned', explanation }
}

function verified(text: string, keyId: string, signatures: unknown): SignatureVerdict {
  const covered: unknown = JSON.parse(text)
  if (!isObject(covered)) throw new TypeError('A canonical form of a card is an object.')
  return {
    trust: 'verified',
    keyId,
    explanation: `Signed by the pinned key “${keyId}”.`,
    covered: { ...covered, signatures },
  }
}

function whyInvalid(keyId: string, named: readonly Claim[], wasTried: boolean): string {
  if (wasTried)
    return `The signature by the pinned key “${keyId}” does not verify: the card is not the one that was signed.`
  if (named.some((claim) => !claim.isPlain))
    return `The signature by the pinned key “${keyId}” needs a header extension that the console does not understand.`
  return `The signature by the pinned key “${keyId}” does not use the algorithm that the key is pinned for.`
}

function claimOf(entry: unknown): Claim[] {
  const header = signatureHeader(entry)
  if (header === null || header.kid === null || !isObject(entry)) return []
  const { protected: said, signature } = entry
  if (typeof said !== 'string') return []
  // One that is too long or none at all still names its key: it does not verify, which is not the same as no signature.
  const fits = typeof signature === 'string' && signature.length <= signatureLengthLimit
  return [{ ...header, kid: header.kid, protected: said, signature: fits ? signature : '' }]
}

/** The pinned keys that may verify a claim: by its name and by the key's own algorithm. */
function keysOf({ kid, alg, isPlain }: Claim, pinned: readonly PinnedKey[]): PinnedKey[] {
  if (alg === null || !isPlain || !isAsymmetric(alg)) return []
  return pinned.filter((key) => key.kid === kid && isSameAlgorithm(key.alg, alg))
}

/** RFC 9864 gave `EdDSA` over Ed25519 a name of its own; keys and signers are found with either. */
const edwards: ReadonlySet<string> = new Set(['EdDSA', 'Ed25519'])
const isSameAlgorithm = (pinned: string, said: string): boolean =>
  pinned === said || (edwards.has(pinned) && edwards.has(said))

async function verifies(claim: Claim, payload: string, key: PinnedKey): Promise<boolean> {
  const alg = claim.alg ?? key.alg
  const { protected: header, signature } = claim
  try {
    await flattenedVerify({ payload, protected: header, signature }, key.alg === alg ? key : { ...key, alg }, {
      algorithms: [alg],
    })
    return true
  } catch (error) {
    if (error instanceof errors.JOSEError) return false
    throw error
  }
}

/**
 * Why a pinned key can verify nothing, or null: to be asked once, at the start. It verifies a signature that is none, and a
 * key in order says exactly that.
 */
export async function faultOfKey(key: PinnedKey): Promise<string | null> {
  const header = base64url.encode(canonicalJson({ alg: key.alg, kid: key.kid }))
  try {
    await flattenedVerify({ payload: '', protected: header, signature: '' }, key, { algorithms: [key.alg] })
    return 'it verifies anything'
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) return null
    return error instanceof Error ? error.message : String(error)
  }
}
