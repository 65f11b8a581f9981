/**
 * The fast agent: A2A 1.0 over JSON-RPC on plain node:http, answers every message at once with a message of its own, and
 * notes when each arrived on the clock that all processes share. Under `/heavy/<KB>` it answers with a task whose stream is
 * heavy: 5 MB in events of so many thousand bytes. A child process.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setPriority } from 'node:os'
import { answerParent } from './child.ts'
import { sharedClock } from './figures.ts'

const receipts: [messageId: string, atMs: number][] = []
let origin = ''
let replies = 0

const card = (path: string) => ({
  name: 'Fast agent',
  description: 'Answers at once.',
  version: '1.0.0',
  supportedInterfaces: [{ url: `${origin}${path}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'answer', name: 'Answer', description: 'Answers.', tags: ['bench'] }],
})

interface Asked {
  readonly id: string
  readonly method: string
  readonly params: { readonly id?: string; readonly message?: { readonly messageId: string } }
}

const streamBytes = 5_000_000
/** Records as a tool returns them: parsing has to build thousands of values, as it would for an agent's real data. */
const recordsOf = (count: number): string =>
  JSON.stringify(
    Array.from({ length: count }, (_, n) => ({
      n,
      name: `record ${n}`,
      score: n / 7,
      tags: ['alpha', 'beta'],
      note: 'x'.repeat(50),
    })),
  ).slice(0, -1)

/** Some 120 bytes a record; the rest of an event is one text. */
function heavyData(eventBytes: number): string {
  const records = recordsOf(Math.floor(eventBytes / 125))
  return `${records},"${'y'.repeat(Math.max(0, eventBytes - records.length - 300))}"]`
}

async function streamHeavily(response: ServerResponse, rpcId: string, taskId: string, path: string): Promise<void> {
  const eventBytes = Number(path.split('/').at(-1)) * 1_000
  const data = heavyData(eventBytes)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const say = async (result: string): Promise<void> => {
    const frame = `data: {"jsonrpc":"2.0","id":${JSON.stringify(rpcId)},"result":${result}}\n\n`
    if (!response.write(frame)) await once(response, 'drain')
  }
  const ids = `"taskId":"${taskId}","contextId":"context-${taskId}"`
  await say(JSON.stringify({ task: taskOf(taskId) }))
  for (let n = 0; n < streamBytes / eventBytes && !response.destroyed; n++)
    await say(
      `{"artifactUpdate":{${ids},"artifact":{"artifactId":"a${n}","parts":[{"data":${data}}]},"lastChunk":true}}`,
    )
  await say(`{"statusUpdate":{${ids},"status":{"state":"TASK_STATE_COMPLETED"}}}`)
  response.end()
}

const taskOf = (id: string) => ({ id, contextId: `context-${id}`, status: { state: 'TASK_STATE_WORKING' } })

function answer(request: IncomingMessage, response: ServerResponse): void {
  const arrivedMs = sharedClock()
  const json = (body: unknown): void => {
    const text = JSON.stringify(body)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
  }
  const { url = '' } = request
  const isHeavy = url.startsWith('/heavy')
  if (request.method === 'GET') return json(card(isHeavy ? url.replace('/card.json', '') : '/a2a'))
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (body += chunk))
  request.once('end', () => {
    const { id, method, params } = JSON.parse(body) as Asked
    if (method === 'SubscribeToTask') return void streamHeavily(response, id, params.id ?? '', url)
    if (isHeavy) return json({ jsonrpc: '2.0', id, result: { task: taskOf(`heavy-${++replies}`) } })
    if (params.message) receipts.push([params.message.messageId, arrivedMs])
    const message = { messageId: `reply-${++replies}`, role: 'ROLE_AGENT', parts: [{ text: 'Done.' }] }
    json({ jsonrpc: '2.0', id, result: { message } })
  })
}

const server = createServer(answer)
const listening = new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

const methods = {
  /** The cards' URLs; of a heavy one behind `heavy` its kilobytes and `/card.json`. */
  open: async (_: null): Promise<{ fast: string; heavy: string }> => {
    await listening
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { fast: `${origin}/card.json`, heavy: `${origin}/heavy` }
  },
  /** An agent is another machine's: where it shares this one's processors, it is not what a console waits for. */
  giveWay: (_: null) => setPriority(10),
  /** What arrived since the last call. */
  receipts: (_: null) => receipts.splice(0),
}
export type AgentMethods = typeof methods

answerParent(methods, () => server.closeAllConnections())
