/**
 * Who may pass: sign-in, role, origin, in the specification's order (401, 403, 429 later, origin, handler), before a byte of
 * the body is read. A route declares its permission; one that forgets does not start. Does not decide who somebody is:
 * the composition root brings `identify`.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { mayEver, type Permission, type Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * What a caller's role must allow. `public`: nobody needs to be signed in. `agent`: no person calls, and no page: the
     * route proves its callers by a credential of their own.
     */
    permission?: Permission | 'public' | 'agent'
  }
  interface FastifyRequest {
    identity: Viewer | null
  }
}

export type OriginRule =
  | { readonly mode: 'development' }
  /** `origin`: the one origin that pages may send from, exactly. */
  | { readonly mode: 'oidc'; readonly origin: string }

export interface Guard {
  /** The person behind a request; null when nobody is signed in. */
  readonly identify: (request: FastifyRequest) => Promise<Viewer | null>
  readonly origins: OriginRule
  /**
   * The socket is bound to loopback: a `Host` that is not loopback is a name that a foreign page made point here (DNS
   * rebinding), whose requests would otherwise be same-origin.
   */
  readonly loopbackOnly: boolean
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
const permissionsPolicy = 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()'

export function guardRoutes(app: FastifyInstance, guard: Guard): void {
  const declared: RouteOptions[] = []
  app.decorateRequest('identity', null)
  app.addHook('onRoute', (route) => void declared.push(route))
  app.addHook('onReady', (done) => {
    const open = declared.find(({ url, config }) => isApi(url) && config?.permission === undefined)
    done(open && new Error(`${String(open.method)} ${open.url} declares no permission.`))
  })
  app.addHook('onRequest', async (request, reply) => {
    answerHeaders(request, reply)
    const { permission } = request.routeOptions.config
    // Not even its name: agents reach a console on loopback through a tunnel, under the callback origin's.
    if (permission === 'agent') return
    if (guard.loopbackOnly && !isLoopback(hostname(`http://${request.host}`))) throw new Refusal('action.forbidden')
    if (permission === undefined) return
    if (permission !== 'public') {
      request.identity = await guard.identify(request)
      if (!mayEver(viewerOf(request).role, permission)) throw new Refusal('action.forbidden')
    }
    if (!safeMethods.has(request.method) && !isOwnOrigin(request, guard.origins)) throw new Refusal('action.forbidden')
  })
}

/** The signed-in person; refuses with `session.required` where there is none. */
export function viewerOf(request: FastifyRequest): Viewer {
  if (!request.identity) throw new Refusal('session.required')
  return request.identity
}

const isApi = (url: string): boolean => url.startsWith('/api/')

/** On every answer, refusals included. */
function answerHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': permissionsPolicy,
    'x-request-id': request.id,
  })
  if (!isApi(request.url)) return
  reply.header('cache-control', 'no-store')
  reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
}

function isOwnOrigin(request: FastifyRequest, rule: OriginRule): boolean {
  if (request.headers['sec-fetch-site'] === 'cross-site') return false
  const { origin } = request.headers
  if (rule.mode === 'oidc') return origin === rule.origin
  // A script outside a browser sends none; a browser always does for these methods.
  if (origin === undefined) return true
  const own = `${request.protocol}://${request.host}`
  if (origin === own) return true
  return URL.canParse(origin) && URL.canParse(own) && isLoopbackTwin(new URL(origin), new URL(own))
}

/** `http://localhost:3002` for `http://127.0.0.1:3002`: another name of the same door. */
const isLoopbackTwin = (origin: URL, own: URL): boolean =>
  isLoopback(origin.hostname) && origin.protocol === own.protocol && origin.port === own.port

const hostname = (url: string): string => (URL.canParse(url) ? new URL(url).hostname : '')
/** Host names as URL writes them: IPv4 in four numbers, IPv6 in brackets. */
const isLoopback = (host: string): boolean =>
  /^127(?:\.\d{1,3}){3}$/.test(host) || ['localhost', '[::1]'].includes(host)
