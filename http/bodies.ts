/**
 * Request bodies: JSON whatever the content type says, bounded in size and depth, and one readable sentence for what is wrong
 * with it. Does not own any route's schema, or the status of a sentence (refusals.ts).
 */
import type { FastifyInstance } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { Refusal, refusals } from '../domain/refusal.ts'

/** A body may be this large, bytes. */
export const bodyLimitBytes = 16 * 1024 * 1024
/** Deeper JSON says nothing to a person, and overflows the stack of whatever writes it recursively. */
const depthLimit = 200

/**
 * Takes JSON under any content type: a form or `text/plain` from a foreign page is refused by the origin rule, not by a
 * header that a script may forget. An empty body is no body.
 */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string', bodyLimit: bodyLimitBytes }, (request, text, done) => {
    if (text === '') return done(null, undefined)
    void parseJson.call(app, request, String(text), (error, body) => {
      if (error) return done(new Refusal('body.json'))
      const fault = faultOf(body)
      return fault === null ? done(null, body) : done(new Refusal('body.invalid', fault))
    })
  })
  // `__proto__` as a key is an attack or an accident; `constructor` is an ordinary word in an agent's data.
  const parseJson = app.getDefaultJsonParser('error', 'ignore')
  app.addHook('preValidation', (request, _reply, done) => {
    const wanted = request.routeOptions.schema?.body !== undefined
    done(wanted && (request.body === undefined || request.body === null) ? new Refusal('body.missing') : undefined)
  })
}

/** What no schema asks and every later step takes for granted: a stack's worth of depth, and text that is Unicode. */
function faultOf(body: unknown): string | null {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: body, depth: 0 }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, depth } = next
    // JSON can write half a surrogate pair; UTF-8, canonical JSON (RFC 8785) and PostgreSQL cannot.
    if (typeof value === 'string' && !value.isWellFormed())
      return 'Request text holds half a character (a lone surrogate).'
    if (typeof value !== 'object' || value === null) continue
    if (depth >= depthLimit) return 'Request JSON is nested too deeply.'
    const inside = Array.isArray(value) ? value : Object.entries(value).flat()
    for (const inner of inside) open.push({ value: inner, depth: depth + 1 })
  }
  return null
}

interface Issue {
  readonly code?: string
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/** The first thing that is wrong with a request, for a person; null when the error is not about its schema. */
export function sentenceOf(error: unknown): string | null {
  if (!hasZodFastifySchemaValidationErrors(error)) return null
  const [first] = error.validation
  if (!first) return null
  const path = first.instancePath.split('/').filter((step) => step !== '')
  return sentence({ path, message: first.message ?? '' })
}

const ownSentences: ReadonlySet<string> = new Set(Object.values(refusals))

/** Our own sentences stand alone; zod's phrases need the place they speak of. */
function sentence({ path, message }: Issue): string {
  if (message.endsWith('.') || ownSentences.has(message)) return message
  return path.length === 0 ? `${message}.` : `${path.map(String).join('.')}: ${message}.`
}
