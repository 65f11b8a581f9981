/**
 * The API's description of itself: OpenAPI 3.1 from the schemas that requests are checked with and answers are typed with, at
 * `/api/openapi.json`. Owns what every route has in common (sign-in, rates, origin, bodies, failures), so that a route says only
 * its own. Does not own the schemas, or the status of a refusal (refusals.ts).
 */
import { STATUS_CODES } from 'node:http'
import swagger, { type SwaggerTransform, type SwaggerTransformObject } from '@fastify/swagger'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import {
  createJsonSchemaTransform,
  createJsonSchemaTransformObject,
  type FastifyPluginCallbackZod,
} from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import type { Permission } from '../domain/access.ts'
import { refusals, type RefusalCode } from '../domain/refusal.ts'
import { cookieNames } from './cookies.ts'
import { components, DeliveryFailure, DoorFailure, OperationFailure } from './openapi-components.ts'
import { answers } from './refusals.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** With which codes a route refuses besides those that every route has. */
    refuses?: readonly RefusalCode[]
    /** What a request may bring where the handler reads it itself, and no schema does. */
    accepts?: { readonly body?: z.ZodMiniType; readonly headers?: z.ZodMiniType }
  }
}

type Access = Permission | 'public' | 'agent' | undefined
/** The parts of a route that its description is made of. */
type Described = Pick<RouteOptions, 'url' | 'method' | 'schema' | 'config'>

const signedIn: readonly RefusalCode[] = ['session.required', 'action.forbidden', 'rate.limit']
/** Of the paths' first words. */
const tags: Readonly<Record<string, string>> = {
  auth: 'Sign-in',
  agents: 'Agents',
  'answering-agents': 'Agents',
  commands: 'Commands',
  tasks: 'Tasks',
  'task-views': 'Tasks',
  artifacts: 'Tasks',
  reviewers: 'Tasks',
  admin: 'Access',
  audit: 'Audit',
  webhooks: 'Push',
  'openapi.json': 'This document',
}
const otherTag = 'Actors'
const tagOf = (url: string): string => tags[url.split('/')[2] ?? ''] ?? otherTag

/** What the guard, the reading of bodies and a database that is away can say on any route. */
function everybodys({ method, schema }: Described, access: Access): RefusalCode[] {
  // The receiver keeps its own rules, and names them all.
  if (access === 'agent') return []
  const codes: RefusalCode[] = access === 'public' ? ['action.forbidden'] : [...signedIn]
  if (method !== 'GET') codes.push('body.json', 'body.size')
  if (schema?.body) codes.push('body.missing')
  if (schema?.body || schema?.querystring) codes.push('body.invalid')
  return codes
}

interface Failure {
  description: string
  content: Record<string, { schema: z.ZodMiniType }>
}

const eitherFailure = z.union([DoorFailure, OperationFailure])
const outage = 'A dependency is away; nothing was done.'

function schemaOf(code: RefusalCode, access: Access): z.ZodMiniType {
  if (access === 'agent') return DeliveryFailure
  return answers[code][1] === 'door' ? DoorFailure : OperationFailure
}

/** Answers by status, each with the sentences that a person may read there. */
function failuresOf(codes: Iterable<RefusalCode>, access: Access): Record<number, Failure> {
  const found: Record<number, Failure> = {}
  const add = (status: number, schema: z.ZodMiniType, sentence: string): void => {
    const known = found[status]?.content['application/json']?.schema ?? schema
    const description = found[status] ? `${found[status].description} ${sentence}` : sentence
    found[status] = {
      description,
      content: { 'application/json': { schema: known === schema ? schema : eitherFailure } },
    }
  }
  for (const code of new Set(codes)) add(answers[code][0], schemaOf(code, access), refusals[code])
  // Whoever finds the queue of commits full is told so by an operation; everything else that is away is told at the door.
  if (access !== 'agent') add(503, eitherFailure, outage)
  return found
}

const keyOf = (access: Access): Record<string, string[]>[] =>
  access === 'public' ? [] : access === 'agent' ? [{ registration: [] }] : [{ session: [] }]

const retryAfter = { 'retry-after': { type: 'string', description: 'Seconds after which to try again' } } as const

/** What no schema can say: headers of an answer, and a word for one that needs none. */
function finished(response: Readonly<Record<string, object>>): Record<string, object> {
  const withWord = ([status, answer]: [string, object]): [string, object] => {
    const words = 'description' in answer ? {} : { 'x-response-description': STATUS_CODES[status] ?? status }
    const headers = status === '429' || status === '503' ? { headers: retryAfter } : {}
    return [status, { ...answer, ...words, ...headers }]
  }
  return Object.fromEntries(Object.entries(response).map(withWord))
}

const toJson = createJsonSchemaTransform({ schemaRegistry: components })
const withComponents = createJsonSchemaTransformObject({ schemaRegistry: components })

const described: SwaggerTransform = (given) => {
  const { url, route, schema } = given
  if (!url.startsWith('/api/')) return { schema: { hide: true }, url }
  const access = route.config?.permission
  const { refuses = [], accepts = {}, response, ...own } = { ...schema }
  const failures = failuresOf([...refuses, ...everybodys(route, access)], access)
  const whole = {
    ...own,
    ...accepts,
    tags: [tagOf(url)],
    security: keyOf(access),
    // Public, of agents, or what a role must allow.
    'x-permission': access,
    response: { ...failures, ...(response as object) },
  }
  const shown = toJson({ ...given, schema: whole })
  const json = shown.schema as FastifySchema & { readonly response: Record<string, object> }
  return { ...shown, schema: { ...json, response: finished(json.response) } }
}

/** Every component has a form for requests and one for answers; those that nothing refers to are left out. */
const inUse: SwaggerTransformObject = (given) => {
  const whole = withComponents(given)
  const parts = ('components' in whole && whole.components) || {}
  const schemas: Readonly<Record<string, object>> = ('schemas' in parts && parts.schemas) || {}
  const used = new Set<string>()
  const open: unknown[] = [whole.paths]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [, name = ''] of JSON.stringify(next).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue
      used.add(name)
      open.push(schemas[name])
    }
  }
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)))
  return Object.assign(whole, { components: { ...parts, schemas: kept } })
}

const about = `The routes that serve the console. They have no version and may change in any minor release before 1.0.
Every answer carries \`X-Request-Id\`, which the log names, and \`Cache-Control: no-store\`. A change (anything but GET) needs the
page's own \`Origin\`. An id that does not exist and one that you may not see are the same 404. A session's cookie is the only key.
What is no well-formed HTTP is 400, 408 or 431 whatever the route. HEAD is answered where GET is, sign-in excepted; any other method
of an address that is there is 405, with \`Allow\`.`

/** To be called before any route is declared. */
export function describeRoutes(app: FastifyInstance, version: string): void {
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Signalbox', description: about, version },
      components: {
        securitySchemes: {
          session: { type: 'apiKey', in: 'cookie', name: cookieNames.session },
          registration: { type: 'http', scheme: 'bearer', description: 'The credential of one push registration' },
        },
      },
    },
    transform: described,
    transformObject: inUse,
  })
}

export const openapiRoutes: FastifyPluginCallbackZod = (app, _options, done) => {
  const schema = { summary: 'This document', response: { 200: z.record(z.string(), z.unknown()) } }
  app.get('/api/openapi.json', { config: { permission: 'read' }, schema }, () => ({ ...app.swagger() }))
  done()
}
