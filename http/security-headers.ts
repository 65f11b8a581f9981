/**
 * Headers that every answer carries, whoever gives it: pages, files, the API, refusals, what is not there. Owns the strictest policy,
 * which what is more than data replaces by its own (pages.ts, sign-in-page.ts, artifacts.ts). There is no header here that lets
 * another origin in, and nowhere else.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'

const strictest = [
  "default-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const always = {
  'content-security-policy': strictest,
  // A file that may be kept says so itself; a page that was not found is not to be remembered as such.
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const

/** A year [RFC 6797]. Only where people sign in, which is only ever over TLS; a browser that reads it over HTTP ignores it. */
const strictTransport = { 'strict-transport-security': 'max-age=31536000; includeSubDomains' } as const

export const headersIn = (mode: 'development' | 'oidc'): Readonly<Record<string, string>> =>
  mode === 'oidc' ? { ...always, ...strictTransport } : always

export function securityHeaders(mode: 'development' | 'oidc'): (request: FastifyRequest, reply: FastifyReply) => void {
  const headers = headersIn(mode)
  return (request, reply) => void reply.headers(headers).header('x-request-id', request.id)
}
