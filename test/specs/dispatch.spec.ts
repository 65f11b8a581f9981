/** Dispatch: what the agent saw, whatever went wrong. At most one receipt a command, and an honest word about the outcome. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ActorLogPage } from '../../domain/actor.ts'
import { commandErrors, type Command } from '../../domain/command.ts'
import { commandIn, type Client } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { isLong } from '../support/pass.ts'
import { startRawPeer, type RawFault, type RawPeer } from '../support/peers/raw.ts'
import { declinedWithTask, garbage, wrongTypes } from '../support/peers/raw-faults.ts'

/** Neither database knows of a binding: in the short pass each has one of the two, in the long one both. */
const bindings = {
  pglite: isLong ? (['JSONRPC', 'HTTP+JSON'] as const) : (['JSONRPC'] as const),
  postgresql: isLong ? (['JSONRPC', 'HTTP+JSON'] as const) : (['HTTP+JSON'] as const),
} as const

describe.each(bothDatabases)('dispatch on %s', (database) => {
  let house: TestConsole
  let api: Client
  beforeAll(async () => {
    house = await startConsole({ database })
    api = house.api
  })
  afterAll(() => house.close())

  const commandTo = async (agentId: string, messageId: string): Promise<Command> => {
    const body = { text: 'hello', messageId }
    const reply = await api.post(`/api/agents/${agentId}/commands`, body, { 'idempotency-key': messageId })
    return house.finished(commandIn(reply).id)
  }

  describe.each(bindings[database])('over %s', (binding) => {
    let peer: RawPeer
    let agentId: string
    beforeAll(async () => {
      peer = await startRawPeer({ binding })
      agentId = await api.register(peer.cardUrl)
    })
    afterAll(() => peer.close())

    const uncertain: [string, RawFault][] = [
      ['the connection is reset and nothing was done', { fault: 'reset', performed: false }],
      ['the connection is reset after the work was done', { fault: 'reset', performed: true }],
      ['the answer is no JSON', garbage],
      ['the answer has wrong types', wrongTypes],
      ['the answer declines and shows a task', declinedWithTask('made')],
      ['a proxy says 502', { fault: 'status', status: 502 }],
      ['the answer is too large', { fault: 'flood', bytes: 26 * 1024 * 1024 }],
    ]
    test.each(uncertain)('uncertain, and never sent again: %s', async (_name, fault) => {
      const messageId = randomUUID()
      peer.script.fault('SendMessage', fault)
      const command = await commandTo(agentId, messageId)
      expect(command).toMatchObject({ status: 'uncertain', error: commandErrors.uncertain, result: null })
      // The same key asks again, by both routes: it is told, and nothing is sent.
      const again = await api.post(`/api/agents/${agentId}/messages`, { text: 'hello', messageId })
      expect(again.status).toBe(409)
      expect(again.body).toEqual({ error: { name: 'Error', message: commandErrors.uncertain } })
      expect((await commandTo(agentId, messageId)).id).toBe(command.id)
      expect(peer.receiptsOf(messageId)).toBe(1)
    })

    test('failed with the agent’s own words when it refuses before any work', async () => {
      const messageId = randomUUID()
      peer.script.fault('SendMessage', { fault: 'error', code: -32602, message: 'I do not speak that.' })
      expect(await commandTo(agentId, messageId)).toMatchObject({ status: 'failed', error: 'I do not speak that.' })
      const told = await api.post(`/api/agents/${agentId}/messages`, { text: 'hello', messageId })
      expect(told.status).toBe(409)
      expect(told.body).toEqual({ error: { name: 'Error', message: 'I do not speak that.' } })
      expect(peer.receiptsOf(messageId)).toBe(1)
    })

    test.each([401, 403])('failed where the agent wants credentials that nobody stored (HTTP %i)', async (status) => {
      peer.script.fault('SendMessage', { fault: 'status', status })
      const command = await commandTo(agentId, randomUUID())
      expect(command).toMatchObject({ status: 'failed', error: 'Agent credentials are required.' })
    })

    test('succeeded with an agent that says 100, 102 and 103 before each answer; its task is followed to its end', async () => {
      const early = await startRawPeer({ binding })
      early.script.fault('any', { fault: 'interim', statuses: [100, 102, 103, 100] }, Infinity)
      const messageId = randomUUID()
      const { status, result } = await commandTo(await api.register(early.cardUrl), messageId)
      expect([status, early.receiptsOf(messageId)]).toEqual(['succeeded', 1])
      const task = await house.task(result?.localId ?? '', ({ state }) => state === 'TASK_STATE_COMPLETED')
      expect(early.subscribed()).toEqual([task.taskId])
      await early.close()
    })

    test('twenty commands at once, each received once', async () => {
      const ids = Array.from({ length: 20 }, () => randomUUID())
      const ended = await Promise.all(ids.map((messageId) => commandTo(agentId, messageId)))
      expect(ended.map(({ status }) => status)).toEqual(ids.map(() => 'succeeded'))
      expect(ids.map((messageId) => peer.receiptsOf(messageId))).toEqual(ids.map(() => 1))
    })
  })

  test('failed after three looks for the card, one and two seconds apart; nothing was sent', async () => {
    const hidden = await startRawPeer()
    const agentId = await api.register(hidden.cardUrl)
    hidden.script.fault('GetAgentCard', { fault: 'status', status: 500 }, Infinity)
    const startedAt = performance.now()
    const command = await commandTo(agentId, randomUUID())
    const tookMs = performance.now() - startedAt
    await hidden.close()
    expect(command).toMatchObject({ status: 'failed', error: commandErrors.discovery })
    expect(tookMs).toBeGreaterThan(2_900)
    expect(hidden.callsOf('GetAgentCard')).toBe(3)
    expect(hidden.receipts).toEqual([])
    // Why is kept with each look: the agent may be well when somebody asks.
    const { steps } = ActorLogPage.parse((await api.get(`/api/actors/command/${command.id}/log`)).body)
    const looks = steps
      .filter(({ event }) => event.type === 'xstate.done.actor.discover')
      .map(({ event }) => event['output'])
    const why = expect.stringMatching(/^Agent Card discovery failed\. Tried: .*HTTP 500/) as string
    expect(looks).toEqual([1, 2, 3].map(() => ({ kind: 'missed', message: why })))
  })

  test('delivered when the card is found at the third look', async () => {
    const shy = await startRawPeer()
    const agentId = await api.register(shy.cardUrl)
    shy.script.fault('GetAgentCard', { fault: 'reset', performed: false }, 2)
    const messageId = randomUUID()
    expect(await commandTo(agentId, messageId)).toMatchObject({ status: 'succeeded' })
    expect(shy.receiptsOf(messageId)).toBe(1)
    await shy.close()
  })

  test('failed when no connection could be opened', async () => {
    const unused = createServer().listen(0, '127.0.0.1')
    await once(unused, 'listening')
    const address = unused.address()
    const port = typeof address === 'object' ? address?.port : 0
    unused.close()
    await once(unused, 'close')
    const url = `http://127.0.0.1:${port}/`
    const elsewhere = { supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
    const peer = await startRawPeer({ card: elsewhere })
    const command = await commandTo(await api.register(peer.cardUrl), randomUUID())
    await peer.close()
    expect(command).toMatchObject({ status: 'failed', error: 'Agent network request failed.' })
  })

  test('failed at once when the agent offers nothing but gRPC', async () => {
    const url = 'http://127.0.0.1:1/'
    const grpc = { supportedInterfaces: [{ url, protocolBinding: 'GRPC', protocolVersion: '1.0' }] }
    const peer = await startRawPeer({ card: grpc })
    const command = await commandTo(await api.register(peer.cardUrl), randomUUID())
    await peer.close()
    expect(command.status).toBe('failed')
    expect(command.error).toBe(
      'gRPC transport is unavailable under the hardened network policy; advertise an HTTP binding.',
    )
    expect(peer.receipts).toEqual([])
  })

  test('still on its way after the wait: 504 names the command, which goes on', async () => {
    const slow = await startRawPeer()
    const waiting = await startConsole({ database: house.db, system: { works: false } })
    const agentId = await api.register(slow.cardUrl)
    slow.script.holdReplies()
    const messageId = randomUUID()
    const reply = waiting.api.post(`/api/agents/${agentId}/messages`, { text: 'hello', messageId })
    await slow.received(1)
    // A process that is about to stop answers as if the 50 seconds were over.
    waiting.drain()
    const { status, text } = await reply
    expect(status).toBe(504)
    const [, id = ''] = /Query \/api\/commands\/(\S+) for/.exec(text) ?? []
    expect(JSON.parse(text)).toEqual({
      error: {
        name: 'Error',
        message: `Command accepted; waiting stopped. Query /api/commands/${id} for its outcome before submitting again.`,
      },
    })
    expect((await api.command(id)).status).toBe('dispatching')
    slow.script.release()
    expect(await house.finished(id)).toMatchObject({ status: 'succeeded', messageId })
    expect(slow.receiptsOf(messageId)).toBe(1)
    await waiting.close()
    await slow.close()
  })
})
