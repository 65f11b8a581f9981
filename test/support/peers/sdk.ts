/**
 * Starts an agent built with the published SDK, 1.0 or 0.3, over one binding. Owns the card, the receipt taking in
 * front of the SDK's routers, and the listening. Does not own the turns (behaviours.ts) or the protocol (the SDK).
 */
import express, { type Express, type Request } from 'express'
import type { AgentCard as AgentCard0_3 } from 'a2a-sdk-v03'
import { listenOnLoopback, openReceiptLog, openScript, type Peer, type ReceiptLog, type Stagehand } from './peer.ts'
import { interfaceEntry, laidOver, type CardOverlay } from './card.ts'
import { operationOf } from './operations.ts'
import { routes0_3 } from './sdk-0_3.ts'
import { routes1_0 } from './sdk-1_0.ts'

export interface SdkPeerOptions {
  readonly version: '1.0' | '0.3'
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  /** Whose server it is. That of 1.x speaks 0.3 as well, and not quite as the last one of 0.3 does. By default that of the version. */
  readonly sdk?: '1.x' | '0.3'
  /** What the card says about streaming; the agent streams anyway. Default true. */
  readonly streaming?: boolean
  /**
   * Laid over the card's top level: name, skills, capabilities and so on; or made from the card and the agent's origin.
   */
  readonly card?: CardOverlay
  /** Said in the card's interface entry; 1.0 only. */
  readonly tenant?: string
  /** Appends each receipt as a JSON line, fsynced before the answer. */
  readonly receiptFile?: string
}

/** Well above any message a test sends: the SDK's own parser would answer a 100 kB body with an HTML page. */
const bodyLimitBytes = 64 * 1024 * 1024

/** Starts the agent on loopback. It answers `GET /.well-known/agent-card.json`, `/a2a/jsonrpc` or `/a2a/rest/...`. */
export async function startSdkPeer(options: SdkPeerOptions): Promise<Peer> {
  const log = openReceiptLog(options.receiptFile)
  const script = openScript()
  const app = express()
  const listening = await listenOnLoopback(app)
  const card = cardOf(options, listening.origin)
  mount(app, { card, options, log, script })
  return {
    cardUrl: `${listening.origin}/.well-known/agent-card.json`,
    origin: listening.origin,
    receipts: log.receipts,
    receiptsOf: log.receiptsOf,
    received: log.received,
    callsOf: log.callsOf,
    seen: log.seen,
    script,
    async close() {
      script.release()
      await listening.close()
      log.close()
    },
  }
}

interface Parts {
  readonly card: Record<string, unknown>
  readonly options: SdkPeerOptions
  readonly log: ReceiptLog
  readonly script: Stagehand
}

function mount(app: Express, { card, options, log, script }: Parts): void {
  app.get('/.well-known/agent-card.json', (request, response) => {
    log.note('GetAgentCard', { headers: request.headers, body: undefined })
    response.json(card)
  })
  app.use(express.json({ limit: bodyLimitBytes, type: ['application/json', 'application/a2a+json'] }))
  app.use(async (request, _response, next) => {
    await takeReceipt(request, log, script)
    next()
  })
  const routes = routesOf(card, options, script)
  if (options.binding === 'JSONRPC') app.use('/a2a/jsonrpc', routes.jsonrpc)
  else app.use('/a2a/rest', routes.rest)
}

function routesOf(card: Record<string, unknown>, options: SdkPeerOptions, script: Stagehand) {
  if (options.version === '1.0') return routes1_0(card, script)
  if (options.sdk !== '1.x') return routes0_3(card as Record<string, unknown> & AgentCard0_3, script)
  // What it goes by is a card of 1.0; the one that it shows is that of 0.3 all the same.
  const supportedInterfaces = [{ url: card['url'], protocolBinding: options.binding, protocolVersion: '0.3' }]
  return routes1_0({ ...card, supportedInterfaces }, script, { enabled: true })
}

/** Runs once the body has been read and before the SDK sees the request, so a receipt never depends on the answer. */
async function takeReceipt(request: Request, log: ReceiptLog, script: Stagehand): Promise<void> {
  const { method, messageId } = operationOf(request.method, request.path, request.body)
  log.note(method, { headers: request.headers, body: request.body })
  if (messageId === undefined) return
  log.record({ messageId, at: Date.now(), method })
  await script.gate()
}

function cardOf(
  { version, binding, streaming, card, tenant }: SdkPeerOptions,
  origin: string,
): Record<string, unknown> {
  const url = binding === 'JSONRPC' ? `${origin}/a2a/jsonrpc` : `${origin}/a2a/rest`
  const reachable =
    version === '1.0'
      ? { supportedInterfaces: [interfaceEntry(url, binding, tenant)] }
      : { protocolVersion: '0.3.0', url, preferredTransport: binding }
  const plain = {
    name: `Test agent ${version} ${binding}`,
    description: 'Acts out what the words of a message ask for.',
    version: '1.0.0',
    ...reachable,
    capabilities: { streaming: streaming ?? true, pushNotifications: false },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'act', name: 'Act', description: 'Plays a scene.', tags: ['test'], examples: ['hello', 'ask'] }],
  }
  return laidOver(plain, card, origin)
}
