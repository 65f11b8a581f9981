/**
 * Several agents behind one origin, as a server or a gateway of many has them: one that does not answer keeps its own requests, and
 * never the way to the others, nor to its own card. The server is a real listener that answers when a test says so.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { eitherDatabase } from '../support/databases.ts'
import { freshSystem } from '../support/system.ts'
import { web } from './listeners.ts'

/** For `expect.poll`: a bound for a busy machine, well under the deadline of what hangs. */
const patience = { timeout: 30_000, interval: 10 }

const cardOf = (url: string) => ({
  name: url,
  description: 'One of several.',
  version: '1',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: false, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
})

/** A server of agents, by path. `hangs`: what it never answers; everything else it does at once. */
async function serverOf(hangs: (path: string, method: string) => boolean) {
  const held: ServerResponse[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = `${request.url}`
    const base = `http://${request.headers.host}`
    response.setHeader('content-type', 'application/json')
    if (path.endsWith('.json')) {
      const agent = path.slice(0, path.indexOf('/', 1))
      return void response.end(JSON.stringify(cardOf(base + agent)))
    }
    const { id, method, params } = JSON.parse(await text(request)) as {
      readonly id: string
      readonly method: string
      readonly params: { readonly id?: string; readonly message?: { readonly messageId: string } }
    }
    if (hangs(path, method)) return void held.push(response)
    const name = params.id ?? `task of ${params.message?.messageId}`
    const task = { id: name, contextId: 'context', status: { state: 'TASK_STATE_WORKING' } }
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: method === 'SendMessage' ? { task } : task }))
  }
  const listen: RequestListener = (request, response) => void answer(request, response)
  const url = await web(listen)
  return { held, cardUrl: (agent: string) => `${url}${agent}/.well-known/agent-card.json` }
}

it.each(eitherDatabase)(
  'an agent with all its deliveries hanging keeps no other of its origin waiting, on %s',
  async (kind) => {
    const { held, cardUrl } = await serverOf((path) => path === '/mute')
    const running = await freshSystem(kind)
    try {
      const { id: mute } = await running.system.agents.register(running.viewer, cardUrl('mute'))
      const { id: prompt } = await running.system.agents.register(running.viewer, cardUrl('prompt'))
      // As many as one agent may have under way.
      await Promise.all(Array.from({ length: 64 }, () => running.send(mute, { text: 'hello' })))
      await expect.poll(() => held.length, patience).toBe(64)
      const { id } = await running.send(prompt, { text: 'hello' })
      expect(await running.finished(id)).toMatchObject({ status: 'succeeded', error: null })
    } finally {
      for (const response of held) response.destroy()
      await running.close()
    }
  },
)

it.each(eitherDatabase)('reads that hang keep no card of their origin from being found, on %s', async (kind) => {
  const { held, cardUrl } = await serverOf((path, method) => path === '/mute' && method === 'GetTask')
  const running = await freshSystem(kind)
  try {
    const { id: mute } = await running.system.agents.register(running.viewer, cardUrl('mute'))
    const { id: prompt } = await running.system.agents.register(running.viewer, cardUrl('prompt'))
    const sent = await Promise.all(Array.from({ length: 8 }, () => running.send(mute, { text: 'hello' })))
    for (const { id } of sent) await running.finished(id)
    // Each of its tasks is read, by as many as read at once.
    await expect.poll(() => held.length, patience).toBe(8)
    const { id } = await running.send(prompt, { text: 'hello' })
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded', error: null })
  } finally {
    for (const response of held) response.destroy()
    await running.close()
  }
})
