/**
 * The two cookies of sign-in, by the rules of the `__Host-` prefix [RFC 6265bis §4.1.3]: Secure, Path=/, no Domain, so that no
 * other host and no plain connection can set or see them. Lax: the provider's redirect, a top-level GET from another site, must
 * bring them. Set whatever the connection looks like from here: TLS ends at a proxy.
 *
 * All sign-ins of a browser are bound by the one value of its login cookie, but for the first: tabs that begin before any of them
 * was answered get a value each, and the cookie keeps the last. So each value has a copy under a name of its own.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'

export const cookieNames = { session: '__Host-a2a-session', login: '__Host-a2a-login' } as const
type Cookie = keyof typeof cookieNames
type Request = Pick<FastifyRequest, 'headers'>

const attributes = 'Path=/; HttpOnly; Secure; SameSite=Lax'

const cookiesIn = ({ headers }: Request): readonly (readonly [name: string, value: string])[] =>
  (headers.cookie ?? '').split(';').map((pair) => {
    const [name = '', ...value] = pair.trim().split('=')
    return [name, value.join('=')]
  })

/** What the browser sent; null where it sent none. */
export const cookieIn = (request: Request, cookie: Cookie): string | null =>
  cookiesIn(request).find(([name]) => name === cookieNames[cookie])?.[1] ?? null

const set = (reply: FastifyReply, name: string, value: string, maxAgeSeconds: number): void =>
  void reply.header('set-cookie', `${name}=${value}; Max-Age=${maxAgeSeconds}; ${attributes}`)

export const setSession = (reply: FastifyReply, token: string, maxAgeSeconds: number): void =>
  set(reply, cookieNames.session, token, maxAgeSeconds)
export const clearSession = (reply: FastifyReply): void => set(reply, cookieNames.session, '', 0)

const copyName = new RegExp(`^${cookieNames.login}-[\\w-]{8}$`)
/** Who begins more sign-ins than that in one moment is no person. As many fields take them away: two kilobytes of an answer's head. */
const copiesLimit = 16
/** Oldest first, as browsers send them [RFC 6265bis §5.8.3]. */
const copiesIn = (request: Request): ReturnType<typeof cookiesIn> =>
  cookiesIn(request).filter(([name]) => copyName.test(name))

/** What this browser's sign-ins are bound by, the login cookie's value first. A value that has no copy among others is not ours. */
export function bindingsIn(request: Request): readonly string[] {
  const latest = cookieIn(request, 'login')
  const copies = copiesIn(request).map(([, value]) => value)
  if (latest === null || (copies.length > 0 && !copies.includes(latest))) return []
  return [...new Set([latest, ...copies.slice(-copiesLimit)])]
}

/** The oldest copies beyond the limit go: a browser that began too many must not bring more with each. */
export function setBinding(request: Request, reply: FastifyReply, binding: string, maxAgeSeconds: number): void {
  const copy = `${cookieNames.login}-${binding.slice(0, 8)}`
  const others = copiesIn(request).flatMap(([name]) => (name === copy ? [] : [name]))
  for (const name of others.slice(0, 1 - copiesLimit).slice(0, copiesLimit)) set(reply, name, '', 0)
  set(reply, cookieNames.login, binding, maxAgeSeconds)
  set(reply, copy, binding, maxAgeSeconds)
}

/** Copies beyond the limit end by their age. */
export function clearBindings(request: Request, reply: FastifyReply): void {
  const copies = copiesIn(request).slice(-copiesLimit)
  for (const name of [cookieNames.login, ...copies.map(([name]) => name)]) set(reply, name, '', 0)
}
