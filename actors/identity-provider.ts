/**
 * The identity provider: what it says about itself, the redirect that sends a person there, and what it says of the person who
 * comes back [OpenID Connect Core 1.0 §3.1; RFC 7636; RFC 9207]. Owns discovery and the checks of an answer; does not own
 * attempts, cookies or who may in (sign-in.ts).
 *
 * Everything goes through a door of its own (outbound.ts): no redirects, bounded answers, total deadlines, HTTP/1.1. The
 * operator names the issuer, so it may stand where a deployment keeps its provider, on this machine or in the private
 * network; metadata addresses never. HTTPS is asked for by the configuration and again by openid-client.
 */
import type * as oidc from 'openid-client'
import type { WireRequest } from '../a2a/client.ts'
import type { Log } from './log.ts'
import type { Identity } from '../persistence/people.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Outbound, OutboundPolicy } from './outbound.ts'

export const providerPolicy: OutboundPolicy = { profile: 'development', allowPrivateNetworks: true, allowedOrigins: [] }

export interface ProviderOptions {
  /** As the tokens and the discovery document must name it, exactly. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Where the provider sends people back to. */
  readonly callbackUrl: string
}

/** What one sign-in is recognised by: none of it is used twice. */
export interface Proof {
  readonly state: string
  readonly nonce: string
  /** PKCE [RFC 7636]: whoever intercepts the code can't redeem it. */
  readonly verifier: string
}

const answerLimits = { maxBytes: 1024 * 1024, deadlineMs: 10_000 }
const freshMs = 5 * 60_000
/** A provider that is away is not asked by everybody who wants in. */
const failureMs = 10_000

interface Known {
  /** Null: it could not be discovered. */
  readonly metadata: oidc.ServerMetadata | null
  readonly untilMs: number
}

export interface ProviderTools {
  readonly outbound: Pick<Outbound, 'exchange'>
  readonly monotonic: () => number
  readonly log: Log
}

/** Loaded when somebody signs in for the first time: 40 ms that no start waits for. */
const library = () => import('openid-client')

export class IdentityProvider {
  readonly #o: ProviderOptions
  readonly #t: ProviderTools
  #known: Known | null = null
  #asking: Promise<Known> | null = null

  constructor(options: ProviderOptions, tools: ProviderTools) {
    this.#o = options
    this.#t = tools
  }

  /** Where a person goes to sign in. Refuses with `session.unavailable` when the provider does not say. */
  async authorizationUrl({ state, nonce, verifier }: Proof): Promise<string> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await library()
    return buildAuthorizationUrl(await this.#configuration(), {
      redirect_uri: this.#o.callbackUrl,
      scope: 'openid',
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    }).href
  }

  /**
   * Redeems the code of a callback for the person it stands for. The tokens are dropped here: nothing of ours uses them.
   * Throws what openid-client throws; none of it is for the person.
   */
  async identityOf(parameters: URLSearchParams, { state, nonce, verifier }: Proof): Promise<Identity> {
    const { authorizationCodeGrant, enableNonRepudiationChecks } = await library()
    const configuration = await this.#configuration()
    // The token came over TLS from the provider itself; its signature is checked all the same, against keys that are read
    // now. They are kept by a configuration, and each answer has its own: a key changed a second ago is known.
    enableNonRepudiationChecks(configuration)
    const answer = await authorizationCodeGrant(configuration, new URL(`${this.#o.callbackUrl}?${parameters}`), {
      pkceCodeVerifier: verifier,
      expectedState: state,
      expectedNonce: nonce,
      idTokenExpected: true,
    })
    const claims = answer.claims()
    if (!claims || claims.iss !== this.#o.issuer) throw new Error('The token is of another issuer.')
    if (!isSubject(claims.sub)) throw new Error('The token names nobody.')
    return { issuer: claims.iss, subject: claims.sub }
  }

  async #configuration(): Promise<oidc.Configuration> {
    const openid = await library()
    const { metadata } = await this.#discovered()
    if (!metadata) throw new Refusal('session.unavailable')
    const { clientId, clientSecret } = this.#o
    // Basic is what a provider that says nothing takes [OpenID Connect Discovery 1.0 §3].
    const ways = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const proof = ways.includes('client_secret_basic') ? openid.ClientSecretBasic : openid.ClientSecretPost
    const configuration = new openid.Configuration(metadata, clientId, {}, proof(clientSecret))
    configuration[openid.customFetch] = this.#fetch
    configuration.timeout = answerLimits.deadlineMs / 1000
    return configuration
  }

  /** One question for all who ask meanwhile. */
  async #discovered(): Promise<Known> {
    if (this.#known && this.#t.monotonic() < this.#known.untilMs) return this.#known
    this.#asking ??= this.#discover().finally(() => (this.#asking = null))
    this.#known = await this.#asking
    return this.#known
  }

  async #discover(): Promise<Known> {
    const openid = await library()
    const { issuer, clientId } = this.#o
    try {
      const found = await openid.discovery(new URL(issuer), clientId, {}, undefined, {
        [openid.customFetch]: this.#fetch,
        timeout: answerLimits.deadlineMs / 1000,
      })
      const metadata = found.serverMetadata()
      if (metadata.issuer !== issuer) throw new Error('The provider names itself otherwise than A2A_OIDC_ISSUER does.')
      // Throws where the document leaves out where people are sent to, or sends them there in the clear.
      openid.buildAuthorizationUrl(found, {})
      return { metadata, untilMs: this.#t.monotonic() + freshMs }
    } catch (error) {
      this.#t.log.warn({ issuer, reason: reasonOf(error) }, 'the identity provider could not be discovered')
      return { metadata: null, untilMs: this.#t.monotonic() + failureMs }
    }
  }

  readonly #fetch: oidc.CustomFetch = async (url, { method, headers, body, signal }) => {
    if (method !== 'GET' && method !== 'POST') throw new TypeError(`A provider is not asked by ${method}.`)
    if (body !== undefined && body !== null && typeof body !== 'string' && !(body instanceof URLSearchParams))
      throw new TypeError('A provider is sent forms only.')
    const request: WireRequest = { method, url, headers, requestId: '', ...(body ? { body: String(body) } : {}) }
    // A code is redeemed once, so no request is repeated; and on a fresh socket, because a kept one may just have died.
    const answer = await this.#t.outbound.exchange(request, { ...answerLimits, connection: 'fresh' }, signal)
    if (answer.kind !== 'answered') throw new Error(answer.message, { cause: answer.cause })
    const hasBody = answer.status !== 204 && answer.status !== 205
    return new Response(hasBody ? new Uint8Array(answer.body) : null, {
      status: answer.status,
      headers: answer.headers,
    })
  }
}

/** As OpenID Connect Core 1.0 §2 has it; and what no database keeps as it was said is nobody's name. */
const isSubject = (subject: string): boolean =>
  subject.length <= 255 && !subject.includes('\0') && subject.isWellFormed()

/** For the log: a closed code and our or the library's own sentence, never the provider's words or a token. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : ''
  const root =
    error.cause instanceof Error && error.message === 'something went wrong' ? `: ${error.cause.message}` : ''
  return `${error.message}${root}${code}`
}
