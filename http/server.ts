/**
 * The HTTP floor, assembled: Fastify with our limits, the guard in front, one plugin a resource. Owns neither the system nor
 * the database, which it is given; whoever builds it listens and closes (bin/console.ts).
 */
import fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { validatorCompiler } from 'fastify-type-provider-zod'
import { idLimit } from '../a2a/proto-json.ts'
import { instruments } from '../actors/system.ts'
import { Refusal } from '../domain/refusal.ts'
import { answerProven } from './accepting.ts'
import { adminRoutes } from './admin.ts'
import { agentRoutes } from './agents.ts'
import { artifactRoutes } from './artifacts.ts'
import { auditRoutes } from './audit.ts'
import { authRoutes } from './auth.ts'
import { bodyLimitBytes, readJsonBodies } from './bodies.ts'
import { arrivingAs, arrivingBySession, presumingAs, presumingBySession } from './callers.ts'
import { commandRoutes } from './commands.ts'
import { damageLog } from './damage.ts'
import { debugRoutes } from './debug.ts'
import type { Door } from './door.ts'
import { guardRoutes, type Guard } from './guard.ts'
import { admitLargeBodies } from './large-bodies.ts'
import { lingerOver } from './lingering.ts'
import { methodsByAddress } from './methods.ts'
import { describeRoutes, openapiRoutes } from './openapi.ts'
import { servePages } from './pages.ts'
import { answerSender, isDelivery, pushRoutes } from './push-receiver.ts'
import { answerFailure } from './refusals.ts'
import { RequestLog } from './request-log.ts'
import { reviewerRoutes } from './reviewers.ts'
import { headersIn, securityHeaders } from './security-headers.ts'
import { settlementRoutes } from './settlements.ts'
import { letGoOfStalled } from './stalls.ts'
import { streamRoutes } from './stream.ts'
import { taskEventRoutes } from './task-events.ts'
import { taskRoutes } from './tasks.ts'
import { malformedAnswer, parsing } from './wire.ts'

export interface ServerOptions extends Omit<Door, 'damaged'>, Omit<Guard, 'origins' | 'arrive' | 'presume'> {
  /** The built console; null serves the API alone. */
  readonly uiDirectory: string | null
  /** The package's, for the API's document. */
  readonly version: string
  readonly log: FastifyBaseLogger
  /** Another limit for readers that take nothing than the product's (stalls.ts), milliseconds. */
  readonly stallMs?: number
}

/** A request that takes longer to arrive is given up, milliseconds. */
const requestTimeoutMs = 120_000
/** Agents' ids are in paths: characters of four bytes, each percent-encoded. */
const paramCharacters = idLimit * 4 * 3

/**
 * `Expect: 100-continue` asks whether the body is wanted [RFC 9110 §10.1.1]. Node says yes before anybody was asked; here the
 * yes comes after the checks that need no body, so that a stranger is told no instead.
 */
function inviteBodiesLate(app: FastifyInstance): void {
  app.server.on('checkContinue', (request, response) => app.server.emit('request', request, response))
  app.addHook('preParsing', (request, reply, payload, next) => {
    if (request.headers.expect?.toLowerCase() === '100-continue') reply.raw.writeContinue()
    next(null, payload)
  })
}

const refusingUnknown =
  (methodsOf: ReturnType<typeof methodsByAddress>) =>
  (request: FastifyRequest, reply: FastifyReply): never => {
    const methods = methodsOf(request)
    if (methods.length === 0) throw new Refusal('route.unknown')
    reply.header('allow', methods.join(', '))
    throw new Refusal('route.method')
  }

export function buildServer(options: ServerOptions): FastifyInstance {
  const { auth, system, uiDirectory, log } = options
  const addHeaders = securityHeaders(auth.mode)
  const app = fastify({
    loggerInstance: log,
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    http: parsing,
    clientErrorHandler: malformedAnswer(headersIn(auth.mode)),
    // HEAD is GET without its content [RFC 9110 §9.3.2]. Three handlers look at the method: an event stream does not begin, an artifact
    // is not read again, and an export that is not made is not recorded. Sign-in, whose GET changes something, has no HEAD.
    exposeHeadRoutes: true,
    childLoggerFactory: (of, fields, settings) => new RequestLog(() => of.child(fields, settings)),
    genReqId: () => instruments.newToken(),
    // Every poll of every page would be two lines; refusals are answers, outages and defects are logged by refusals.ts.
    logController: new LogController({ disableRequestLogging: true }),
    routerOptions: { maxParamLength: paramCharacters },
    // An address that cannot be read meets none of our hooks.
    frameworkErrors(error, request, reply) {
      addHeaders(request, reply)
      lingerOver(request, reply)
      const answer = isDelivery(request) ? answerSender : answerFailure
      answer(error, request, reply)
    },
    return503OnClosing: false,
  })
  app.setValidatorCompiler(validatorCompiler)
  // Answers are typed by their schemas when this is compiled, and held against them by tests; nobody pays for it here.
  app.setSerializerCompiler(() => JSON.stringify)
  app.setErrorHandler((error, request, reply) =>
    isDelivery(request) ? answerSender(error, request, reply) : answerProven(error, request, reply),
  )
  letGoOfStalled(app, options.stallMs)
  const nothingThere = refusingUnknown(methodsByAddress(app))
  app.setNotFoundHandler(nothingThere)
  app.addHook('onSend', (request, reply, _payload, next) => {
    lingerOver(request, reply)
    // Whoever is answered while the process stops must not keep the socket: closing waits for it.
    if (options.drain.aborted) reply.header('connection', 'close')
    next()
  })
  admitLargeBodies(app, { drain: options.drain })
  inviteBodiesLate(app)
  const { identify } = options
  const { rates, commands } = system
  const callers =
    auth.mode === 'oidc'
      ? { arrive: arrivingBySession(auth.sessions, rates), presume: presumingBySession(auth.sessions, rates, commands) }
      : { arrive: arrivingAs(identify, rates), presume: presumingAs(identify, rates, commands) }
  guardRoutes(app, { ...options, origins: auth, ...callers })
  if (uiDirectory !== null) servePages(app, uiDirectory)
  app.addHook('onRequest', (request, reply, next) => {
    // Before the body is read, which is nobody's.
    if (request.is404) nothingThere(request, reply)
    next()
  })
  readJsonBodies(app)
  describeRoutes(app, options.version)
  const door: Door = { ...options, damaged: damageLog(log) }
  const resources = [authRoutes, agentRoutes, commandRoutes, streamRoutes, taskRoutes, taskEventRoutes, artifactRoutes]
  for (const routes of resources) app.register(routes, door)
  app.register(auditRoutes, door)
  app.register(debugRoutes, door)
  app.register(settlementRoutes, door)
  app.register(adminRoutes, door)
  app.register(reviewerRoutes, door)
  app.register(pushRoutes, door)
  app.register(openapiRoutes)
  return app
}
