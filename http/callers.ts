/**
 * Who a request is by, and that it is counted: what the guard asks. In oidc mode the session cookie says who, and one statement
 * answers both; in development nobody has to be asked for, and counting is all. A command's own commit can ask, too: then who it
 * is by is presumed until it is there. Does not own sessions (actors/sessions.ts), the limits (actors/rate-counter.ts), or what
 * follows from the answer (guard.ts).
 */
import type { Commands } from '../actors/acceptance.ts'
import type { RateCounter } from '../actors/rate-counter.ts'
import type { Sessions } from '../actors/sessions.ts'
import { mayEver } from '../domain/access.ts'
import { isOutage } from '../persistence/outage.ts'
import { cookieIn } from './cookies.ts'
import type { Guard } from './guard.ts'

export const bySession =
  (sessions: Sessions): Guard['identify'] =>
  async (request) => {
    const token = cookieIn(request, 'session')
    return token === null ? null : sessions.look(token)
  }

export const arrivingBySession =
  (sessions: Sessions, { limits }: Pick<RateCounter, 'limits'>): Guard['arrive'] =>
  async (request, permission) => {
    const token = cookieIn(request, 'session')
    return token === null ? null : sessions.arrive(token, permission, limits[permission])
  }

/** Presumptions are for a database that answers at once: behind one that hangs, who is asking is told so sooner. */
type Prompt = Pick<Commands, 'isPrompt'>

export const presumingBySession =
  (sessions: Sessions, { limits }: Pick<RateCounter, 'limits'>, commands: Prompt): Guard['presume'] =>
  (request, permission) => {
    const token = commands.isPrompt ? cookieIn(request, 'session') : null
    return Promise.resolve(token === null ? null : sessions.presume(token, permission, limits[permission]))
  }

export const presumingAs =
  (identify: Guard['identify'], rates: RateCounter, commands: Prompt): Guard['presume'] =>
  async (request, permission) => {
    const viewer = commands.isPrompt ? await identify(request) : null
    const bucket = viewer && rates.bucketFor(permission, viewer.userId)
    return !viewer || bucket === null ? null : { viewer, session: null, bucket, limit: rates.limits[permission] }
  }

export const arrivingAs =
  (identify: Guard['identify'], rates: RateCounter): Guard['arrive'] =>
  async (request, permission) => {
    const viewer = await identify(request)
    if (!viewer || !mayEver(viewer.role, permission)) return viewer && { viewer, hasPlace: false }
    const hasPlace = rates.take(permission, viewer.userId)
    const isLocal = request.routeOptions.config.database === 'unneeded'
    return { viewer, hasPlace: await (isLocal ? hasPlace.catch(orUncounted) : hasPlace) }
  }

/** With the database away nobody is counted; what this process knows without it can still be read. */
function orUncounted(error: unknown): true {
  if (isOutage(error)) return true
  throw error
}
