/**
 * HTTP before any route: how strictly requests are parsed, how long their head may be, what is said to whoever sends something that
 * is no request. Two readers of one connection (a proxy and this) must not read two different requests [RFC 9112 §11.2].
 * Does not own what a request may ask (guard.ts).
 */
import type { Socket } from 'node:net'
import { refusals } from '../domain/refusal.ts'

/** Said outright: a flag of the process (`--insecure-http-parser`) must not change it. The head's size is Node's own default, bytes. */
export const parsing = { insecureHTTPParser: false, maxHeaderSize: 16 * 1024, requireHostHeader: true }

/**
 * Fields that decide something and have one value. Node keeps the first of some and joins others with a comma; a proxy may keep the
 * last. Two Host fields are to be refused by rule [RFC 9112 §3.2].
 */
const single: ReadonlySet<string> = new Set(['host', 'origin', 'sec-fetch-site', 'idempotency-key', 'authorization'])
/** Where a route proves its callers by itself, two credentials are a wrong one, which it answers in its own words (push-receiver.ts). */
const singleOfAgents: ReadonlySet<string> = new Set(['host'])

/** The guard asks first: nobody is looked for on the word of a request that says two things. */
export function repeatsField(rawHeaders: readonly string[], caller: 'person' | 'agent'): boolean {
  const fields = caller === 'agent' ? singleOfAgents : single
  const seen = new Set<string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase()
    if (!fields.has(name)) continue
    if (seen.has(name)) return true
    seen.add(name)
  }
  return false
}

const statusOf: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Fastify's `clientErrorHandler`: there is no request to answer, only a socket to close. `headers`: those of every answer. */
export function malformedAnswer(
  headers: Readonly<Record<string, string>>,
): (error: { readonly code?: string }, socket: Socket) => void {
  const body = JSON.stringify({ error: { message: refusals['body.invalid'] } })
  const fields = {
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const rest = [...Object.entries(fields).map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n')
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return
    const status = statusOf[error.code ?? ''] ?? '400 Bad Request'
    if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\n${rest}`, () => socket.destroy())
    else socket.destroy()
  }
}
