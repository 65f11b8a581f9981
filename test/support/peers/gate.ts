/**
 * A gate of TLS before any test agent: it writes down who came with what, asks for a client certificate where it is told to,
 * refuses whom it does not know, and passes the others on. Owns the doorkeeping; what the agent does is the agent's. An agent
 * that shows what it was called with is played by the word `{{shown}}`, which the gate replaces by the credential it got.
 */
import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { KeyPair } from '../certificates.ts'
import { operationOf } from './operations.ts'
import { Countdown, type Peer } from './peer.ts'

export interface Visit {
  /** The operation's 1.0 name; `GetAgentCard` for the card. */
  readonly operation: string
  readonly headers: IncomingHttpHeaders
  /** The common name of the client certificate, or null. */
  readonly certificate: string | null
}

export interface GateOptions {
  readonly tls: KeyPair
  /** PEM: client certificates are asked for, and only this authority's are taken. */
  readonly clientAuthority?: string
  /** 200 lets a visit pass. */
  readonly admits: (visit: Visit) => number
  /** Changes the card on its way, after its addresses have become the gate's. */
  readonly card?: (text: string) => string
}

export interface Gate {
  readonly origin: string
  readonly cardUrl: string
  readonly visits: readonly Visit[]
  visitsFor(operation: string): readonly Visit[]
  /** Resolves when an operation was asked for n times in all. */
  asked(operation: string, n: number): Promise<void>
  close(): Promise<void>
}

export async function startGate(peer: Pick<Peer, 'origin' | 'cardUrl'>, options: GateOptions): Promise<Gate> {
  const visits: Visit[] = []
  const asked = new Map<string, Countdown>()
  const countOf = (operation: string): Countdown => {
    const count = asked.get(operation) ?? new Countdown(`requests for ${operation}`)
    asked.set(operation, count)
    return count
  }
  const { tls, clientAuthority } = options
  const mutual =
    clientAuthority === undefined ? {} : { ca: clientAuthority, requestCert: true, rejectUnauthorized: true }
  // A client without a certificate is refused in the handshake itself, which TLS 1.3 tells it only after its first bytes.
  const server = createServer({ ...tls, ...mutual, maxVersion: clientAuthority === undefined ? 'TLSv1.3' : 'TLSv1.2' })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    attend(request, response).catch((error: unknown) => {
      if (!request.destroyed) response.destroy(error instanceof Error ? error : new Error(String(error)))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function attend(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await wholeOf(request)
    const { pathname } = new URL(request.url ?? '/', origin)
    const isCard = request.method === 'GET' && pathname.startsWith('/.well-known/')
    const json: unknown = body.length === 0 ? undefined : JSON.parse(body.toString())
    const operation = isCard ? 'GetAgentCard' : operationOf(request.method ?? '', pathname, json).method
    const visit = { operation, headers: request.headers, certificate: certificateOf(request) }
    visits.push(visit)
    const status = options.admits(visit)
    if (status === 200) await passOn(request, response, body, isCard)
    else {
      response.writeHead(status, { ...fieldsShowing(visit.headers), location: `${origin}/elsewhere` })
      response.end(JSON.stringify({ error: `No entry with ${shownBy(visit.headers)}.` }))
    }
    countOf(operation).count()
  }

  async function passOn(request: IncomingMessage, response: ServerResponse, body: Buffer, isCard: boolean) {
    const { host: _, connection: __, ...headers } = request.headers
    const to = new URL(request.url ?? '/', peer.origin)
    const out = httpRequest(to, { method: request.method ?? 'GET', headers, agent: false })
    response.on('close', () => out.destroy())
    const head = new Promise<IncomingMessage>((resolve, reject) => out.on('response', resolve).on('error', reject))
    out.end(body)
    const answer = await head
    const { 'content-length': _length, 'transfer-encoding': ___, connection: ____, ...fields } = answer.headers
    response.writeHead(answer.statusCode ?? 200, fields)
    response.flushHeaders()
    const rewrite = (text: string): string => {
      const own = text.replaceAll(peer.origin, origin).replaceAll('{{shown}}', shownBy(request.headers))
      return isCard && options.card ? options.card(own) : own
    }
    answer.on('data', (chunk: Buffer) => response.write(rewrite(chunk.toString())))
    answer.on('close', () => response.end())
  }

  return {
    origin,
    cardUrl: `${origin}${new URL(peer.cardUrl).pathname}`,
    visits,
    visitsFor: (operation) => visits.filter((visit) => visit.operation === operation),
    asked: (operation, n) => countOf(operation).reached(n),
    close: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

const fieldsShowing = (headers: IncomingHttpHeaders) => ({
  'content-type': `application/json; shown="${shownBy(headers)}"`,
  'x-shown': shownBy(headers),
})

const shownBy = (headers: IncomingHttpHeaders): string =>
  [headers.authorization, headers['x-agent-key']].filter((value) => value !== undefined).join(' ')

function certificateOf({ socket }: IncomingMessage): string | null {
  if (!(socket instanceof TLSSocket)) return null
  const { subject } = socket.getPeerCertificate()
  return subject === undefined ? null : String(subject.CN)
}

async function wholeOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}
