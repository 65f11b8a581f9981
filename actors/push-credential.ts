/**
 * The credential of a push registration: derived from its id by the deployment's key, so that nothing secret is stored and
 * another key ends every earlier registration. Owns deriving and comparing; who may deliver is push-receipts.ts.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** `callbackOrigin`: where agents reach this deployment, no closing slash. `signingKey`: 64 hexadecimal characters. */
export interface PushOptions {
  readonly callbackOrigin: string
  readonly signingKey: string
}

/** Where an agent delivers: the receiver's route on the callback origin. */
export const callbackUrl = ({ callbackOrigin }: PushOptions, registrationId: string): string =>
  `${callbackOrigin}/api/webhooks/a2a/${registrationId}`

/** HMAC-SHA256 of the registration's id, base64url: 43 characters that stand in a header as they are. */
export const credentialOf = ({ signingKey }: PushOptions, registrationId: string): string =>
  createHmac('sha256', Buffer.from(signingKey, 'hex')).update(registrationId).digest('base64url')

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * Whether one of the presented credentials is the registration's. Takes the same time whichever it is, and whether or not
 * there is such a registration: it is derived, not looked up, and digests compare at one length.
 */
export function isCredentialOf(options: PushOptions, registrationId: string, presented: readonly string[]): boolean {
  const expected = digestOf(credentialOf(options, registrationId))
  let found = false
  for (const text of presented) if (timingSafeEqual(digestOf(text), expected)) found = true
  return found
}
