/**
 * Access tokens by the client credentials grant [RFC 6749 §4.4], for one credential binding. Owns asking through the one door,
 * one request at a time, and how long a token is used. Keeps the token in memory and nothing else: not the client's secret, and
 * nothing on disk. Does not decide which agent gets it (credentials.ts).
 */
import { ClientSecretBasic, clientCredentialsGrant, Configuration, customFetch, type CustomFetch } from 'openid-client'
import type { OauthClient } from '../domain/credential.ts'
import type { Outbound } from './outbound.ts'

/** The token endpoint gave no token that can be used. Says why by a code alone: what it answered may repeat a secret. */
export class OauthUnavailable extends Error {
  override readonly name = 'OauthUnavailable'
}

/** From the request for a token to the end of its answer; small, because a delivery waits for it. */
const answerLimits = { maxBytes: 256 * 1024, deadlineMs: 10_000, connection: 'fresh' } as const
/** A token is replaced this long before its end, or at half of its life where that is shorter. */
const earlyMs = 60_000
/** The life of a token whose issuer does not say [RFC 6749 §5.1 only recommends it]. */
const unsaidLifeMs = 300_000

interface AccessToken {
  readonly text: string
  /** On the monotonic clock. */
  readonly refreshAtMs: number
  readonly endsAtMs: number
}

export class OauthTokens {
  readonly #outbound: Outbound
  readonly #monotonic: () => number
  #token: AccessToken | null = null
  #asking: Promise<AccessToken> | null = null

  constructor(outbound: Outbound, monotonic: () => number) {
    this.#outbound = outbound
    this.#monotonic = monotonic
  }

  /**
   * A token that is good now. One that is near its end is used while the next is asked for, so that a refresh delays nobody, and
   * a token endpoint that is away for a moment is not noticed. Throws OauthUnavailable.
   */
  async use(client: OauthClient): Promise<string> {
    const token = this.#token
    const now = this.#monotonic()
    if (token !== null && now < token.refreshAtMs) return token.text
    const asking = this.#ask(client)
    if (token !== null && now < token.endsAtMs) return token.text
    return (await asking).text
  }

  /** The token as it is, perhaps ended; null before the first, and once it was refused. */
  get held(): string | null {
    return this.#token?.text ?? null
  }

  /** The agent refused it. Not asked for again here: nothing is sent twice. */
  drop(text: string): void {
    if (this.#token?.text === text) this.#token = null
  }

  /** Whoever asks while somebody does waits for the same answer. */
  #ask(client: OauthClient): Promise<AccessToken> {
    if (this.#asking !== null) return this.#asking
    const asking = this.#grant(client)
      .then((token) => (this.#token = token))
      .finally(() => (this.#asking = null))
    // Those who still have a token do not wait; for them a failure is the next one's to meet, once the token has ended.
    asking.catch(() => undefined)
    this.#asking = asking
    return asking
  }

  async #grant({ issuer, tokenEndpoint, clientId, clientSecret, scope }: OauthClient): Promise<AccessToken> {
    const askedAtMs = this.#monotonic()
    const server = { issuer, token_endpoint: tokenEndpoint }
    // Basic is the one method that every token endpoint must take [RFC 6749 §2.3.1].
    const configuration = new Configuration(server, clientId, undefined, ClientSecretBasic(clientSecret))
    configuration[customFetch] = (url, options) => this.#fetch(url, options)
    try {
      const granted = await clientCredentialsGrant(configuration, scope === undefined ? {} : { scope })
      const text = granted.access_token
      if (granted.token_type !== 'bearer' || !/^[\x21-\x7e]{1,100000}$/.test(text))
        throw new OauthUnavailable('unusable-token')
      const lifeMs = granted.expires_in === undefined ? unsaidLifeMs : granted.expires_in * 1000
      return {
        text,
        refreshAtMs: askedAtMs + Math.max(lifeMs - earlyMs, lifeMs / 2),
        endsAtMs: askedAtMs + lifeMs,
      }
    } catch (error) {
      throw new OauthUnavailable(codeOf(error))
    }
  }

  async #fetch(url: string, { method, headers, body }: Parameters<CustomFetch>[1]): Promise<Response> {
    if (method !== 'POST') throw new OauthUnavailable('unexpected-request')
    const text = body instanceof URLSearchParams ? body.toString() : typeof body === 'string' ? body : ''
    const sent = await this.#outbound.exchange({ method, url, headers, body: text, requestId: '' }, answerLimits)
    if (sent.kind !== 'answered') throw new OauthUnavailable(sent.code)
    const bodyless = sent.status === 204 || sent.status === 205
    return new Response(bodyless ? null : new Uint8Array(sent.body), { status: sent.status, headers: sent.headers })
  }
}

/** What can be said in a log of why there is no token: a code of ours or the library's, never an answer's words. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  if (error.cause instanceof OauthUnavailable) return error.cause.message
  if (error instanceof OauthUnavailable) return error.message
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
