/** The waiting routes: send and cancel, answered with what the agent answered, whichever A2A it speaks. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const agents = [
  { version: '1.0', binding: 'JSONRPC' },
  { version: '1.0', binding: 'HTTP+JSON' },
  { version: '0.3', binding: 'JSONRPC' },
  { version: '0.3', binding: 'HTTP+JSON' },
] as const

describe.each(bothDatabases)('messages on %s', (database) => {
  let house: TestConsole
  let api: Client
  beforeAll(async () => {
    house = await startConsole({ database })
    api = house.api
  })
  afterAll(() => house.close())

  describe.each(agents)('to an agent of A2A $version over $binding', (options) => {
    let peer: Peer
    let agentId: string
    beforeAll(async () => {
      peer = await startSdkPeer(options)
      agentId = await api.register(peer.cardUrl)
    })
    afterAll(() => peer.close())

    test('200 with the task, where it is kept, and the command', async () => {
      const messageId = randomUUID()
      const told = await api.send(agentId, { text: 'hello', messageId })
      const task = await house.task(told.localId, (view) => view.state === 'TASK_STATE_COMPLETED')
      expect(told.result).toMatchObject({
        id: task.taskId,
        contextId: task.contextId,
        status: { state: expect.stringMatching(/^TASK_STATE_/) },
      })
      expect(told).toMatchObject({ sessionId: task.contextId, telemetry: [] })
      expect((await api.command(told.commandId)).result?.localId).toBe(told.localId)
      expect(task.messages[0]).toMatchObject({ id: messageId, role: 'user', parts: [{ kind: 'text', value: 'hello' }] })
      expect(task.artifacts).toMatchObject([{ name: 'answer', parts: [{ kind: 'text', value: 'Hello.' }] }])
      expect(peer.receiptsOf(messageId)).toBe(1)
    })

    test('a question is asked, answered on the same task, and the task completes', async () => {
      const { localId } = await api.send(agentId, { text: 'ask' })
      const asking = await house.task(localId, (view) => view.state === 'TASK_STATE_INPUT_REQUIRED')
      const question = asking.messages.at(-1)
      expect(question).toMatchObject({ role: 'agent', fromStatus: true, parts: [{ value: 'Which colour?' }] })
      const { taskId, contextId } = asking
      const reply = await api.send(agentId, { text: 'red', taskId, contextId })
      expect(reply.localId).toBe(localId)
      const done = await house.task(localId, (view) => view.state === 'TASK_STATE_COMPLETED')
      expect(done.messages.map(({ role }) => role)).toEqual(['user', 'agent', 'user'])
      expect(done.artifacts.at(-1)?.parts).toMatchObject([{ value: 'You said: red' }])
    })

    test('a direct answer is a message, and a row of its own', async () => {
      const told = await api.send(agentId, { text: 'direct' })
      expect(told.result).toMatchObject({ parts: [{ text: 'No task needed.' }] })
      expect(await api.task(told.localId)).toMatchObject({ kind: 'message', state: 'MESSAGE_ONLY', taskId: null })
    })

    test('cancelling answers with the cancelled task; the agent is asked once', async () => {
      const { localId } = await api.send(agentId, { text: 'hold' })
      await peer.script.held(1)
      const { taskId } = await api.task(localId)
      const path = `/api/agents/${agentId}/tasks/${encodeURIComponent(taskId ?? '')}/cancel`
      const key = { 'idempotency-key': randomUUID() }
      const twins = await Promise.all([api.post(path, undefined, key), api.post(path, undefined, key)])
      for (const { status, body } of twins) {
        expect(status).toBe(200)
        expect(body).toMatchObject({ result: { id: taskId, status: { state: 'TASK_STATE_CANCELED' } }, localId })
      }
      await house.task(localId, (view) => view.state === 'TASK_STATE_CANCELED')
      expect(peer.receipts.filter(({ method }) => method === 'CancelTask')).toHaveLength(1)
    })

    test.each([
      ['fail', 'TASK_STATE_FAILED'],
      ['reject', 'TASK_STATE_REJECTED'],
      ['auth', 'TASK_STATE_AUTH_REQUIRED'],
    ])('"%s" ends as %s', async (text, state) => {
      const { localId } = await api.send(agentId, { text })
      await house.task(localId, (view) => view.state === state)
    })
  })

  test('the message id is the key where there is no other: a retry is safe, other content is 409', async () => {
    const peer = await startRawPeer()
    const path = `/api/agents/${await api.register(peer.cardUrl)}/messages`
    const messageId = randomUUID()
    const body = { text: 'hello', messageId }
    const twins = await Promise.all([api.post(path, body), api.post(path, body), api.post(path, body)])
    expect(twins.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(twins.map((reply) => JSON.stringify(reply.body).match(/"commandId":"([^"]+)"/)?.[1])).size).toBe(1)
    expect((await api.post(path, { text: 'other', messageId })).status).toBe(409)
    expect(peer.receiptsOf(messageId)).toBe(1)
    // Without either, every request is a message of its own.
    await Promise.all([api.post(path, { text: 'hello' }), api.post(path, { text: 'hello' })])
    expect(peer.receipts).toHaveLength(3)
    await peer.close()
  })

  test('a task belongs to its tenant', async () => {
    const peer = await startRawPeer()
    const agentId = await api.register(peer.cardUrl)
    const { localId } = await api.send(agentId, { text: 'hold', tenant: 'acme/eu' })
    const { taskId, tenant } = await api.task(localId)
    expect(tenant).toBe('acme/eu')
    const path = `/api/agents/${agentId}/tasks/${taskId}/cancel`
    const elsewhere = await api.post(path)
    expect(elsewhere.status).toBe(404)
    expect(elsewhere.body).toEqual({ error: { message: 'Task not found.' } })
    expect((await api.post(`${path}?tenant=acme%2Feu`)).status).toBe(200)
    await peer.close()
  })

  test('an agent may call its task anything: the address carries every character', async () => {
    const peer = await startRawPeer({ binding: 'HTTP+JSON', streaming: false })
    const agentId = await api.register(peer.cardUrl)
    const id = `a/b?c#d%2F;é ☃ ../"'${'x'.repeat(200)}`
    const task = { id, contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
    peer.script.fault('SendMessage', { fault: 'body', body: JSON.stringify({ task }), headers: json })
    const { localId } = await api.send(agentId, { text: 'hello' })
    expect(await api.task(localId)).toMatchObject({ taskId: id })
    const cancelled = { ...task, status: { state: 'TASK_STATE_CANCELED' } }
    peer.script.fault('CancelTask', { fault: 'body', body: JSON.stringify(cancelled), headers: json })
    const reply = await api.post(`/api/agents/${agentId}/tasks/${encodeURIComponent(id)}/cancel`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body).toMatchObject({ result: { id }, localId })
    const unknown = await api.post(`/api/agents/${agentId}/tasks/${'y'.repeat(256)}/cancel`)
    expect(unknown.status).toBe(404)
    await peer.close()
  })

  test('bytes, data and links go to the agent as they were given', async () => {
    const peer = await startRawPeer()
    const agentId = await api.register(peer.cardUrl)
    const parts = [
      { data: { a: [1, null, 'x'] }, mediaType: 'application/json' },
      { raw: Buffer.from('bytes').toString('base64'), filename: 'b.bin', mediaType: 'application/octet-stream' },
      { url: 'https://files.example/f', mediaType: 'application/pdf' },
    ]
    await api.send(agentId, { text: 'hello', parts })
    expect(peer.seen('SendMessage')?.body).toMatchObject({
      params: {
        message: { role: 'ROLE_USER', parts: [{ text: 'hello', mediaType: 'text/plain' }, ...parts] },
        configuration: { returnImmediately: true },
      },
    })
    await peer.close()
  })
})

const json = { 'content-type': 'application/json' }
