/**
 * The talkative agent: A2A 1.0 over JSON-RPC on plain node:http, whose tasks say a hundred megabytes, in small events or in
 * huge ones, and go on where they were when a stream is opened again. A child process.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent } from './child.ts'

const MiB = 1024 * 1024
const sizes = { small: 1024, huge: 24 * MiB } as const
type Size = keyof typeof sizes
/** Of small events, ten thousand parts an artifact. */
const artifactBytes = 8 * MiB

let origin = ''
let totalBytes = 100 * MiB
/** A stream ends by itself behind so much: what a reader hangs up on is lost, for nobody can ask for it again. */
let streamBytes = Infinity
let tasks = 0
/** Bytes said of each task so far. */
const said = new Map<string, number>()

const card = (size: Size) => ({
  name: `Talkative agent, ${size} events`,
  description: 'Says much.',
  version: '1.0.0',
  supportedInterfaces: [{ url: `${origin}/${size}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'talk', name: 'Talk', description: 'Talks.', tags: ['bench'] }],
})

interface Asked {
  readonly id: string
  readonly method: string
  readonly params: { readonly id?: string }
}

const isOver = (id: string): boolean => (said.get(id) ?? 0) >= totalBytes
const taskOf = (id: string) => ({
  id,
  contextId: `context-${id}`,
  status: { state: isOver(id) ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_WORKING' },
})

/** Words in no order, the same each time: a letter repeated is stored in no room and no time, and prose is not. */
function prose(characters: number): string {
  const words = 'the agent said that its report on 42 orders is ready and none of them was late or lost'.split(' ')
  let [text, random] = ['', 1]
  while (text.length < characters) {
    random = (random * 48_271) % 0x7fff_ffff
    text += `${words[random % words.length]} `
  }
  return text.slice(0, characters)
}

const texts = { small: prose(sizes.small - 200), huge: prose(sizes.huge) }

/** Resolves when the reader has taken what was written, or is gone. */
const room = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })

async function talk(response: ServerResponse, size: Size, rpcId: string, id: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const say = async (result: string): Promise<void> => {
    const frame = `data: {"jsonrpc":"2.0","id":${JSON.stringify(rpcId)},"result":${result}}\n\n`
    if (!response.destroyed && !response.write(frame)) await room(response)
  }
  const ids = `"taskId":"${id}","contextId":"context-${id}"`
  await say(JSON.stringify({ task: taskOf(id) }))
  const from = said.get(id) ?? 0
  while (!isOver(id) && !response.destroyed) {
    const bytes = said.get(id) ?? 0
    if (bytes - from >= streamBytes) return void response.end()
    // An artifact shows so many parts and no more (domain/fold.ts): what is said is to be stored, and not cut.
    const nth = Math.floor(bytes / artifactBytes)
    const append = size === 'small' && Math.floor((bytes - texts.small.length) / artifactBytes) === nth
    const artifact = `"artifact":{"artifactId":"a${size === 'huge' ? bytes : nth}","parts":[{"text":"${texts[size]}"}]}`
    said.set(id, bytes + texts[size].length)
    await say(`{"artifactUpdate":{${ids},${artifact},"append":${append}}}`)
  }
  await say(`{"statusUpdate":{${ids},"status":{"state":"TASK_STATE_COMPLETED"}}}`)
  response.end()
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const size: Size = request.url?.startsWith('/huge') === true ? 'huge' : 'small'
  const json = (body: unknown): void =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  if (request.method === 'GET') return json(card(size))
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (body += chunk))
  request.once('end', () => {
    const { id, method, params } = JSON.parse(body) as Asked
    if (method === 'SubscribeToTask') return void talk(response, size, id, params.id ?? '')
    if (method === 'GetTask') return json({ jsonrpc: '2.0', id, result: taskOf(params.id ?? '') })
    json({ jsonrpc: '2.0', id, result: { task: taskOf(`${size}-${++tasks}`) } })
  })
}

const server = createServer(answer)
// The console hangs up at its limit, in the middle of an event: that is what this agent is for.
server.on('connection', (socket) => socket.on('error', () => socket.destroy()))
const listening = new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

const methods = {
  /** The cards' URLs; `bytes`: how much each task says, and on one stream. */
  open: async ({ bytes, ofStream }: { bytes: number; ofStream?: number }): Promise<Record<Size, string>> => {
    await listening
    totalBytes = bytes
    streamBytes = ofStream ?? Infinity
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { small: `${origin}/small/card.json`, huge: `${origin}/huge/card.json` }
  },
  /** Characters said of each task, in the order of the tasks. */
  said: (_: null): readonly number[] => [...said.values()],
}
export type TorrentMethods = typeof methods

answerParent(methods, () => server.closeAllConnections())
