/**
 * Answers that overtake nothing: while an agent's answer is on its way, its stream goes on to tell what the task makes. What was told since is
 * not taken back, neither on the page meanwhile nor by a rebuild.
 */
import type { ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { rebuildTask } from '../../actors/rebuild.ts'
import type { TaskView } from '../../domain/task.ts'
import { eitherDatabase } from '../support/databases.ts'
import { interfaceEntry } from '../support/peers/card.ts'
import { operationOf, recordOf } from '../support/peers/operations.ts'
import { listenOnLoopback } from '../support/peers/peer.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { Scopes } from './reconciliation-turns.ts'

const cardOf = (origin: string, streaming: boolean): object => ({
  name: 'Agent that answers late',
  description: 'Shows its task as it was when it was asked.',
  version: '1.0.0',
  supportedInterfaces: [interfaceEntry(`${origin}/rpc`, 'JSONRPC', undefined)],
  capabilities: { streaming },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'make', name: 'Make', description: 'Makes.', tags: ['test'] }],
})

/** Makes one artifact, chunk by chunk, and keeps the answers to an operation back until it is told to give them. */
async function startLateAgent({ streaming = true } = {}) {
  const chunks: string[] = []
  let state = 'TASK_STATE_WORKING'
  let late: string | null = null
  const kept: (() => void)[] = []
  const open = new Set<{ readonly response: ServerResponse; readonly id: unknown }>()
  const of = { taskId: 'made', contextId: 'c' }
  const shown = (): object => ({
    id: of.taskId,
    contextId: of.contextId,
    status: { state, timestamp: '2026-11-26T00:00:00.000Z' },
    ...(chunks.length > 0 && { artifacts: [{ artifactId: 'a', parts: chunks.map((text) => ({ text })) }] }),
  })
  const tell = (id: unknown, response: ServerResponse, result: object): void =>
    void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
  const answer = (body: unknown, response: ServerResponse): void => {
    const { id } = recordOf(body)
    const { method } = operationOf('POST', '/', body)
    if (method === 'SubscribeToTask') {
      open.add({ response, id })
      response.on('close', () => open.clear())
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return tell(id, response, { task: shown() })
    }
    const result = method === 'SendMessage' ? { task: shown() } : shown()
    const text = JSON.stringify({ jsonrpc: '2.0', id, result })
    const give = (): void => void response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    if (method === late) kept.push(give)
    else give()
  }
  const listening = await listenOnLoopback((request, response) => {
    if (request.method === 'GET')
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(cardOf(listening.origin, streaming)))
    void json(request).then(
      (body) => answer(body, response),
      () => response.destroy(),
    )
  })
  return {
    cardUrl: `${listening.origin}/card.json`,
    isFollowed: () => open.size > 0,
    /** How many answers are kept back. */
    asked: () => kept.length,
    /** What tells of it. */
    make(text: string): () => void {
      const isFirst = chunks.push(text) === 1
      const artifactUpdate = { ...of, artifact: { artifactId: 'a', parts: [{ text }] }, append: !isFirst }
      return () => {
        for (const { id, response } of open) tell(id, response, { artifactUpdate })
      }
    },
    keepBack: (operation: string): void => void (late = operation),
    /** All of them, or so many. */
    give(count = Infinity): void {
      if (count === Infinity) late = null
      for (const each of kept.splice(0, count)) each()
    },
    end(): void {
      state = 'TASK_STATE_COMPLETED'
      for (const { id, response } of open) {
        tell(id, response, { statusUpdate: { ...of, status: { state, timestamp: '2026-11-26T00:00:09.000Z' } } })
        response.end()
      }
    },
    close: () => listening.close(),
  }
}

describe.each(eitherDatabase)('an answer that is overtaken by its stream, on %s', (kind) => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem(kind)
  })
  afterAll(() => running.close())

  const texts = (view: TaskView) => view.artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))

  /** Of two chunks, which are shown. */
  async function begun() {
    const agent = await startLateAgent()
    onTestFinished(() => agent.close())
    const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'Make it.' })).id)
    const localId = result?.localId ?? ''
    await expect.poll(agent.isFollowed).toBe(true)
    const shows = (n: number) => running.task(localId, (view) => texts(view).length === n)
    for (const text of ['one', 'two']) agent.make(text)()
    await shows(2)
    return { agent, agentId, localId, taskId: result?.taskId ?? '', shows }
  }

  it('brings no chunk twice: an answer to what was said is ahead of the stream', async () => {
    const { agent, agentId, localId, taskId, shows } = await begun()
    const tellThird = agent.make('three')
    await running.finished((await running.send(agentId, { text: 'More.', taskId })).id)
    tellThird()
    agent.make('four')()
    await shows(4)
    const all = ['one', 'two', 'three', 'four']
    expect(texts(await running.task(localId, (view) => texts(view).at(-1) === 'four'))).toEqual(all)
    await rebuildTask(running.db.pool, running.viewer.organizationId, localId)
    expect(texts(await running.task(localId, () => true))).toEqual(all)
  })

  it('counts where only another answer came between, which told nothing of what it shows', async () => {
    const agent = await startLateAgent({ streaming: false })
    onTestFinished(() => agent.close())
    const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
    agent.make('one')
    const { result } = await running.finished((await running.send(agentId, { text: 'Make it.' })).id)
    const { localId = '', taskId = '' } = result ?? {}
    agent.keepBack('SendMessage')
    const first = await running.send(agentId, { text: 'First.', taskId: taskId ?? '' })
    await expect.poll(agent.asked).toBe(1)
    agent.make('two')
    const second = await running.send(agentId, { text: 'Second.', taskId: taskId ?? '' })
    await expect.poll(agent.asked).toBe(2)
    agent.give(1)
    await running.finished(first.id)
    agent.give()
    await running.finished(second.id)
    expect(texts(await running.task(localId, () => true))).toEqual(['one', 'two'])
  })

  it.each(['SendMessage', 'GetTask'])('takes nothing back: %s', async (operation) => {
    const { agent, agentId, localId, taskId, shows } = await begun()
    agent.keepBack(operation)
    const scopes = new Scopes(running)
    const asking = operation === 'GetTask' ? scopes.begin(agentId) : running.send(agentId, { text: 'More.', taskId })
    await expect.poll(agent.asked).toBe(1)
    for (const text of ['three', 'four']) agent.make(text)()
    const before = await shows(4)
    agent.give()
    const asked = await asking
    if (typeof asked === 'number')
      await expect.poll(async () => (await scopes.row(agentId))?.value).not.toBe('checking')
    else await running.finished(asked.id)
    agent.make('five')()
    const all = ['one', 'two', 'three', 'four', 'five']
    expect(texts(before)).toEqual(all.slice(0, 4))
    expect(texts(await running.task(localId, (view) => texts(view).at(-1) === 'five'))).toEqual(all)
    await rebuildTask(running.db.pool, running.viewer.organizationId, localId)
    expect(texts(await running.task(localId, () => true))).toEqual(all)
    agent.end()
    expect(texts(await running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED'))).toEqual(all)
  })
})
