/** Signers of cards, as they are found: keys, and signatures over any text by hand. Owns no expectation. */
import { base64url, exportJWK, FlattenedSign, generateKeyPair, type CryptoKey } from 'jose'
import type { PinnedKey } from '../../a2a/signatures.ts'

export interface Signer {
  readonly privateKey: CryptoKey
  /** The public half, as an operator would pin it. */
  readonly pinned: PinnedKey
}

export async function signer(kid: string, alg = 'ES256'): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { privateKey, pinned: { ...(await exportJWK(publicKey)), kid, alg } }
}

export interface Signature {
  readonly protected: string
  readonly signature: string
  readonly header?: Record<string, unknown>
}

/** A detached signature over a text, with further fields of the protected header. */
export async function signText(by: Signer, text: string, header: Record<string, unknown> = {}): Promise<Signature> {
  const { alg, kid } = by.pinned
  const jws = await new FlattenedSign(new TextEncoder().encode(text))
    .setProtectedHeader({ alg, kid, typ: 'JOSE', ...header })
    .sign(by.privateKey, { crit: { 'x-strict': true } })
  return { protected: jws.protected ?? '', signature: jws.signature }
}

/** A protected header of any content, which no library would write. */
export const header = (content: unknown): string => base64url.encode(JSON.stringify(content))
