/**
 * The console's page and its files: one document for every address that the page's own router knows, and for a person who asks for
 * another one, under a policy that allows nothing but ourselves. Does not own the files (dist/ui) or the routes of the API.
 */
import { basename } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Measured: no violation on any page. `lit-html` is the one Trusted Types policy; nothing inline, nothing from elsewhere. */
const policy = [
  "default-src 'none'",
  "base-uri 'none'",
  "object-src 'none'",
  "form-action 'self'",
  "frame-ancestors 'self'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "require-trusted-types-for 'script'",
  'trusted-types lit-html',
].join('; ')

/** Addresses of the page's router (ui/router.ts), which overlooks a slash at the end. */
const addresses = [
  '/tasks',
  '/tasks/:id',
  '/agents',
  '/agents/:id',
  '/actors',
  '/actors/:kind/:id',
  '/access',
  '/access/:view',
  '/audit',
].flatMap((address) => [address, `${address}/`])

/** What programs ask for, also where nothing is there: the API, what is built, and all that has a file's name. */
const isForPrograms = /^\/(api|assets|charts|embed)(\/|$)|\./

/** Somebody typed an address, or followed a link: a browser names this type for what it shows as a page, and for nothing else. */
const isForPerson = ({ method, url, headers }: FastifyRequest): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  headers.accept?.includes('text/html') === true &&
  !isForPrograms.test(url.split('?', 1)[0] ?? '')

/** Names under `/assets/` hold a hash of their content, those of charts a version: neither ever changes. */
function cachingOf(path: string): string {
  const name = basename(path)
  if (name === 'index.html') return 'no-store'
  return /[/\\]assets[/\\]/.test(path) || name.includes('@') ? 'public, max-age=31536000, immutable' : 'no-cache'
}

/** On the whole server, and before whoever answers that nothing is there. */
export function servePages(app: FastifyInstance, directory: string): void {
  app.register(fastifyStatic, {
    root: directory,
    wildcard: false,
    index: false,
    cacheControl: false,
    setHeaders(reply, path) {
      reply.headers({ 'cache-control': cachingOf(path), 'content-security-policy': policy })
    },
  })
  const answer = (_request: FastifyRequest, reply: FastifyReply): FastifyReply => reply.sendFile('index.html')
  for (const address of ['/', ...addresses]) app.get(address, answer)
  // The page says itself that there is none, beside the ways to those that there are.
  app.addHook('onRequest', (request, reply, next) => {
    if (request.is404 && isForPerson(request)) answer(request, reply.code(404))
    else next()
  })
}
