/**
 * Ids that an agent makes may have 512 characters: what is taken from it can be said to it again, as an answer, a cancel, a reference, a
 * message in the same conversation, and in a path.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startConsole, type TestConsole } from '../support/console.ts'
import { eitherDatabase } from '../support/databases.ts'
import { listenOnLoopback, type Listening } from '../support/peers/peer.ts'

interface Asked {
  readonly id: string
  readonly method: string
  readonly params: { readonly id?: string; readonly message?: Readonly<Record<string, unknown>> }
}

const versions = ['1.0', '0.3'] as const
const names = { send: ['SendMessage', 'message/send'], cancel: ['CancelTask', 'tasks/cancel'] } as const

/** One task in one conversation, with these ids. It asks something, and is canceled when it is told to. */
class Agent {
  readonly seen: Asked[] = []
  readonly taskId: string
  readonly contextId: string
  readonly #version: (typeof versions)[number]
  #listening: Listening | null = null
  #isCanceled = false

  constructor(version: (typeof versions)[number], length: number) {
    this.#version = version
    this.taskId = 'é'.repeat(length)
    this.contextId = 'c'.repeat(length)
  }

  async start(): Promise<this> {
    this.#listening = await listenOnLoopback((request, response) => void this.#hear(request, response))
    return this
  }

  async close(): Promise<void> {
    await this.#listening?.close()
  }

  get cardUrl(): string {
    return `${this.#listening?.origin}/card.json`
  }

  async #hear(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const answer = request.method === 'GET' ? this.#card() : this.#answer(JSON.parse(body) as Asked)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }

  #card(): object {
    const url = new URL('/rpc', this.cardUrl).href
    const common = { name: 'Long', description: 'x', version: '1', capabilities: {}, skills: [] }
    const modes = { defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] }
    return this.#version === '0.3'
      ? { ...common, ...modes, protocolVersion: '0.3.0', url, preferredTransport: 'JSONRPC' }
      : {
          ...common,
          ...modes,
          supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
        }
  }

  #answer(asked: Asked): object {
    const { id, method } = asked
    this.seen.push(asked)
    if (this.of('cancel').includes(asked)) this.#isCanceled = true
    const [state, state03] = this.#isCanceled ? ['CANCELED', 'canceled'] : ['INPUT_REQUIRED', 'input-required']
    const ids = { id: this.taskId, contextId: this.contextId }
    const task =
      this.#version === '0.3'
        ? { kind: 'task', ...ids, status: { state: state03 } }
        : { ...ids, status: { state: `TASK_STATE_${state}` } }
    const known = [...names.send, ...names.cancel, 'GetTask', 'tasks/get'].includes(method)
    if (!known) return { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }
    return { jsonrpc: '2.0', id, result: method === 'SendMessage' ? { task } : task }
  }

  of(operation: keyof typeof names): readonly Asked[] {
    const methods: readonly string[] = names[operation]
    return this.seen.filter(({ method }) => methods.includes(method))
  }
}

/** Between an agent and a person: what a column takes is the same on both. */
describe.each(eitherDatabase)('long ids on %s', (database) => {
  let house: TestConsole
  beforeAll(async () => {
    house = await startConsole({ database })
  })
  afterAll(() => house.close())

  test.each(versions.flatMap((version) => [300, 512].map((length) => [version, length] as const)))(
    'A2A %s, %i characters: answered, spoken of, spoken to in its conversation, and cancelled',
    async (version, length) => {
      const agent = await new Agent(version, length).start()
      const { taskId, contextId } = agent
      const agentId = await house.api.register(agent.cardUrl)
      const bodies = [
        { text: 'begin' },
        { text: 'answer', taskId, contextId },
        { text: 'another', contextId, config: { referenceTaskIds: [taskId] } },
      ]
      for (const body of bodies) {
        const sent = await house.api.send(agentId, body)
        expect(await house.finished(sent.commandId)).toMatchObject({ status: 'succeeded' })
      }
      expect(agent.of('send').map(({ params }) => params.message)).toMatchObject([
        {},
        { taskId, contextId },
        { contextId, referenceTaskIds: [taskId] },
      ])
      const cancelled = await house.api.post(`/api/agents/${agentId}/tasks/${encodeURIComponent(taskId)}/cancel`)
      expect(cancelled.status).toBe(200)
      expect(agent.of('cancel').map(({ params }) => params.id)).toEqual([taskId])
      const stream = await house.api.stream(`/api/agents/${agentId}/stream`, { resubscribe: true, taskId })
      expect((await stream.rest()).map(({ event }) => event)).toContain('snapshot')
      await agent.close()
    },
  )

  test('one character more is refused in words, and by a path as a task that is unknown', async () => {
    const agentId = await house.api.register('http://127.0.0.1:1/card.json')
    const taskId = 'x'.repeat(513)
    const key = { 'idempotency-key': 'k' }
    const reply = await house.api.post(`/api/agents/${agentId}/commands`, { text: 'x', taskId }, key)
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining('taskId: Too big')])
    const cancelled = await house.api.post(`/api/agents/${agentId}/tasks/${taskId}/cancel`)
    expect([cancelled.status, cancelled.text]).toEqual([404, expect.stringContaining('Task not found.')])
  })
})
