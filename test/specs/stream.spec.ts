/** The event stream of one task: what was committed, in order, for as long as somebody watches and something can come. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { commandErrors } from '../../domain/command.ts'
import { TaskView } from '../../domain/task.ts'
import type { Client, StreamedEvent } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const Meta = z.strictObject({ position: z.number(), source: z.string(), receivedAt: z.iso.datetime() })
const Persisted = z.strictObject({ localId: z.guid(), taskId: z.string().nullable(), tenant: z.string() })
const End = z.strictObject({ sessionId: z.string(), requestId: z.string() })

const names = (events: readonly StreamedEvent[]): string[] => events.map(({ event }) => event)
const viewsIn = (events: readonly StreamedEvent[]): TaskView[] =>
  events.filter(({ event }) => event === 'snapshot').map(({ data }) => TaskView.parse(data))
const metasIn = (events: readonly StreamedEvent[]): z.infer<typeof Meta>[] =>
  events.filter(({ event }) => event === 'meta').map(({ data }) => Meta.parse(data))
const lastView = (events: readonly StreamedEvent[]): TaskView | undefined => viewsIn(events).at(-1)

describe.each(bothDatabases)('streams on %s', (database) => {
  let house: TestConsole
  let api: Client
  let peer: RawPeer
  let path: string
  beforeAll(async () => {
    house = await startConsole({ database })
    api = house.api
    peer = await startRawPeer()
    path = `/api/agents/${await api.register(peer.cardUrl)}/stream`
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  test('a send: accepted, persisted, snapshot; each event behind its meta; end when the task finishes', async () => {
    const messageId = randomUUID()
    const stream = await api.stream(path, { text: 'stream 5', messageId })
    expect(stream.response.status).toBe(200)
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream')
    expect(stream.response.headers.get('cache-control')).toBe('no-store, no-transform')
    const events = await stream.rest()
    expect(names(events).slice(0, 3)).toEqual(['accepted', 'persisted', 'snapshot'])
    expect(names(events).at(-1)).toBe('end')
    expect(names(events).filter((name) => name === 'end')).toHaveLength(1)

    const view = lastView(events)
    expect(view).toMatchObject({ state: 'TASK_STATE_COMPLETED', artifacts: [{ name: 'answer' }] })
    expect(view?.artifacts[0]?.parts.map((part) => part.value)).toEqual([1, 2, 3, 4, 5].map((n) => `chunk ${n} `))
    expect(Persisted.parse(events[1]?.data)).toEqual({ localId: view?.localId, taskId: view?.taskId, tenant: '' })
    expect(End.parse(events.at(-1)?.data).sessionId).toBe(view?.contextId)
    const versions = viewsIn(events).map(({ version }) => version)
    expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b))

    const metas = metasIn(events)
    events.forEach(({ event }, i) => event === 'meta' && expect(events[i + 1]?.event).toBe('a2a'))
    const positions = metas.map(({ position }) => position)
    expect(positions).toEqual([...new Set(positions)].toSorted((a, b) => a - b))
    expect(metas[0]?.source).toBe('reply')
    expect(metas.map(({ source }) => source)).not.toContain('sent')
    const chunks = events.filter(({ event, data }) => event === 'a2a' && JSON.stringify(data).includes('chunk 5'))
    expect(chunks.length).toBeGreaterThan(0)
    expect(peer.receiptsOf(messageId)).toBe(1)
  })

  test('it ends when the agent asks, and the stream of the answer does not mistake the old question for a new one', async () => {
    const asked = await (await api.stream(path, { text: 'ask' })).rest()
    const waiting = lastView(asked)
    expect(names(asked).at(-1)).toBe('end')
    expect(waiting).toMatchObject({ state: 'TASK_STATE_INPUT_REQUIRED' })
    const answered = await (await api.stream(path, { text: 'red', taskId: waiting?.taskId })).rest()
    expect(names(answered).slice(0, 3)).toEqual(['accepted', 'persisted', 'snapshot'])
    expect(lastView(answered)).toMatchObject({ state: 'TASK_STATE_COMPLETED', localId: waiting?.localId })
    // What was said before the answer was told by the stream before.
    const [before, after] = [asked, answered].map((events) => metasIn(events).map(({ position }) => position))
    expect(Math.min(...(after ?? []))).toBeGreaterThan(Math.max(...(before ?? [])))
  })

  test.each(['1.0', '0.3'] as const)('the same for an SDK agent of A2A %s', async (version) => {
    const agent = await startSdkPeer({ version, binding: 'JSONRPC' })
    const its = `/api/agents/${await api.register(agent.cardUrl)}/stream`
    const asked = await (await api.stream(its, { text: 'ask' })).rest()
    const { taskId } = lastView(asked) ?? {}
    const answered = await (await api.stream(its, { text: 'red', taskId })).rest()
    expect(lastView(answered)).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
    await agent.close()
  })

  test('a direct answer: persisted without a task id, one snapshot, end', async () => {
    const events = await (await api.stream(path, { text: 'direct' })).rest()
    expect(names(events)).toEqual(['accepted', 'persisted', 'snapshot', 'meta', 'a2a', 'end'])
    expect(Persisted.parse(events[1]?.data).taskId).toBeNull()
    expect(lastView(events)).toMatchObject({ kind: 'message', state: 'MESSAGE_ONLY' })
  })

  test('a second watcher follows the same task, snapshot first; the work outlives the first, who leaves', async () => {
    const first = await api.stream(path, { text: 'hold' })
    const { taskId, localId } = Persisted.parse((await first.until('persisted')).data)
    await peer.script.held(1)
    const second = await api.stream(path, { resubscribe: true, taskId, tenant: '' })
    expect((await second.next()).event).toBe('persisted')
    expect(TaskView.parse((await second.next()).data)).toMatchObject({ localId, taskId })
    first.cancel()
    peer.script.finish('Done at last.')
    const rest = await second.rest()
    expect(lastView(rest)).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
    expect(names(rest).at(-1)).toBe('end')
    expect(names(rest)).not.toContain('accepted')
  })

  test('following a task that is over: what was said, then end', async () => {
    const { localId } = await api.send(path.split('/')[3] ?? '', { text: 'hello' })
    const { taskId } = await house.task(localId, (view) => view.state === 'TASK_STATE_COMPLETED')
    const events = await (await api.stream(path, { resubscribe: true, taskId })).rest()
    expect(names(events).slice(0, 2)).toEqual(['persisted', 'snapshot'])
    expect(names(events)).toContain('a2a')
    expect(names(events).at(-1)).toBe('end')
  })

  test('following again: nothing is told twice to whoever says how far it heard', async () => {
    const sent = await (await api.stream(path, { text: 'stream 5' })).rest()
    const { taskId } = Persisted.parse(sent.find(({ event }) => event === 'persisted')?.data)
    const positions = (events: readonly { event: string; data: unknown }[]): number[] =>
      events.flatMap(({ event, data }) =>
        event === 'meta' ? [z.object({ position: z.number() }).parse(data).position] : [],
      )
    const from = async (position?: number) => {
      const events = await (await api.stream(path, { resubscribe: true, taskId, position })).rest()
      expect(names(events).slice(0, 2)).toEqual(['persisted', 'snapshot'])
      return positions(events)
    }
    const all = await from()
    expect(all.length).toBeGreaterThan(1)
    expect(await from(all[1])).toEqual(all.slice(1))
    expect(await from((all.at(-1) ?? 0) + 1)).toEqual([])
    const held = await api.stream(path, { text: 'hold' })
    const { taskId: other } = Persisted.parse((await held.until('persisted')).data)
    await peer.script.held(1)
    const beyond = await api.stream(path, { resubscribe: true, taskId: other, position: 1_000_000 })
    await beyond.until('snapshot')
    peer.script.finish('Done at last.')
    expect(names(await beyond.rest())).toContain('a2a')
    await held.rest()
  })

  test('a cancel streams, too', async () => {
    const held = await api.stream(path, { text: 'hold' })
    const { taskId } = Persisted.parse((await held.until('persisted')).data)
    const events = await (await api.stream(path, { action: 'cancelTask', taskId })).rest()
    expect(names(events).slice(0, 3)).toEqual(['accepted', 'persisted', 'snapshot'])
    expect(lastView(events)).toMatchObject({ state: 'TASK_STATE_CANCELED' })
    expect(names(await held.rest()).at(-1)).toBe('end')
  })

  test('a command that fails, or whose outcome nobody knows, is an error and the end', async () => {
    peer.script.fault('SendMessage', { fault: 'error', code: -32602, message: 'No.' })
    const failed = await (await api.stream(path, { text: 'hello' })).rest()
    expect(names(failed)).toEqual(['accepted', 'error', 'end'])
    expect(failed[1]?.data).toEqual({ message: 'No.', ...End.parse(failed[2]?.data) })
    peer.script.fault('SendMessage', { fault: 'reset', performed: true })
    const lost = await (await api.stream(path, { text: 'hello' })).rest()
    expect(names(lost)).toEqual(['accepted', 'error', 'end'])
    expect(lost[1]?.data).toMatchObject({ message: commandErrors.uncertain })
  })

  test('the same key is the same command: its stream can be opened again', async () => {
    const messageId = randomUUID()
    const key = { 'idempotency-key': randomUUID() }
    const body = { text: 'hello', messageId }
    const [one, two] = await Promise.all([api.stream(path, body, key), api.stream(path, body, key)])
    const ids = [await one.next(), await two.next()].map(({ data }) => data)
    expect(ids[0]).toEqual(ids[1])
    expect(lastView(await one.rest())).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
    await two.rest()
    const late = await (await api.stream(path, body, key)).rest()
    expect(names(late).slice(0, 3)).toEqual(['accepted', 'persisted', 'snapshot'])
    expect(peer.receiptsOf(messageId)).toBe(1)
  })

  test('side events are told once, and only where the stored card offers their extension', async () => {
    const uri = 'urn:agent-observability:sideband-events:v1'
    const offering = await startRawPeer({ card: { capabilities: { streaming: true, extensions: [{ uri }] } } })
    const silent = await startRawPeer()
    const side = { id: 'e1', type: 'tool.started', title: 'Looking', parts: [{ text: 'in the book' }] }
    const told: StreamedEvent[][] = []
    for (const agent of [offering, silent]) {
      const its = `/api/agents/${await api.register(agent.cardUrl)}/stream`
      const stream = await api.stream(its, { text: 'hold' })
      const { taskId } = Persisted.parse((await stream.until('persisted')).data)
      await agent.script.held(1)
      await expect.poll(() => agent.callsOf('SubscribeToTask')).toBe(1)
      const say = (state: string, messageId: string) => {
        const message = { messageId, role: 'ROLE_AGENT', parts: [{ text: 'x' }], metadata: { [uri]: side } }
        const status = { state, message, timestamp: new Date().toISOString() }
        agent.script.emit(taskId ?? '', { statusUpdate: { taskId, status } })
      }
      say('TASK_STATE_WORKING', 'm1')
      say('TASK_STATE_COMPLETED', 'm2')
      told.push(await stream.rest())
      await agent.close()
    }
    const [ours = [], others = []] = told
    expect(ours.filter(({ event }) => event === 'sideband').map(({ data }) => data)).toMatchObject([
      {
        id: 'e1',
        extensionUri: uri,
        type: 'tool.started',
        title: 'Looking',
        level: 'info',
        timestamp: expect.any(String),
        parts: [{ kind: 'text', value: 'in the book', mediaType: 'text/plain' }],
      },
    ])
    expect(names(others)).not.toContain('sideband')
    expect(lastView(others)).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
  })

  test.each([
    [{ resubscribe: true, taskId: 'never-seen' }, 404, 'Task not found.'],
    [{ resubscribe: true }, 400, 'taskId: Invalid input: expected string, received undefined.'],
    [{ resubscribe: true, taskId: 't', position: -1 }, 400, 'position: Too small: expected number to be >=0.'],
    [{ resubscribe: true, taskId: 't', text: 'x' }, 400, 'Unrecognized key: "text".'],
    [{ text: 'x', taskId: 'never-seen' }, 404, 'Task not found.'],
  ])('what can be refused is refused before the stream begins: %j', async (body, status, message) => {
    const reply = await api.post(path, body)
    expect(reply.status).toBe(status)
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/)
    expect(reply.body).toEqual({ error: { message } })
  })

  test('a process that is about to stop ends its streams politely', async () => {
    const stopping = await startConsole({ database: house.db, system: { works: false } })
    const stream = await stopping.api.stream(path, { text: 'hold' })
    const signals = await stopping.api.stream('/api/tasks/events')
    await stream.until('snapshot')
    stopping.drain()
    expect(names(await stream.rest()).at(-1)).toBe('end')
    expect((await signals.rest()).length).toBeGreaterThan(0)
    await stopping.close()
    peer.script.finish()
  })

  test('one task in many chunks is not sent whole at every chunk', async () => {
    const talker = await startRawPeer()
    const stream = await api.stream(`/api/agents/${await api.register(talker.cardUrl)}/stream`, { text: 'hold' })
    const { taskId } = Persisted.parse((await stream.until('persisted')).data)
    await expect.poll(() => talker.callsOf('SubscribeToTask')).toBe(1)
    const chunk = (text: string) => ({
      artifactUpdate: { taskId, artifact: { artifactId: 'a', parts: [{ text }] }, append: true },
    })
    for (let i = 0; i < 500; i++) talker.script.emit(taskId ?? '', chunk(`${i} `))
    talker.script.finish()
    const events = await stream.rest()
    const spoken = lastView(events)?.artifacts.find(({ artifactId }) => artifactId === 'a')
    expect(spoken?.parts).toHaveLength(500)
    expect(metasIn(events).length).toBeGreaterThanOrEqual(500)
    expect(viewsIn(events).length).toBeLessThan(100)
    await talker.close()
  })
})
