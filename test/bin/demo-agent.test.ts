/**
 * The demo agents, judged by the published SDK clients: 1.0 over both bindings, and the last 0.3 one against the same
 * servers.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get as httpGet } from 'node:http'
import { createInterface } from 'node:readline'
import {
  ClientFactory as ClientFactory0_3,
  JsonRpcTransportFactory as JsonRpcTransportFactory0_3,
  RestTransportFactory as RestTransportFactory0_3,
} from 'a2a-sdk-v03/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startDemoAgents, type DemoAgents } from '../../bin/demo-agent.ts'
import { TaskBook } from '../../bin/demo-agents/tasks.ts'
import type { DemoAgent } from '../../bin/demo-agents/turn.ts'
import { openSdkClient, type Json, type SdkClient, type Words } from '../support/peers/client.ts'

const traceUri = 'urn:x-a2a:trace:v1'
let agents: DemoAgents
let sent = 0
const say = (text: string, more: Partial<Words> = {}): Words => ({ messageId: `m-${(sent += 1)}`, text, ...more })
/** A path into plain JSON: `at(task, 'status', 'state')`. */
const at = (value: unknown, ...path: (string | number)[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value)
const stateOf = (task: unknown): unknown => at(task, 'status', 'state')
const idOf = (task: unknown): string => String(at(task, 'id'))

async function all(events: AsyncIterable<Json>): Promise<Json[]> {
  const seen: Json[] = []
  for await (const event of events) seen.push(event)
  return seen
}

beforeAll(async () => {
  agents = await startDemoAgents({ port: 0, pace: { chunkMs: 1, stepMs: 8 } })
})
afterAll(() => agents.close())

describe.each(['JSONRPC', 'HTTP+JSON'] as const)('the showcase agent over %s', (binding) => {
  let client: SdkClient
  beforeAll(async () => {
    client = await openSdkClient(agents.cardUrls.showcase, binding)
  })

  it('answers any message with streamed words, a table and a question, and a reply with files of every kind', async () => {
    const events = await all(client.stream(say('What leaves this morning?')))
    expect(Object.keys(events[0] ?? {})).toEqual(['task'])
    expect(at(events.at(-1), 'statusUpdate', 'status', 'state')).toBe('TASK_STATE_INPUT_REQUIRED')
    const chunks = events.filter((event) => at(event, 'artifactUpdate', 'artifact', 'artifactId') === 'answer')
    expect(chunks.length).toBeGreaterThan(10)
    const taskId = idOf(at(events[0], 'task'))
    const streamed = chunks.map((chunk) => at(chunk, 'artifactUpdate', 'artifact', 'parts', 0, 'text')).join('')
    const kept = at(await client.get(taskId), 'artifacts', 0, 'parts')
    expect(kept).toEqual([expect.objectContaining({ text: streamed })])

    const { task } = await client.send(say('yes', { taskId }))
    expect(stateOf(task)).toBe('TASK_STATE_COMPLETED')
    const parts = (at(task, 'artifacts') as Json[]).flatMap((artifact) => at(artifact, 'parts') as Json[])
    for (const content of ['text', 'data', 'raw', 'url']) expect(parts.some((part) => content in part)).toBe(true)
    const png = Buffer.from(String(parts.find((part) => part['filename'] === 'tracks.png')?.['raw']), 'base64')
    expect(png.subarray(1, 4).toString()).toBe('PNG')
    const said = (at(task, 'history') as Json[]).map((message) => at(message, 'parts', 0, 'text'))
    expect(said).toContain('Shall I draw the track diagram as well? (yes or no)')
  })

  it('is cancelled in the middle of slow work, once and again', async () => {
    const seen: Json[] = []
    let taskId = ''
    for await (const event of client.stream(say('count to 100'))) {
      seen.push(event)
      taskId ||= String(at(event, 'task', 'id'))
      if (seen.length === 5) await client.cancel(taskId)
    }
    expect(at(seen.at(-1), 'statusUpdate', 'status', 'state')).toBe('TASK_STATE_CANCELED')
    expect(stateOf(await client.cancel(taskId))).toBe('TASK_STATE_CANCELED')
    expect(stateOf(await client.get(taskId))).toBe('TASK_STATE_CANCELED')
  })

  it('works on when the client leaves, and tells a subscriber the rest', async () => {
    let taskId = ''
    for await (const event of client.stream(say('count to 20'))) {
      taskId ||= String(at(event, 'task', 'id'))
      if ('artifactUpdate' in event) break
    }
    const [first, ...rest] = await all(client.subscribe(taskId))
    const before = String(at(first, 'task', 'artifacts', 0, 'parts', 0, 'text') ?? '')
    const after = rest.map((event) => at(event, 'artifactUpdate', 'artifact', 'parts', 0, 'text') ?? '').join('')
    expect((before + after).match(/\d+/g)).toEqual(Array.from({ length: 20 }, (_, i) => String(i + 1)))
    expect(stateOf(await client.get(taskId))).toBe('TASK_STATE_COMPLETED')
  })

  it.each([
    ['hello', 'TASK_STATE_COMPLETED'],
    ['ask', 'TASK_STATE_INPUT_REQUIRED'],
    ['files', 'TASK_STATE_COMPLETED'],
    ['fail', 'TASK_STATE_FAILED'],
    ['reject', 'TASK_STATE_REJECTED'],
    ['auth', 'TASK_STATE_AUTH_REQUIRED'],
  ])('ends "%s" in %s', async (text, state) => {
    expect(stateOf((await client.send(say(text)))['task'])).toBe(state)
  })

  it('declines what A2A says to decline', async () => {
    await expect(client.get('nobody')).rejects.toThrow('There is no such task.')
    await expect(client.cancel('nobody')).rejects.toThrow('There is no such task.')
    const { task } = await client.send(say('hello'))
    const taskId = idOf(task)
    await expect(client.cancel(taskId)).rejects.toThrow('already ended')
    await expect(client.send(say('more', { taskId }))).rejects.toThrow('The task has ended')
    await expect(all(client.subscribe(taskId))).rejects.toThrow('nothing to subscribe to')
    const waiting = idOf((await client.send(say('ask')))['task'])
    await expect(client.send(say('2', { taskId: waiting, contextId: 'another' }))).rejects.toThrow('not the context')
    const busy = await client.send(say('count to 100', { returnImmediately: true }))
    await expect(client.send(say('2', { taskId: idOf(busy['task']) }))).rejects.toThrow('being worked on')
    await client.cancel(idOf(busy['task']))
  })

  it('lists tasks newest first, page by page, without repeating one', async () => {
    const contextId = `context-${binding}`
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push(idOf((await client.send(say('hello', { contextId })))['task']))
    const seen: string[] = []
    let pageToken = ''
    for (let page = 0; page < 4; page++) {
      const answer = await client.list({ contextId, pageSize: 2, pageToken })
      expect(answer['totalSize']).toBe(5)
      seen.push(...(at(answer, 'tasks') as Json[]).map(idOf))
      pageToken = String(answer['nextPageToken'] ?? '')
      if (pageToken === '') break
    }
    expect(seen.toSorted()).toEqual(ids.toSorted())
    expect(await client.list({ contextId, status: 'TASK_STATE_FAILED' })).not.toHaveProperty('tasks.0')
    await expect(client.list({ pageToken: 'bm9uc2Vuc2U' })).rejects.toThrow('pageToken')
  })

  it('gives as much history as was asked for', async () => {
    const { task } = await client.send(say('ask', { historyLength: 0 }))
    expect(at(task, 'history')).toBeUndefined()
    await client.send(say('2', { taskId: idOf(task) }))
    expect(at(await client.get(idOf(task), 1), 'history', 'length')).toBe(1)
    expect(at(await client.get(idOf(task)), 'history', 'length')).toBeGreaterThan(2)
  })

  it('sends traces only to a client that asked for them', async () => {
    const traces = (events: readonly Json[]): number =>
      events.filter((event) => JSON.stringify(event).includes('"traceType"')).length
    expect(traces(await all(client.stream(say('trains'))))).toBe(0)
    expect(traces(await all(client.stream(say('trains', { extensions: [traceUri] }))))).toBe(6)
  })
})

describe.each(['JSONRPC', 'HTTP+JSON'] as const)('the agents with extensions over %s', (binding) => {
  const open = (variant: 'form' | 'approver' | 'a2ui') => openSdkClient(agents.cardUrls[variant], binding)
  const partOf = (task: unknown): unknown => at(task, 'status', 'message', 'parts', 1)

  it('the form agent asks with a form and shows the values', async () => {
    const client = await open('form')
    const { task } = await client.send(say('a seat, please'))
    expect(partOf(task)).toMatchObject({
      mediaType: 'application/vnd.console.form+json',
      data: { schema: { type: 'object', properties: { seats: { type: 'integer' } } } },
    })
    expect(at(task, 'status', 'message', 'extensions', 0)).toBe('https://signalbox.example/console/structured-form/v1')
    const values = { name: 'Ada', coach: 'quiet', seats: 2 }
    const parts = [{ data: values, mediaType: 'application/json' }]
    const done = await client.send(say('', { taskId: idOf(task), parts }))
    expect(stateOf(done['task'])).toBe('TASK_STATE_COMPLETED')
    expect(at(done, 'task', 'artifacts', 0, 'parts', 1, 'data')).toEqual(values)
    const started = await client.send(say('', { parts }))
    expect(stateOf(started['task'])).toBe('TASK_STATE_COMPLETED')
  })

  it('the approver acts on exactly what was approved, and on nothing else', async () => {
    const client = await open('approver')
    const text = 'Dispatch the 08:15 to Harbour from platform 2.'
    const decision = { train: '08:15', platform: 2, section: 'north junction' }
    // Computed outside of this repository: sha256 of the canonical JSON of {kind, text, data}.
    const revisionDigest = 'f51731cc7fbb2923aa7d2a1860e590e17e54acdd70b92d790c89fa1a8c043c6d'
    const ask = async (): Promise<string> => {
      const { task } = await client.send(say('Dispatch it'))
      expect(partOf(task)).toMatchObject({
        mediaType: 'application/vnd.console.approval-request+json',
        data: { risk: 'high', action: { kind: 'send_message', text, data: decision } },
      })
      return idOf(task)
    }
    const reply = async (metadata: unknown) => (await client.send(say(text, { taskId: await ask(), metadata })))['task']
    const approved = await reply({ decision, approval: { revision: 1, revisionDigest } })
    expect([stateOf(approved), at(approved, 'artifacts', 0, 'parts', 0, 'data', 'edited')]).toEqual([
      'TASK_STATE_COMPLETED',
      false,
    ])
    const forged = await reply({ decision: { ...decision, platform: 3 }, approval: { revision: 1, revisionDigest } })
    expect(stateOf(forged)).toBe('TASK_STATE_FAILED')
    const plain = await reply(undefined)
    expect([stateOf(plain), at(plain, 'artifacts')]).toEqual(['TASK_STATE_COMPLETED', undefined])
  })

  it('the A2UI agent shows a surface, updates it and reacts to its button', async () => {
    const client = await open('a2ui')
    const { task } = await client.send(say('Show me the board'))
    expect(partOf(task)).toMatchObject({
      mediaType: 'application/json+a2ui',
      metadata: { mimeType: 'application/json+a2ui' },
      data: [
        { version: 'v0.9', createSurface: { surfaceId: 'departure-board' } },
        { version: 'v0.9', updateComponents: {} },
        { version: 'v0.9', updateDataModel: {} },
      ],
    })
    const click = (name: string, context: unknown) => [
      { data: [{ version: 'v0.9', action: { name, surfaceId: 'departure-board', sourceComponentId: name, context } }] },
    ]
    const later = await client.send(say('', { taskId: idOf(task), parts: click('later', {}) }))
    expect(stateOf(later['task'])).toBe('TASK_STATE_INPUT_REQUIRED')
    const bought = await client.send(say('', { taskId: idOf(task), parts: click('buy', { seats: 2 }) }))
    expect(stateOf(bought['task'])).toBe('TASK_STATE_COMPLETED')
    expect(at(bought, 'task', 'artifacts', 0, 'parts', 0, 'data')).toEqual({ seats: 2 })
  })
})

describe.each(['JSONRPC', 'HTTP+JSON'] as const)('a 0.3 client over %s', (binding) => {
  it('finds the agent by its card and is served', async () => {
    const transports = [new JsonRpcTransportFactory0_3(), new RestTransportFactory0_3()]
    const factory = new ClientFactory0_3({ transports, preferredTransports: [binding] })
    const client = await factory.createFromUrl(agents.cardUrls.showcase, '')
    const message = (text: string, taskId?: string) => ({
      message: {
        kind: 'message' as const,
        messageId: `old-${(sent += 1)}`,
        role: 'user' as const,
        parts: [{ kind: 'text' as const, text }],
        ...(taskId === undefined ? {} : { taskId }),
      },
    })
    const asked = await client.sendMessage(message('ask'))
    expect(asked).toMatchObject({
      kind: 'task',
      status: { state: 'input-required', message: { parts: [{ text: expect.stringContaining('Which platform') }] } },
    })
    const done = await client.sendMessage(message('2', idOf(asked)))
    expect(done).toMatchObject({ kind: 'task', status: { state: 'completed' } })
    expect(await client.getTask({ id: idOf(asked) })).toMatchObject({
      id: idOf(asked),
      artifacts: [{ name: 'Platform' }],
    })
    const kinds: string[] = []
    for await (const event of client.sendMessageStream(message('files'))) kinds.push(event.kind)
    expect([kinds[0], kinds.at(-1)]).toEqual(['task', 'status-update'])
    expect(kinds.filter((kind) => kind === 'artifact-update')).toHaveLength(4)
    await expect(client.getTask({ id: 'nobody' })).rejects.toThrow(/no such task|not found/i)
  })
})

describe('the server of the demo agents', () => {
  it('serves cards that name both bindings, with an ETag', async () => {
    for (const cardUrl of Object.values(agents.cardUrls)) {
      const response = await fetch(cardUrl)
      const card = (await response.json()) as Json
      expect(at(card, 'supportedInterfaces', 'length')).toBe(2)
      expect(at(card, 'skills', 0, 'examples', 0)).toBeTypeOf('string')
      const again = await fetch(cardUrl, { headers: { 'if-none-match': response.headers.get('etag') ?? '' } })
      expect(again.status).toBe(304)
    }
  })

  it('answers nobody who calls it by another name, and no plain text', async () => {
    const url = new URL(agents.cardUrls.showcase)
    const request = httpGet(url, { headers: { host: 'rebound.example' } })
    const [response] = (await once(request, 'response')) as [{ statusCode: number; resume(): void }]
    response.resume()
    expect(response.statusCode).toBe(403)
    const rpc = `${url.origin}/showcase/a2a/jsonrpc`
    const plain = await fetch(rpc, { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } })
    expect(plain.status).toBe(415)
  })

  it('says so when the port is taken', async () => {
    await expect(startDemoAgents({ port: agents.port })).rejects.toThrow(`Port ${agents.port} is in use`)
  })

  it('runs from the command line until it is told to stop', async () => {
    const code = `const { runDemoAgent } = await import('./bin/demo-agent.ts'); await runDemoAgent({ port: 0 })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
    const lines: string[] = []
    for await (const line of createInterface(child.stdout)) {
      lines.push(line)
      if (lines.length === 4) break
    }
    expect(lines.map((line) => new URL(line).pathname)).toEqual([
      '/showcase/card.json',
      '/form/card.json',
      '/approver/card.json',
      '/a2ui/card.json',
    ])
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })
})

describe('the tasks of a demo agent', () => {
  const agent: DemoAgent = {
    name: 'Test',
    description: '',
    skills: [],
    extensions: [],
    outputModes: [],
    play: (turn) => turn.settle('COMPLETED'),
  }
  const ask = (text: string) => ({
    message: { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text }] },
    extensions: new Set<string>(),
  })

  it('are at most a thousand: the least recently used is forgotten', async () => {
    const book = new TaskBook(agent)
    const first = book.send(ask('first'))
    const second = book.send(ask('second'))
    await Promise.all([first.played, second.played])
    for (let i = 0; i < 999; i++) {
      book.get(first.task.id)
      await book.send(ask('more')).played
    }
    expect(book.all()).toHaveLength(1_000)
    expect(book.get(first.task.id).id).toBe(first.task.id)
    expect(() => book.get(second.task.id)).toThrow('There is no such task.')
  })

  it('are at most ten megabytes together', async () => {
    const book = new TaskBook(agent)
    for (let i = 0; i < 12; i++) await book.send(ask('x'.repeat(1024 * 1024))).played
    expect(book.all().length).toBeLessThan(10)
  })
})
