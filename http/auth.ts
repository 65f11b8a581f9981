/**
 * Sign-in: the redirect to the provider, its callback, the session and its end. Owns cookies, and where a person may be sent
 * afterwards. In development mode everybody is the local administrator, so login leads straight in and a callback can only
 * be a mistake. Does not own what a sign-in is (actors/sign-in.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { endLocalSession } from '../actors/sessions.ts'
import { attemptSeconds, callbackPath, type SignIn } from '../actors/sign-in.ts'
import { instruments } from '../actors/system.ts'
import { Session } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import { nothing, SignedOut } from './answers.ts'
import { bindingsIn, clearBindings, clearSession, cookieIn, setBinding, setSession } from './cookies.ts'
import type { Door } from './door.ts'
import { viewerOf } from './guard.ts'
import { logged, sayWhenAgain } from './refusals.ts'
import { isNavigation, signInPage, signInPagePolicy } from './sign-in-page.ts'

const home = '/tasks'
const returnToLimit = 1024
const Login = z.object({ returnTo: z.optional(z.unknown()) })
const loginPath = '/api/auth/login'

/** A path within the console; anything that a browser could read as another origin leads home instead. */
export function safeReturn(returnTo: unknown): string {
  if (typeof returnTo !== 'string' || returnTo.length > returnToLimit) return home
  // No control characters: browsers drop tabs and line breaks, and what they hid is then read.
  if (!/^\/(?![/\\])/.test(returnTo) || /\p{Cc}/u.test(returnTo)) return home
  const here = 'http://console.invalid'
  if (!URL.canParse(returnTo, here)) return home
  const { origin, pathname, search, hash } = new URL(returnTo, here)
  // Back to the beginning would go round for ever, past a provider that knows the person.
  if (origin !== here || pathname.startsWith('//') || pathname === loginPath) return home
  return pathname + search + hash
}

const beginning = {
  summary: 'To the identity provider',
  querystring: Login,
  response: { 303: nothing },
  refuses: ['session.limit', 'session.unavailable'],
} as const
const returning = {
  summary: 'Back from the identity provider',
  response: { 303: nothing },
  refuses: ['session.limit', 'session.failed', 'session.unavailable'],
} as const
const leaving = { summary: 'Sign out', response: { 200: SignedOut } }
const asking = { summary: 'Who is signed in', response: { 200: Session } }

export const authRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  const { system, auth } = door
  const count = async (route: 'login' | 'callback'): Promise<void> => {
    if (!(await system.rates.take(route))) throw new Refusal('session.limit')
  }
  // Whoever sees these answers in a browser has left the console's page: JSON would be the end of the way.
  app.setErrorHandler((error, request, reply) => {
    const isWayIn = [loginPath, callbackPath].includes(request.routeOptions.url ?? '')
    if (!isWayIn || !isNavigation(request)) throw error
    const { status, message } = logged(error, request)
    reply.header('content-security-policy', signInPagePolicy)
    sayWhenAgain(reply, status)
    return reply
      .code(status)
      .type('text/html; charset=utf-8')
      .send(signInPage(message, againTo(error, request)))
  })
  // No HEAD of the two: whoever only looks must not begin a sign-in, nor use one up.
  const way = { config: { permission: 'public' }, exposeHeadRoute: false } as const
  app.get(loginPath, { ...way, schema: beginning }, async (request, reply) => {
    await count('login')
    const returnTo = safeReturn(request.query.returnTo)
    if (auth.mode === 'development') return reply.redirect(returnTo, 303)
    if (!auth.signIn) throw new Refusal('session.unavailable')
    const { location, binding } = await auth.signIn.begin(returnTo, bindingsIn(request))
    setBinding(request, reply, binding, attemptSeconds)
    return reply.redirect(location, 303)
  })
  app.get(callbackPath, { ...way, schema: returning }, async (request, reply) => {
    await count('callback')
    if (auth.mode === 'development' || !auth.signIn) throw new Refusal('session.failed')
    return reply.redirect(auth.origin + (await callback(auth.signIn, request, reply)), 303)
  })
  app.post('/api/auth/logout', { config: { permission: 'read' }, schema: leaving }, async (request, reply) => {
    // Ended before the cookies are taken: whoever reads "signed out" is signed out, whatever the browser does.
    if (auth.mode === 'development')
      await endLocalSession({ db: door.db, instruments, changes: system.changes }, viewerOf(request))
    else await auth.sessions.end(cookieIn(request, 'session') ?? '')
    clearSession(reply)
    clearBindings(request, reply)
    return { signedOut: true } as const
  })
  app.get('/api/auth/session', { config: { permission: 'read' }, schema: asking }, (request): Session => {
    const { displayName, role } = viewerOf(request)
    return { user: { displayName, role }, mode: auth.mode }
  })
  done()
}

/** Sets the session's cookie and returns where to go; refuses, whatever is wrong, as SignInFailed. */
async function callback(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): Promise<string> {
  const query = request.url.indexOf('?')
  const { token, returnTo, hasOthers } = await signIn.complete({
    parameters: new URLSearchParams(query < 0 ? '' : request.url.slice(query + 1)),
    bindings: bindingsIn(request),
    session: cookieIn(request, 'session'),
  })
  // Another tab's attempt needs the binding still.
  if (!hasOthers) clearBindings(request, reply)
  if (token === null) throw new SignInFailed(returnTo)
  setSession(reply, token, signIn.sessions.rules.sessionSeconds)
  return safeReturn(returnTo)
}

/** Knows where the person was going: whoever starts again still wants to go there. */
class SignInFailed extends Refusal {
  readonly returnTo: string | null
  constructor(returnTo: string | null) {
    super('session.failed')
    this.returnTo = returnTo
  }
}

/** The way to begin anew: of a callback where its attempt was going, of a login what it was asked for. */
function againTo(error: unknown, request: FastifyRequest): string {
  const asked = request.routeOptions.url === loginPath ? Login.safeParse(request.query).data?.returnTo : null
  const returnTo = safeReturn(error instanceof SignInFailed ? error.returnTo : asked)
  return returnTo === home ? loginPath : `${loginPath}?returnTo=${encodeURIComponent(returnTo)}`
}
