/** A token endpoint over TLS: the client credentials grant, real tokens that end, and faults on request. Knows who may ask. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { KeyPair } from '../certificates.ts'
import { Countdown } from './peer.ts'

export interface TokenEndpoint {
  readonly url: string
  readonly issuer: string
  /** Tokens that were given out, oldest first. */
  readonly tokens: readonly string[]
  /** Form bodies as they came. */
  readonly forms: readonly URLSearchParams[]
  isValid(authorization: string | undefined): boolean
  /** Every token so far is worthless. */
  revokeAll(): void
  /** From now on: a working endpoint, one that fails with a status, one that redirects, or one that says nothing yet. */
  mood: 'works' | 'fails' | 'redirects' | 'holds'
  /** Breaks the connections of what is held; what comes next is held again. */
  cut(): void
  /** Answers what is held, and works again. */
  release(): void
  asked(n: number): Promise<void>
  readonly askedSoFar: number
  close(): Promise<void>
}

export interface TokenEndpointOptions {
  readonly tls: KeyPair
  readonly clientId: string
  readonly clientSecret: string
  readonly lifeSeconds: number
}

/** Both halves are form-encoded before they are joined [RFC 6749 §2.3.1]. */
function isKnown({ clientId, clientSecret }: TokenEndpointOptions, authorization = ''): boolean {
  const [id, secret] = Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
    .toString()
    .split(':')
    .map((half) => new URLSearchParams(`half=${half}`).get('half'))
  return id === clientId && secret === clientSecret
}

export async function startTokenEndpoint(options: TokenEndpointOptions): Promise<TokenEndpoint> {
  const tokens: string[] = []
  const forms: URLSearchParams[] = []
  const valid = new Set<string>()
  const held: { readonly answer: () => void; readonly cut: () => void }[] = []
  const count = new Countdown('requests for a token')
  let asked = 0
  const grant = (request: IncomingMessage, response: ServerResponse): void => {
    const json = { 'content-type': 'application/json', 'cache-control': 'no-store' }
    if (!isKnown(options, request.headers.authorization)) {
      // Says what it got: whoever logs this answer logs a secret.
      const words = { error: 'invalid_client', error_description: String(request.headers.authorization) }
      response.writeHead(401, { ...json, 'www-authenticate': 'Basic realm="tokens"' }).end(JSON.stringify(words))
      return
    }
    const token = `access-${randomBytes(24).toString('hex')}`
    tokens.push(token)
    valid.add(token)
    const said = { access_token: token, token_type: 'Bearer', expires_in: options.lifeSeconds }
    response.writeHead(200, json).end(JSON.stringify(said))
  }
  const server = createServer(options.tls, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      asked += 1
      forms.push(new URLSearchParams(Buffer.concat(chunks).toString()))
      if (endpoint.mood === 'fails') response.writeHead(500).end(`It broke: ${request.headers.authorization}`)
      else if (endpoint.mood === 'redirects') response.writeHead(307, { location: '/elsewhere' }).end()
      else if (endpoint.mood === 'holds')
        held.push({ answer: () => grant(request, response), cut: () => response.destroy() })
      else grant(request, response)
      count.count()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const endpoint: TokenEndpoint = {
    url: `${issuer}/token`,
    issuer,
    tokens,
    forms,
    isValid: (authorization = '') => valid.has(authorization.replace(/^Bearer /, '')),
    revokeAll: () => valid.clear(),
    mood: 'works',
    cut: () => {
      for (const { cut } of held.splice(0)) cut()
    },
    release: () => {
      endpoint.mood = 'works'
      for (const { answer } of held.splice(0)) answer()
    },
    asked: (n) => count.reached(n),
    get askedSoFar() {
      return asked
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
  return endpoint
}
