/**
 * Who may pass: sign-in, role, rate, origin, in the specification's order (401, 403, 429, origin, handler), before a byte of
 * the body is read. Where a route's own commit asks for the first three (accepting.ts), they may be presumed until then, and a small
 * body is read. A route declares its permission; one that forgets does not start. Does not decide who somebody is or how they are
 * counted (callers.ts), or how many are presumed at once (presumed-requests.ts).
 */
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { PresumedRequests, settle } from './presumed-requests.ts'
import type { Arrival } from '../actors/sessions.ts'
import { mayEver, type Permission, type Viewer } from '../domain/access.ts'
import { isLoopbackHost } from '../domain/loopback.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Presumption } from '../persistence/presumptions.ts'
import { securityHeaders } from './security-headers.ts'
import { repeatsField } from './wire.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * What a caller's role must allow. `public`: nobody needs to be signed in. `agent`: no person calls, and no page: the
     * route proves its callers by a credential of their own.
     */
    permission?: Permission | 'public' | 'agent'
    /** Whose windows its requests are counted in, where that is not the permission's: looks that an open page repeats. */
    countedAs?: Permission
    /** `with its commit`: the route ends in one that asks who it acts for (accepting.ts); until then that may be presumed. */
    proves?: 'with its commit'
    /** `unneeded`: the route answers by what this process knows, also while the database is away. */
    database?: 'unneeded'
  }
  interface FastifyRequest {
    identity: Viewer | null
  }
  interface FastifyInstance {
    identify: Guard['identify']
    arrive: Guard['arrive']
  }
}

export type OriginRule =
  | { readonly mode: 'development' }
  /** `origin`: the one origin that pages may send from, exactly. */
  | { readonly mode: 'oidc'; readonly origin: string }

export interface Guard {
  /** The person behind a request, for what lasts longer than it; null when nobody is signed in. Not counted. */
  readonly identify: (request: FastifyRequest) => Promise<Viewer | null>
  /** The same for a request that begins: counted, unless the person's role does not reach what it asks for. */
  readonly arrive: (request: FastifyRequest, permission: Permission) => Promise<Arrival | null>
  /** Who a request is by as far as this process knows, to be held against what is there later; null: it has to ask first. */
  readonly presume: (request: FastifyRequest, permission: Permission) => Promise<Presumption | null>
  readonly origins: OriginRule
  /**
   * The socket is bound to loopback: a `Host` that is not loopback is a name that a foreign page made point here (DNS
   * rebinding), whose requests would otherwise be same-origin.
   */
  readonly loopbackOnly: boolean
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export function guardRoutes(app: FastifyInstance, guard: Guard): void {
  const declared: RouteOptions[] = []
  const presumed = new PresumedRequests(app)
  const addHeaders = securityHeaders(guard.origins.mode)
  app.decorateRequest('identity', null)
  app.decorate('identify', guard.identify)
  app.decorate('arrive', guard.arrive)
  app.addHook('onRoute', (route) => void declared.push(route))
  app.addHook('onReady', (done) => {
    const open = declared.find(({ url, config }) => isApi(url) && config?.permission === undefined)
    done(open && new Error(`${String(open.method)} ${open.url} declares no permission.`))
  })
  app.addHook('onRequest', async (request, reply) => {
    addHeaders(request, reply)
    const { permission } = request.routeOptions.config
    if (repeatsField(request.raw.rawHeaders, permission === 'agent' ? 'agent' : 'person'))
      throw new Refusal('body.invalid')
    // Not even its name: agents reach a console on loopback through a tunnel, under the callback origin's.
    if (permission === 'agent') return
    if (guard.loopbackOnly && !isLoopbackHost(hostname(`http://${request.host}`))) throw new Refusal('action.forbidden')
    if (permission === undefined) return
    const mayChange = safeMethods.has(request.method) || isOwnOrigin(request, guard.origins)
    if (permission !== 'public') {
      const mayWait = request.routeOptions.config.proves !== undefined && isPlain(request) && mayChange
      const presumption = mayWait ? await guard.presume(request, permission) : null
      if (presumption && mayEver(presumption.viewer.role, permission) && presumed.enter(request, presumption))
        sayWho(reply, presumption.viewer)
      else await prove(request, reply)
    }
    if (!mayChange) throw new Refusal('action.forbidden')
  })
}

/**
 * Asks who a request is by, and counts it: 401, 403, 429, in this order. Whatever was presumed is over; the viewer is who is there
 * now. Nobody is told no, or anything else that was looked up, before this or the commit that asks.
 */
export async function prove(request: FastifyRequest, reply: FastifyReply): Promise<Viewer> {
  const { permission, countedAs = permission } = request.routeOptions.config
  if (!isOfRole(permission) || !isOfRole(countedAs)) throw new Error('Nobody is asked for here.')
  settle(request)
  reply.removeHeader('x-viewer-id')
  const arrival = await request.server.arrive(request, countedAs)
  request.identity = arrival?.viewer ?? null
  const viewer = viewerOf(request)
  sayWho(reply, viewer)
  if (!mayEver(viewer.role, permission)) throw new Refusal('action.forbidden')
  if (!arrival?.hasPlace) throw new Refusal('rate.limit')
  return viewer
}

/** A page keeps what a person typed for that person: names are not unique, and a tab may see another one sign in. */
const sayWho = (reply: FastifyReply, { userId }: Viewer): unknown => reply.header('x-viewer-id', userId)

/** Bytes of a body that may be read for somebody who is only presumed. */
const presumedBodyBytes = 64 * 1024

/** Small, and sent without being asked for. */
function isPlain({ headers }: FastifyRequest): boolean {
  const length = Number(headers['content-length'])
  return headers.expect === undefined && length <= presumedBodyBytes
}

/** The signed-in person; refuses with `session.required` where there is none. */
export function viewerOf(request: FastifyRequest): Viewer {
  if (!request.identity) throw new Refusal('session.required')
  return request.identity
}

/**
 * Looks again who asks, for what lasts longer than a request: the session must still be good, the membership enabled, the
 * role one that may. The viewer as they are now; refuses as their next request would be.
 */
export async function admitted(request: FastifyRequest): Promise<Viewer> {
  const { permission } = request.routeOptions.config
  const viewer = await request.server.identify(request)
  if (!viewer) throw new Refusal('session.required')
  if (isOfRole(permission) && !mayEver(viewer.role, permission)) throw new Refusal('action.forbidden')
  return viewer
}

const isOfRole = (permission: FastifyContextConfig['permission']): permission is Permission =>
  permission !== undefined && permission !== 'public' && permission !== 'agent'

const isApi = (url: string): boolean => url.startsWith('/api/')

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
  isLoopbackHost(origin.hostname) && origin.protocol === own.protocol && origin.port === own.port

const hostname = (url: string): string => URL.parse(url)?.hostname ?? ''
