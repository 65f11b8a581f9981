/** Peers of the outbound tests: listeners on loopback that misbehave on request and write down what reached them. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { createServer as createHttpsServer, type ServerOptions } from 'node:https'
import { createServer, isIP } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { ResolveAll } from '../../actors/outbound/connector.ts'
import { Outbound } from '../../actors/outbound.ts'
import type { OutboundPolicy, OutboundWiring } from '../../actors/outbound.ts'

export const development: OutboundPolicy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] }
export const production = (...allowedOrigins: string[]): OutboundPolicy => ({
  profile: 'production',
  allowPrivateNetworks: false,
  allowedOrigins,
})

/** Ample; a test that wants to meet a limit says which. */
export const bounds = { maxBytes: 1024 * 1024, deadlineMs: 5_000 }
export const streamBounds = { maxBytes: 1024 * 1024, headDeadlineMs: 2_000, idleMs: 2_000, deadlineMs: 5_000 }

export function door(policy = development, wiring: OutboundWiring = {}): Outbound {
  const outbound = new Outbound(policy, wiring)
  onTestFinished(() => outbound.close())
  return outbound
}

/** A TCP listener that writes down every byte that arrives. */
export interface Canary {
  readonly url: string
  readonly port: number
  connections: number
  received: string
}

export async function canary(onData: (socket: Socket, received: string) => void = () => undefined): Promise<Canary> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    seen.connections += 1
    // The other side hangs up rudely in half of these tests: that is the case, not a fault.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      seen.received += chunk.toString('latin1')
      onData(socket, seen.received)
    })
  })
  const port = await listening(server)
  const seen: Canary = { url: `http://127.0.0.1:${port}/`, port, connections: 0, received: '' }
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((done) => server.close(done))
  })
  return seen
}

/** With a key and a certificate it speaks TLS; the address is the same. */
export async function web(handle: RequestListener, tls?: ServerOptions): Promise<string> {
  const server = tls === undefined ? createHttpServer(handle) : createHttpsServer(tls, handle)
  const port = await listening(server)
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })
  return `http://127.0.0.1:${port}/`
}

/** A port where nobody listens any more. */
export async function closedPort(): Promise<number> {
  const server = createServer()
  const port = await listening(server)
  await new Promise((done) => server.close(done))
  return port
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

export const get = (url: string) => ({ method: 'GET' as const, url, headers: {}, requestId: '1' })
export const post = (url: string, body = '{}') => ({ method: 'POST' as const, url, headers: {}, body, requestId: '1' })

/** The head of an answer, with further fields; its body follows. */
export const head = (extra = '') => `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${extra}\r\n`

export const resolvesTo =
  (...addresses: string[]): ResolveAll =>
  (_name, done) =>
    done(
      null,
      addresses.map((address) => ({ address, family: isIP(address) })),
    )
