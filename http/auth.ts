/**
 * Sign-in: the session, its end, and the two routes of a provider's redirect. In development mode everybody is the local
 * administrator, so login leads straight in and a callback can only be a mistake.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { endSession } from '../actors/sign-in.ts'
import { instruments } from '../actors/system.ts'
import type { Session } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Door } from './door.ts'
import { viewerOf } from './guard.ts'

const home = '/tasks'
const Login = z.object({ returnTo: z.optional(z.unknown()) })

/** A path within the console; anything that a browser could read as another origin leads home instead. */
export function safeReturn(returnTo: unknown): string {
  if (typeof returnTo !== 'string' || !/^\/(?![/\\])/.test(returnTo)) return home
  const here = 'http://console.invalid'
  if (!URL.canParse(returnTo, here)) return home
  // Parsing drops tabs and line breaks as a browser would, so what they hid is seen here.
  const { origin, pathname, search, hash } = new URL(returnTo, here)
  return origin === here && !pathname.startsWith('//') ? pathname + search + hash : home
}

export const authRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  app.get(
    '/api/auth/login',
    { config: { permission: 'public' }, schema: { querystring: Login } },
    async (request, reply) => {
      if (door.mode !== 'development') throw new Refusal('session.unavailable')
      return reply.redirect(safeReturn(request.query.returnTo), 303)
    },
  )
  app.get('/api/auth/callback', { config: { permission: 'public' } }, () => {
    throw new Refusal('session.failed')
  })
  app.post('/api/auth/logout', { config: { permission: 'read' } }, async (request) => {
    await endSession(door.db, instruments, viewerOf(request))
    return { signedOut: true }
  })
  app.get('/api/auth/session', { config: { permission: 'read' } }, (request): Session => {
    const { displayName, role } = viewerOf(request)
    return { user: { displayName, role }, mode: door.mode }
  })
  done()
}
