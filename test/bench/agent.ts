/**
 * The fast agent: A2A 1.0 over JSON-RPC on plain node:http, answers every message at once with a message of its own, and
 * notes when each arrived on the clock that all processes share. `/heavy` streams are for streams.ts. A child process.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent } from './child.ts'
import { sharedClock } from './figures.ts'

const receipts: [messageId: string, atMs: number][] = []
let origin = ''
let replies = 0

const card = () => ({
  name: 'Fast agent',
  description: 'Answers at once.',
  version: '1.0.0',
  supportedInterfaces: [{ url: `${origin}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'answer', name: 'Answer', description: 'Answers.', tags: ['bench'] }],
})

interface Asked {
  readonly id: string
  readonly method: string
  readonly params: { readonly message?: { readonly messageId: string } }
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const arrivedMs = sharedClock()
  const json = (body: unknown): void => {
    const text = JSON.stringify(body)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
  }
  if (request.method === 'GET') return json(card())
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (body += chunk))
  request.once('end', () => {
    const { id, params } = JSON.parse(body) as Asked
    if (params.message) receipts.push([params.message.messageId, arrivedMs])
    const message = { messageId: `reply-${++replies}`, role: 'ROLE_AGENT', parts: [{ text: 'Done.' }] }
    json({ jsonrpc: '2.0', id, result: { message } })
  })
}

const server = createServer(answer)
const listening = new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

const methods = {
  /** The card's URL. */
  open: async (_: null): Promise<string> => {
    await listening
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return `${origin}/.well-known/agent-card.json`
  },
  /** What arrived since the last call. */
  receipts: (_: null) => receipts.splice(0),
}
export type AgentMethods = typeof methods

answerParent(methods, () => server.closeAllConnections())
