/**
 * An agent of A2A 0.3 that takes a message and breaks the connection before it answers. Real HTTP, nothing else: the SDK's
 * servers cannot misbehave so.
 */
import { listenOnLoopback } from '../support/peers/peer.ts'

export interface OldPeer {
  readonly cardUrl: string
  close(): Promise<void>
}

export async function startOldPeer(): Promise<OldPeer> {
  const listening = await listenOnLoopback((request, response) => {
    request.resume()
    if (request.method !== 'GET') return void request.on('end', () => request.socket.resetAndDestroy())
    const card = {
      protocolVersion: '0.3.0',
      name: 'Old agent',
      description: 'Takes what is said and hangs up.',
      version: '1.0.0',
      url: `${listening.origin}/`,
      preferredTransport: 'JSONRPC',
      capabilities: { streaming: true },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [],
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(card))
  })
  return { cardUrl: `${listening.origin}/.well-known/agent-card.json`, close: () => listening.close() }
}
