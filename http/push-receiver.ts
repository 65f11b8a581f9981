/**
 * The push receiver: agents deliver what became of their tasks. Owns the route, the order of its checks, its body and its own
 * shape of an error, `{error: "<sentence>"}`. Does not own who may deliver or what a delivery means (actors/push-receipts.ts).
 *
 * Everything that can be decided from the head is decided before a byte of the body is read, so that a stranger makes this
 * process hold nothing.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { Refusal } from '../domain/refusal.ts'
import type { PushTarget } from '../persistence/push.ts'
import { nothing } from './answers.ts'
import { bodyLimitBytes } from './bodies.ts'
import type { Door } from './door.ts'
import { Bodies } from './push-bodies.ts'
import { failureOf, logged, sayWhenAgain } from './refusals.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the head of a delivery says, once it was let in. */
    delivery: { readonly target: PushTarget; readonly deliveryId: string | null } | null
  }
}

const below = '/api/webhooks/a2a/'

interface OfRegistration {
  readonly registrationId: string
}

/**
 * Of bodies under way, bytes: a few of the largest. Agents that are let in must not fill this process's memory, and one of them,
 * with however many tasks, not the place of all others: two of the largest at once. 30 s are 16 MiB at 4.5 Mbit/s.
 */
const bodyLimits = {
  eachBytes: bodyLimitBytes,
  senderBytes: 2 * bodyLimitBytes,
  togetherBytes: 4 * bodyLimitBytes,
  withinMs: 30_000,
}
const jsonTypes: ReadonlySet<string> = new Set(['application/json', 'application/a2a+json'])
/** Printable ASCII, the space included. */
const deliveryIdShape = /^[\x20-\x7e]{1,255}$/

const schema = {
  summary: 'A delivery: what became of a task, from its agent',
  consumes: [...jsonTypes],
  accepts: {
    body: z.record(z.string(), z.unknown()),
    headers: z.object({ 'x-a2a-delivery-id': z.optional(z.string().check(z.regex(deliveryIdShape))) }),
  },
  response: { 204: nothing },
  refuses: [
    'push.off',
    'push.unauthenticated',
    'push.limit',
    'push.media',
    'push.delivery',
    'push.envelope',
    'push.payload',
    'push.task',
    'push.scope',
    'push.unavailable',
    'body.size',
  ],
} as const

export const pushRoutes: FastifyPluginCallbackZod<Door> = (app, { system }, done) => {
  const bodies = new Bodies(bodyLimits)
  app.decorateRequest('delivery', null)
  app.removeAllContentTypeParsers()
  // The handler reads the body itself, within the bounds of all that are read at the time.
  app.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload))
  app.setErrorHandler(answerSender)
  app.post<{ Params: OfRegistration }>(
    `${below}:registrationId`,
    {
      config: { permission: 'agent' },
      schema,
      onRequest: async (request) => {
        const target = await system.receipts.admit(request.params.registrationId, presentedIn(request))
        if (!isJson(request)) throw new Refusal('push.media')
        request.delivery = { target, deliveryId: deliveryIdIn(request) }
      },
    },
    async (request, reply) => {
      const { delivery } = request
      if (!delivery) throw new Refusal('push.unauthenticated')
      const { agentId } = delivery.target
      await bodies.read(agentId, request.raw, (body) => system.receipts.receive({ ...delivery, body }))
      return reply.code(204).send()
    },
  )
  done()
}

/**
 * `Authorization: Bearer`, or the header of agents that know tokens only (a2a-python, and every 0.3 agent). Where both are
 * there the former counts: a wrong bearer is not made good by anything beside it.
 */
function presentedIn({ headers, raw }: FastifyRequest): string[] {
  // Node keeps the first of two, and whoever checks them on the way may have kept the last.
  if ((raw.headersDistinct['authorization']?.length ?? 0) > 1) return []
  if (headers.authorization !== undefined) return /^Bearer +(\S+) *$/i.exec(headers.authorization)?.slice(1) ?? []
  const token = headers['x-a2a-notification-token']
  return typeof token === 'string' ? [token] : []
}

const isJson = ({ headers }: FastifyRequest): boolean =>
  jsonTypes.has((headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '')

function deliveryIdIn({ raw }: FastifyRequest): string | null {
  const [id, ...more] = raw.headersDistinct['x-a2a-delivery-id'] ?? []
  if (id === undefined) return null
  if (more.length > 0 || !deliveryIdShape.test(id)) throw new Refusal('push.delivery')
  return id
}

/** Meant for this route, also where it is by a method or an address that it does not have: its sender reads one shape of an error. */
export const isDelivery = ({ url }: FastifyRequest): boolean => url.startsWith(below)

/** The status is refusals.ts's; a fault of ours is always "later", because a delivery may be repeated. */
export function answerSender(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  // The sender hung up in the middle of its body: nobody hears the answer, and nothing here failed.
  if (request.raw.destroyed && !request.raw.complete) return void reply.hijack()
  const failure = logged(error, request)
  const { status, message } = failure.alarm === null ? failure : failureOf(new Refusal('push.unavailable'))
  sayWhenAgain(reply, status)
  reply.code(status).send({ error: message })
}
