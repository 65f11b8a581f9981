/**
 * The only place where a failure becomes a status. Three kinds: a refusal answers with its code's status and sentence; an
 * outage is 503, its cause logged and hidden; anything else is a defect, 500, logged whole. Does not own the sentences
 * (domain/refusal.ts).
 */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Overloaded } from '../actors/loop/operation.ts'
import { Refusal, refusals, type RefusalCode } from '../domain/refusal.ts'
import { isOutage } from '../persistence/outage.ts'
import { sentenceOf } from './bodies.ts'
import { Crowded } from './large-room.ts'

/**
 * The specification has two shapes of an error. `door`: `{error: {message}}`, for what is decided before an operation is
 * asked (sign-in, role, validation) and for what is not there. `operation`: `{error: {name: 'Error', message}}`, for what an
 * operation declines in the state that things are in. Clients match on the status; the message is for people.
 */
type Shape = 'door' | 'operation'
type Status = 400 | 401 | 403 | 404 | 405 | 409 | 415 | 429 | 502 | 503 | 504

/** A code without a line here does not compile. */
export const answers: Readonly<Record<RefusalCode, readonly [Status, Shape]>> = {
  'body.invalid': [400, 'door'],
  'body.missing': [400, 'door'],
  'body.json': [400, 'door'],
  'body.size': [400, 'door'],
  'session.required': [401, 'door'],
  'session.unavailable': [503, 'door'],
  'session.failed': [401, 'door'],
  'session.limit': [429, 'door'],
  'rate.limit': [429, 'door'],
  'action.forbidden': [403, 'door'],
  'agent.unknown': [404, 'door'],
  'agent.seeded': [409, 'operation'],
  'agent.url.missing': [400, 'door'],
  'agent.url.scheme': [400, 'door'],
  'agent.url.decorated': [400, 'door'],
  'agent.url.length': [400, 'door'],
  'agent.discovery': [502, 'operation'],
  'agent.network': [502, 'operation'],
  'command.unknown': [404, 'door'],
  'command.key.missing': [400, 'door'],
  'command.key.taken': [409, 'operation'],
  'command.failed': [409, 'operation'],
  'command.waiting': [504, 'operation'],
  'settlement.taken': [409, 'operation'],
  'settlement.early': [409, 'operation'],
  'settlement.open': [409, 'operation'],
  'settlement.successor': [400, 'operation'],
  'settlement.replaces': [400, 'operation'],
  'task.unknown': [404, 'door'],
  'task.filter': [400, 'door'],
  'task.limit': [400, 'door'],
  'task.offset': [400, 'door'],
  'task.views.page': [400, 'door'],
  'task.views.room': [429, 'door'],
  'task.reference.unknown': [404, 'operation'],
  'task.context': [403, 'operation'],
  'skill.context': [400, 'operation'],
  'skill.fixed': [400, 'operation'],
  'skill.unsupported': [400, 'operation'],
  'skill.crossed': [409, 'operation'],
  'cursor.invalid': [400, 'door'],
  'audit.range': [400, 'door'],
  'audit.chain.filters': [400, 'door'],
  'access.invalid': [400, 'door'],
  'access.grant.unknown': [400, 'door'],
  'access.team.unknown': [400, 'door'],
  'access.membership.unknown': [400, 'door'],
  'access.subject.unknown': [400, 'door'],
  'access.agent.unknown': [400, 'door'],
  'actor.unknown': [404, 'door'],
  'artifact.identity': [400, 'door'],
  // The push receiver's own shape is a bare sentence (http/push-receiver.ts); the one said here is never seen.
  'push.off': [503, 'door'],
  'push.unauthenticated': [401, 'door'],
  'push.limit': [429, 'door'],
  'push.media': [415, 'door'],
  'push.delivery': [400, 'door'],
  'push.envelope': [400, 'door'],
  'push.payload': [400, 'door'],
  'push.task': [409, 'door'],
  'push.scope': [409, 'door'],
  'push.unavailable': [503, 'door'],
  'route.unknown': [404, 'door'],
  'route.method': [405, 'door'],
  'event.ignored': [409, 'operation'],
}

export interface Failure {
  readonly status: number
  readonly message: string
  readonly shape: Shape
  /** What the log is told; null for an expected no. */
  readonly alarm: 'outage' | 'defect' | null
}

/** The specification's sentence for a database that is down; it says nothing of the cause. */
const unavailable = 'Identity service unavailable.'
const defective = 'Something went wrong in the console. It has been logged.'

/** Fastify's own refusals, by its codes: a client's fault, so they are answers and not alarms. */
const frameworkCodes: Readonly<Record<string, RefusalCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body.size',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'body.invalid',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'body.json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'body.missing',
  FST_ERR_CTP_INVALID_JSON_BODY: 'body.json',
  FST_ERR_BAD_URL: 'route.unknown',
  FST_ERR_MAX_PARAM_LENGTH: 'route.unknown',
}

export function failureOf(error: unknown): Failure {
  if (error instanceof Refusal) return refusalAnswer(error.code, error.message)
  const sentence = sentenceOf(error)
  if (sentence !== null) return refusalAnswer('body.invalid', sentence)
  const code = frameworkCodes[(error as Partial<FastifyError> | null)?.code ?? '']
  if (code !== undefined) return refusalAnswer(code, refusals[code])
  // Nothing is away: the log has a line of its own (large-bodies.ts).
  if (error instanceof Crowded) return { status: 503, message: error.message, shape: 'operation', alarm: null }
  // Its own sentence says what the caller may rely on: that nothing was accepted, or that nobody knows and how to ask again.
  if (error instanceof Overloaded) return { status: 503, message: error.message, shape: 'operation', alarm: 'outage' }
  if (isOutage(error)) return { status: 503, message: unavailable, shape: 'door', alarm: 'outage' }
  return { status: 500, message: defective, shape: 'door', alarm: 'defect' }
}

function refusalAnswer(code: RefusalCode, message: string): Failure {
  const [status, shape] = answers[code]
  return { status, message, shape, alarm: null }
}

/** Logs what the answer hides. Returns the failure, for whoever has already begun to answer. */
export function logged(error: unknown, request: FastifyRequest): Failure {
  const failure = failureOf(error)
  // A client that hangs up in the middle of its body hears nothing, and nothing of ours is away.
  if (request.raw.destroyed && !request.raw.complete) return failure
  if (failure.alarm === 'outage') request.log.warn({ err: error }, 'a dependency is unavailable')
  if (failure.alarm === 'defect') request.log.error({ err: error }, 'a request failed')
  return failure
}

/** When to try again, seconds: an outage may be over at once, and a window is a minute: by then there are places again. */
export function sayWhenAgain(reply: FastifyReply, status: number): void {
  if (status === 503) reply.header('retry-after', '1')
  if (status === 429) reply.header('retry-after', '60')
}

/** Fastify's error handler. */
export function answerFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, message, shape } = logged(error, request)
  sayWhenAgain(reply, status)
  reply.code(status).send({ error: shape === 'door' ? { message } : { name: 'Error', message } })
}
