/**
 * The console's page and its files: one document for every address that the page's own router knows, under a policy that
 * allows nothing but ourselves. Does not own the files (dist/ui) or the routes of the API.
 */
import { basename } from 'node:path'
import fastifyStatic from '@fastify/static'
import type { FastifyPluginCallback } from 'fastify'

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

/** Addresses of the page's router (ui/router.ts). */
const addresses = [
  '/',
  '/tasks',
  '/tasks/*',
  '/agents',
  '/agents/*',
  '/actors',
  '/actors/*',
  '/access',
  '/access/*',
  '/audit',
]

/** Names under `/assets/` hold a hash of their content, those of charts a version: neither ever changes. */
function cachingOf(path: string): string {
  const name = basename(path)
  if (name === 'index.html') return 'no-store'
  return /[/\\]assets[/\\]/.test(path) || name.includes('@') ? 'public, max-age=31536000, immutable' : 'no-cache'
}

export const pageRoutes: FastifyPluginCallback<{ readonly directory: string }> = (app, { directory }, done) => {
  app.register(fastifyStatic, {
    root: directory,
    wildcard: false,
    index: false,
    cacheControl: false,
    setHeaders(reply, path) {
      reply.headers({ 'cache-control': cachingOf(path), 'content-security-policy': policy })
    },
  })
  for (const address of addresses) app.get(address, (_request, reply) => reply.sendFile('index.html'))
  done()
}
