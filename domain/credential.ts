/**
 * A credential binding: the one secret by which an agent is called, and the origins it may go to. Owns the shape an operator
 * hands in, its limits, the sentences of refusals, and whether a kind answers what a card asks for. Does not own sealing
 * (actors/vault.ts) or sending (actors/credentials.ts). Source: the specification's "Credential binding" and its Errors.
 */
import * as z from 'zod/mini'
import type { AgentCard } from '../a2a/card.ts'
import type { SecurityScheme } from '../a2a/security-schemes.ts'

export const credentialKinds = ['bearer', 'apiKey', 'oauthClient', 'mtls'] as const
export const CredentialKind = z.enum(credentialKinds)
export type CredentialKind = z.infer<typeof CredentialKind>

/** What an agent's callers are told; no sentence names a secret, an origin or a key. */
export const credentialSentences = {
  /** 401 or 403, and there is no binding. */
  required: 'Agent credentials are required.',
  /** 401 or 403 in spite of one. The agent's own words may repeat what was sent, so they are not shown. */
  refused: 'Protected agent operation failed.',
  destination: 'Agent credential destination is not permitted.',
  disabled: 'Agent credentials are disabled.',
  vault: 'Credential vault unavailable.',
  oauth: 'Agent OAuth credentials unavailable.',
} as const

/** Bytes of a binding as it is handed in. */
export const bindingBytesLimit = 256_000

const secret = z.string().check(z.minLength(8), z.maxLength(100_000))
/** Goes into a header field: visible ASCII, blanks inside [RFC 9110 §5.5]. Anything else could end the field or the head. */
const headerSecret = secret.check(z.regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/))

/** Fields that frame the request or that the protocol itself sets: a key in one of them would break the call, not sign it. */
const reservedFields: ReadonlySet<string> = new Set(
  (
    'host connection keep-alive te trailer transfer-encoding upgrade expect content-length content-type content-encoding ' +
    'accept accept-encoding user-agent a2a-version a2a-extensions x-a2a-extensions'
  ).split(' '),
)
const fieldName = z.string().check(
  z.maxLength(128),
  z.regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
  z.refine((name) => !reservedFields.has(name.toLowerCase()) && !/^proxy-/i.test(name)),
)

/** Exact: what the URL standard calls the origin, nothing around it; it would take a `*` for a host's name. */
const origin = z.string().check(
  z.maxLength(512),
  z.refine((text) => httpsUrl(text)?.origin === text && !text.includes('*')),
)
const endpoint = z.string().check(z.maxLength(2048), z.refine(isBareHttps))

function httpsUrl(text: string): URL | null {
  if (!URL.canParse(text)) return null
  const url = new URL(text)
  return url.protocol === 'https:' ? url : null
}

function isBareHttps(text: string): boolean {
  const url = httpsUrl(text)
  return url !== null && url.username === '' && url.password === '' && !text.includes('#')
}

export const Credential = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('bearer'), token: headerSecret }),
  z.strictObject({ type: z.literal('apiKey'), name: fieldName, value: headerSecret }),
  z.strictObject({
    type: z.literal('oauthClient'),
    issuer: endpoint,
    tokenEndpoint: endpoint,
    clientId: z.string().check(z.minLength(1), z.maxLength(1_000)),
    clientSecret: secret,
    /** Space-separated [RFC 6749 §3.3]. */
    scope: z.optional(z.string().check(z.minLength(1), z.maxLength(2_000))),
  }),
  /** PEM. `ca` replaces the system's authorities for this agent: who runs a private one trusts no other there. */
  z.strictObject({ type: z.literal('mtls'), cert: secret, key: secret, ca: z.optional(secret) }),
])
export type Credential = z.infer<typeof Credential>
export type OauthClient = Extract<Credential, { type: 'oauthClient' }>

export const Binding = z.strictObject({
  origins: z.array(origin).check(z.minLength(1), z.maxLength(20)),
  credential: Credential,
})
export type Binding = z.infer<typeof Binding>

const answers: Readonly<Record<CredentialKind, (scheme: SecurityScheme) => boolean>> = {
  bearer: (scheme) =>
    (scheme.type === 'http' && scheme.scheme.toLowerCase() === 'bearer') ||
    scheme.type === 'oauth2' ||
    scheme.type === 'openIdConnect',
  apiKey: (scheme) => scheme.type === 'apiKey' && scheme.location === 'header',
  oauthClient: (scheme) =>
    scheme.type === 'oauth2' ||
    scheme.type === 'openIdConnect' ||
    (scheme.type === 'http' && scheme.scheme.toLowerCase() === 'bearer'),
  mtls: (scheme) => scheme.type === 'mutualTLS',
}

/**
 * What a card asks for that a kind of credential does not answer, in words, or null where it does or nothing is asked. A card's
 * word is not enforced: many are wrong or silent about how they are protected, and what the operator stored is what is sent.
 */
export function mismatchOf(kind: CredentialKind, card: Pick<AgentCard, 'securitySchemes'>): string | null {
  const schemes = Object.values(card.securitySchemes).filter(({ type }) => type !== 'unknown')
  if (schemes.length === 0 || schemes.some(answers[kind])) return null
  const asked = [...new Set(schemes.map(nameOf))].join(' or ')
  return `The Agent Card asks for ${asked}, and the credential is of kind ${kind}.`
}

/** Names the kind of a scheme by our own words: a card's are its author's. */
function nameOf(scheme: SecurityScheme): string {
  if (scheme.type === 'apiKey') return scheme.location === 'header' ? 'an API key' : 'an API key outside the header'
  if (scheme.type === 'http') return scheme.scheme.toLowerCase() === 'bearer' ? 'a bearer token' : 'HTTP authentication'
  if (scheme.type === 'oauth2') return 'OAuth 2.0'
  if (scheme.type === 'openIdConnect') return 'OpenID Connect'
  return 'mutual TLS'
}
