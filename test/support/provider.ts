/**
 * A real OpenID provider over TLS on loopback, for tests: it can go away, come back, and change its keys, and people sign in
 * by a form with one field. And a browser's part of a sign-in: cookies, redirects, that form. Owns no expectation.
 */
import { createServer, type Server } from 'node:https'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import { Provider } from 'oidc-provider'
import { generate } from 'selfsigned'
import { Agent, fetch as fetchBy, type Response } from 'undici'
import { callbackPath } from '../../actors/sign-in.ts'
import { cookieNames } from '../../http/cookies.ts'
import { Client, type Reply } from './api.ts'

export const client = { id: 'signalbox', secret: 'a secret of the test client' } as const

export interface ProviderOptions {
  /** Where people are sent back to: origins of consoles. */
  readonly origins: readonly string[]
  /** Who has an account. */
  readonly subjects: readonly string[]
}

export class TestProvider {
  readonly issuer: string
  /** The authority to trust: its own certificate. */
  readonly certificate: string
  readonly key: string
  /** Paths that were asked for, in order. */
  readonly asked: string[] = []
  readonly #options: ProviderOptions
  readonly #port: number
  #server: Server
  #provider: Provider | null = null
  #keys = 0

  private constructor(options: ProviderOptions, tls: { key: string; cert: string }, server: Server) {
    this.#options = options
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
    this.certificate = tls.cert
    this.key = tls.key
    this.issuer = `https://localhost:${this.#port}`
    this.#hear()
  }

  static async start(options: ProviderOptions): Promise<TestProvider> {
    const pems = await generate([{ name: 'commonName', value: 'localhost' }], {
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
    })
    const tls = { key: pems.private, cert: pems.cert }
    const provider = new TestProvider(options, tls, await listening(createServer(tls), 0))
    await provider.rotateKeys()
    return provider
  }

  /** Signs with a new key from now on; the old one is no longer published. */
  async rotateKeys(): Promise<void> {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true })
    const jwk = { ...(await exportJWK(privateKey)), use: 'sig', alg: 'RS256', kid: `key-${++this.#keys}` }
    this.#provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: client.id,
          client_secret: client.secret,
          redirect_uris: this.#options.origins.map((origin) => origin + callbackPath),
          grant_types: ['authorization_code'],
          response_types: ['code'],
          token_endpoint_auth_method: 'client_secret_basic',
        },
      ],
      jwks: { keys: [jwk] },
      cookies: { keys: ['of a test'] },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      findAccount: (_context, subject) =>
        this.#options.subjects.includes(subject)
          ? { accountId: subject, claims: () => Promise.resolve({ sub: subject }) }
          : undefined,
      interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
      ttl: { Session: 600, Interaction: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
    })
  }

  /** Nobody answers at its address any more. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }

  async restart(): Promise<void> {
    this.#server = await listening(createServer({ key: this.key, cert: this.certificate }), this.#port)
    this.#hear()
  }

  #hear(): void {
    this.#server.on('request', (request, response) => void this.#answer(request, response))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = this.#provider
    if (!provider) throw new Error('The provider has no keys yet.')
    const { pathname } = new URL(request.url ?? '/', this.issuer)
    this.asked.push(pathname)
    if (!pathname.startsWith('/interaction/')) return provider.callback()(request, response)
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html')
      response.end(form)
      return undefined
    }
    const subject = new URLSearchParams(await textOf(request)).get('subject') ?? ''
    const { params } = await provider.interactionDetails(request, response)
    const grant = new provider.Grant({ accountId: subject, clientId: String(params.client_id) })
    grant.addOIDCScope('openid')
    const result = this.#options.subjects.includes(subject)
      ? { login: { accountId: subject }, consent: { grantId: await grant.save() } }
      : { error: 'access_denied', error_description: '<script>a stranger</script>' }
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }
}

const form = `<!doctype html><html lang="en"><title>Provider</title>
<form method="post"><label>Person <input name="subject" autofocus></label><button>Sign in</button></form>`

async function listening(server: Server, port: number): Promise<Server> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

/** Cookies by name, as one site's answers set and clear them. Attributes are looked at by the test that is about them. */
class Jar {
  readonly #cookies = new Map<string, string>()

  hear(headers: { getSetCookie(): string[] }): void {
    for (const each of headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
      if (value === '' || /max-age=0\b/i.test(each)) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
  }

  get(name: string): string | null {
    return this.#cookies.get(name) ?? null
  }

  set(name: string, value: string): void {
    this.#cookies.set(name, value)
  }

  get header(): { cookie?: string } {
    const pairs = [...this.#cookies].map(([name, value]) => `${name}=${value}`)
    return pairs.length > 0 ? { cookie: pairs.join('; ') } : {}
  }
}

const redirectsLimit = 10

/**
 * One person's browser, any number of tabs. The console is behind a proxy that ends TLS: what goes to `origin` arrives at
 * the console's plain address.
 */
export class SignInBrowser {
  readonly console_ = new Jar()
  readonly #provider = new Jar()
  readonly #tls: Agent
  readonly #origin: string
  /** Of the replica that the proxy sends the next request to. */
  url: string

  constructor(provider: TestProvider, origin: string, url: string) {
    this.#tls = new Agent({ connect: { ca: provider.certificate } })
    this.#origin = origin
    this.url = url
  }

  /** A request to the console. */
  async get(path: string): Promise<Reply> {
    const reply = await new Client(this.url).get(path, this.console_.header)
    this.console_.hear(reply.headers)
    return reply
  }

  async logout(): Promise<Reply> {
    const headers = { ...this.console_.header, origin: this.#origin }
    const reply = await new Client(this.url).post('/api/auth/logout', undefined, headers)
    this.console_.hear(reply.headers)
    return reply
  }

  /** Opens the console's login in a tab: where the provider is asked. */
  async login(returnTo?: string): Promise<string> {
    const query = returnTo === undefined ? '' : `?returnTo=${encodeURIComponent(returnTo)}`
    const reply = await this.get(`/api/auth/login${query}`)
    if (reply.status !== 303) throw new Error(`Login answered ${reply.status}: ${reply.text}`)
    return reply.headers.get('location') ?? ''
  }

  /** Goes through the provider's pages as `subject`; returns the path and query at the console that it ends with. */
  async consent(location: string, subject: string): Promise<string> {
    let next = location
    for (let hops = 0; hops < redirectsLimit; hops++) {
      if (next.startsWith(`${this.#origin}/`)) return next.slice(this.#origin.length)
      const isForm = new URL(next).pathname.startsWith('/interaction/')
      const response = await this.#ask(next, isForm ? new URLSearchParams({ subject }) : null)
      const to = response.headers.get('location')
      if (to === null) throw new Error(`The provider answered ${response.status}: ${await response.text()}`)
      next = new URL(to, next).href
    }
    throw new Error('The provider goes round in circles.')
  }

  /** All of a sign-in; the callback's answer. */
  async signIn(subject: string, returnTo?: string): Promise<Reply> {
    return this.get(await this.consent(await this.login(returnTo), subject))
  }

  get session(): string | null {
    return this.console_.get(cookieNames.session)
  }

  async close(): Promise<void> {
    await this.#tls.close()
  }

  async #ask(url: string, body: URLSearchParams | null): Promise<Response> {
    const response = await fetchBy(url, {
      method: body ? 'POST' : 'GET',
      body,
      redirect: 'manual',
      headers: this.#provider.header,
      dispatcher: this.#tls,
    })
    this.#provider.hear(response.headers)
    return response
  }
}
