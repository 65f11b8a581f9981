/**
 * Opens sockets to permitted addresses only. Owns the three checks: the literal in the URL, every answer of the
 * resolver, and the address the socket is connected to in the end. Does not own what is permitted (policy.ts).
 *
 * All three are needed: Node never calls a `lookup` hook for an IP literal (undici issue 2019), and a check before the
 * connection without pinning is undone by a name that resolves differently the second time.
 */
import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { admitInterim } from './interim.ts'
import { OutboundFailure } from './policy.ts'

/** Resolves a name to all of its addresses, in the resolver's order. */
export type ResolveAll = (
  hostname: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void

/**
 * getaddrinfo cannot be cancelled and runs on libuv's thread pool, which lets slow calls of this kind take only half of
 * its threads: a dead resolver delays other names, never the file system. `connectTimeoutMs` bounds our wait for it.
 */
const resolveBySystem: ResolveAll = (hostname, done) => {
  // The types promise addresses beside an error; Node passes none.
  systemLookup(hostname, { all: true, order: 'verbatim' }, (error, addresses) => done(error, error ? [] : addresses))
}

/** Shown to a server that asks who is calling; PEM. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
  /** Authorities to trust for its connections in place of all others. */
  readonly ca?: string
}

export interface ConnectorOptions {
  readonly permits: (address: string) => boolean
  readonly connectTimeoutMs: number
  readonly resolve?: ResolveAll
  /** PEM of the certificate authorities to trust in place of the system's. */
  readonly ca?: readonly string[]
  readonly certificate?: ClientCertificate
}

/** Calls back with a connected (TLS: verified) socket, or with an OutboundFailure: nothing was written in that case. */
export function guardedConnector(options: ConnectorOptions): buildConnector.connector {
  const { permits, connectTimeoutMs, certificate } = options
  const ca = certificate?.ca === undefined ? options.ca : [certificate.ca]
  const connect = buildConnector({
    // One protocol, one code path: HTTP/2 brings floods (PING, CONTINUATION, rapid reset) and no gain for one call.
    allowH2: false,
    timeout: connectTimeoutMs,
    autoSelectFamily: true,
    lookup: pinned(options.resolve ?? resolveBySystem, permits),
    ...(ca === undefined ? {} : { ca: [...ca] }),
    ...(certificate === undefined ? {} : { cert: certificate.cert, key: certificate.key }),
  })
  return (target, callback) => {
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(literal) !== 0 && !permits(literal)) {
      callback(new OutboundFailure('blocked-address'), null)
      return
    }
    connect(target, (error, socket) => {
      if (error !== null) {
        callback(connectFailure(error), null)
        return
      }
      if (permits(socket.remoteAddress ?? '')) {
        callback(null, admitInterim(socket))
        return
      }
      socket.destroy()
      callback(new OutboundFailure('blocked-address'), null)
    })
  }
}

/** The hook that Node calls once a connection; what it answers with are the only addresses tried. */
function pinned(resolve: ResolveAll, permits: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, (error, addresses) => {
      const [first] = addresses
      if (error !== null || first === undefined) {
        callback(new OutboundFailure('unresolved', { cause: error }), '')
        return
      }
      // One blocked answer condemns the name: a mixed answer is how rebinding hides behind a public address.
      if (!addresses.every(({ address }) => permits(address))) {
        callback(new OutboundFailure('blocked-address'), '')
        return
      }
      if (options.all === true) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
  }
}

/** Codes of refused, unroutable and silent peers; every other failure to connect is the handshake's. */
const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
  'EPIPE',
  'EMFILE',
  'ENFILE',
])
const late: ReadonlySet<string> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'])

function connectFailure(error: Error & { code?: string }): OutboundFailure {
  if (error instanceof OutboundFailure) return error
  const code = error.code ?? ''
  if (late.has(code)) return new OutboundFailure('timeout', { cause: error })
  // Happy eyeballs report one error for all addresses tried.
  if (error instanceof AggregateError || unreachable.has(code))
    return new OutboundFailure('unreachable', { cause: error })
  return new OutboundFailure('tls', { cause: error })
}
