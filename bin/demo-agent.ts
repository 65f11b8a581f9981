/**
 * The demo agents: four real A2A 1.0 agents on one loopback port, for a first look and for tests. Owns the server and
 * the choice of variants; each agent's plot is in demo-agents/. Does not register them anywhere (launcher-demo.ts
 * does).
 */
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import { a2uiAgent } from './demo-agents/a2ui.ts'
import { approverAgent } from './demo-agents/approver.ts'
import { formAgent } from './demo-agents/form.ts'
import { serveAgent } from './demo-agents/serve.ts'
import { showcaseAgent } from './demo-agents/showcase.ts'
import type { DemoAgent, Pace } from './demo-agents/turn.ts'
import { isLoopbackHost } from '../domain/loopback.ts'

const variants = ['showcase', 'form', 'approver', 'a2ui'] as const
export type Variant = (typeof variants)[number]

export interface DemoOptions {
  /** 0 lets the system choose. */
  readonly port: number
  /** The host of the extensions' URIs, which are names and never fetched. */
  readonly extensionHost?: string
  readonly pace?: Pace
}

export interface DemoAgents {
  readonly port: number
  readonly cardUrls: Readonly<Record<Variant, string>>
  /** Cancels what the agents work on and closes every connection. */
  close(): Promise<void>
}

/** Comfortable to watch; tests go faster. */
const usualPace: Pace = { chunkMs: 90, stepMs: 1_000 }
/** Enough for a few files in a message, far from enough to fill the memory of a laptop. */
const bodyLimitBytes = 8 * 1024 * 1024
const connectionsLimit = 256

/** Starts all four on 127.0.0.1. Rejects with a sentence when the port is taken. */
export async function startDemoAgents(options: DemoOptions): Promise<DemoAgents> {
  const host = options.extensionHost ?? 'signalbox.example'
  const agents: Record<Variant, DemoAgent> = {
    showcase: showcaseAgent(options.pace ?? usualPace),
    form: formAgent(host),
    approver: approverAgent(host),
    a2ui: a2uiAgent(),
  }
  const app = newServer()
  let origin = ''
  const books = variants.map((variant) => serveAgent(app, variant, agents[variant], () => origin))
  try {
    await app.listen({ host: '127.0.0.1', port: options.port })
  } catch (error) {
    await app.close()
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')
      throw new Error(`Port ${options.port} is in use; give the demo agents another one.`, { cause: error })
    throw error
  }
  const { port } = app.server.address() as AddressInfo
  origin = `http://127.0.0.1:${port}`
  const cardUrl = (variant: Variant): string => `${origin}/${variant}/card.json`
  return {
    port,
    cardUrls: {
      showcase: cardUrl('showcase'),
      form: cardUrl('form'),
      approver: cardUrl('approver'),
      a2ui: cardUrl('a2ui'),
    },
    async close() {
      await Promise.all(books.map((book) => book.close()))
      await app.close()
    },
  }
}

function newServer(): FastifyInstance {
  const app = Fastify({
    bodyLimit: bodyLimitBytes,
    forceCloseConnections: true,
    logger: false,
    // Ids of tasks are part of the path; the codec reads them from the address as it came.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 2_048 },
  })
  app.server.maxConnections = connectionsLimit
  app.removeAllContentTypeParsers()
  // Only JSON: a web page can send text/plain across origins unasked, JSON it cannot.
  app.addContentTypeParser(
    ['application/json', 'application/a2a+json'],
    { parseAs: 'string' },
    (_request, body, done) => done(null, body),
  )
  // Against DNS rebinding: a page whose name was pointed at 127.0.0.1 still says its own name here.
  app.addHook('onRequest', async (request, reply) => {
    if (!isLoopbackHost(request.hostname)) await reply.code(403).send({ error: { message: 'Loopback only.' } })
  })
  return app
}

/** The command `signalbox demo-agent [port]`: prints the card URLs and serves until SIGINT or SIGTERM. */
export async function runDemoAgent(options: DemoOptions): Promise<void> {
  const { promise: asked, resolve: stop } = Promise.withResolvers<void>()
  // Before the first line: whoever reads it may already want us to end, and unheard, the signal would kill us half-way.
  process.once('SIGINT', () => stop())
  process.once('SIGTERM', () => stop())
  const agents = await startDemoAgents(options)
  for (const variant of variants) process.stdout.write(`${agents.cardUrls[variant]}\n`)
  await asked
  await agents.close()
}
