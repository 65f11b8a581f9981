/**
 * The HTTP floor, assembled: Fastify with our limits, the guard in front, one plugin a resource. Owns neither the system nor
 * the database, which it is given; whoever builds it listens and closes (bin/console.ts).
 */
import fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod'
import { instruments } from '../actors/system.ts'
import { Refusal } from '../domain/refusal.ts'
import { agentRoutes } from './agents.ts'
import { artifactRoutes } from './artifacts.ts'
import { authRoutes } from './auth.ts'
import { bodyLimitBytes, readJsonBodies } from './bodies.ts'
import { commandRoutes } from './commands.ts'
import { debugRoutes } from './debug.ts'
import type { Door } from './door.ts'
import { guardRoutes, type Guard } from './guard.ts'
import { pageRoutes } from './pages.ts'
import { pushRoutes } from './push-receiver.ts'
import { answerFailure } from './refusals.ts'
import { streamRoutes } from './stream.ts'
import { taskEventRoutes } from './task-events.ts'
import { taskRoutes } from './tasks.ts'

export interface ServerOptions extends Omit<Door, 'mode'>, Omit<Guard, 'origins'> {
  /** `oidc`: the one origin that changes may be sent from. */
  readonly auth: Guard['origins']
  /** The built console; null serves the API alone. */
  readonly uiDirectory: string | null
  readonly log: FastifyBaseLogger
}

/** A request that takes longer to arrive is given up, milliseconds. */
const requestTimeoutMs = 120_000
/** Agents' ids are in paths: 255 characters of four bytes, each percent-encoded. */
const paramCharacters = 255 * 4 * 3

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

export function buildServer(options: ServerOptions): FastifyInstance {
  const { auth, uiDirectory, log } = options
  const app = fastify({
    loggerInstance: log,
    bodyLimit: bodyLimitBytes,
    requestTimeout: requestTimeoutMs,
    // HEAD would run the handler of GET, and some of ours are streams.
    exposeHeadRoutes: false,
    genReqId: () => instruments.newToken(),
    // Every poll of every page would be two lines; refusals are answers, outages and defects are logged by refusals.ts.
    logController: new LogController({ disableRequestLogging: true }),
    routerOptions: { maxParamLength: paramCharacters },
    frameworkErrors: answerFailure,
    return503OnClosing: false,
  })
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.setErrorHandler(answerFailure)
  app.setNotFoundHandler(() => {
    throw new Refusal('route.unknown')
  })
  app.addHook('onSend', (_request, reply, _payload, next) => {
    // Whoever is answered while the process stops must not keep the socket: closing waits for it.
    if (options.drain.aborted) reply.header('connection', 'close')
    next()
  })
  inviteBodiesLate(app)
  guardRoutes(app, { ...options, origins: auth })
  readJsonBodies(app)
  const door: Door = { ...options, mode: auth.mode }
  const resources = [authRoutes, agentRoutes, commandRoutes, streamRoutes, taskRoutes, taskEventRoutes, artifactRoutes]
  for (const routes of resources) app.register(routes, door)
  app.register(debugRoutes, door)
  app.register(pushRoutes, door)
  if (uiDirectory !== null) app.register(pageRoutes, { directory: uiDirectory })
  return app
}
