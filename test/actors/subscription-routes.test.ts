/**
 * Who answers where an agent should: an ingress without an agent behind it says 404 to everything, an agent without a method says it
 * to that one alone. The first is waited out, the second is read instead; and a person's reply asks once more which it is.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { startRawPeer, type RawPeer, type RawPeerOptions } from '../support/peers/raw.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { patience } from './reconciliation-turns.ts'

const Value = z.object({ value: z.unknown() })

describe('a task whose agent', () => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem('postgresql')
  })
  afterAll(() => running.close())

  async function agent(options: RawPeerOptions = {}): Promise<{ peer: RawPeer; agentId: string }> {
    const peer = await startRawPeer({ binding: 'HTTP+JSON', ...options })
    onTestFinished(() => peer.close())
    return { peer, agentId: (await running.system.agents.register(running.viewer, peer.cardUrl)).id }
  }
  async function sent(agentId: string) {
    const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
    return { localId: String(result?.localId), taskId: String(result?.taskId) }
  }
  const placeOf = (localId: string) => (): Promise<unknown> =>
    running.db.pool.maybeOneFirst(sql.type(Value)`
      select snapshot->'value' as value from actor where kind = 'subscription' and id = ${localId}`)
  const polled = expect.objectContaining({ polling: expect.anything() })

  /** A person's reply, after which the agent goes on with its work. */
  async function replied(peer: RawPeer, agentId: string, taskId: string): Promise<void> {
    const status = { state: 'TASK_STATE_WORKING', timestamp: new Date().toISOString() }
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ task: { id: taskId, status } })
    peer.script.fault('SendMessage', { fault: 'body', headers, body })
    const { status: end } = await running.finished((await running.send(agentId, { text: 'go on', taskId })).id)
    expect(end).toBe('succeeded')
  }
  async function ends(peer: RawPeer, localId: string): Promise<void> {
    peer.script.finish('Done.')
    const { artifacts } = await running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    expect(artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))).toContain('Done.')
  }

  it.each([404, 405, 501])(
    'cannot be reached behind a server that says %i has its stream tried again',
    async (status) => {
      const { peer, agentId } = await agent()
      for (const operation of ['SubscribeToTask', 'GetTask'])
        peer.script.fault(operation, { fault: 'status', status }, Infinity)
      const { localId } = await sent(agentId)
      await expect.poll(placeOf(localId), patience).toBe('backingOff')
      const before = peer.callsOf('SubscribeToTask')
      peer.script.heal()
      await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBeGreaterThan(before)
      await expect.poll(placeOf(localId), patience).toBe('following')
      await ends(peer, localId)
    },
  )

  it.each([404, 405, 501])(
    'says %i to its stream alone is read, and a reply tries the stream again',
    async (status) => {
      const { peer, agentId } = await agent()
      peer.script.fault('SubscribeToTask', { fault: 'status', status }, Infinity)
      const { localId, taskId } = await sent(agentId)
      await expect.poll(placeOf(localId), patience).toEqual(polled)
      const before = peer.callsOf('SubscribeToTask')
      await replied(peer, agentId, taskId)
      await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBeGreaterThan(before)
      await expect.poll(placeOf(localId), patience).toEqual(polled)
      peer.script.heal()
      await replied(peer, agentId, taskId)
      await expect.poll(() => peer.subscribed().length, patience).toBeGreaterThan(2 * before)
      await expect.poll(placeOf(localId), patience).toBe('following')
      await ends(peer, localId)
    },
  )

  it('says itself that it has no stream is read, also where its task cannot be seen at once', async () => {
    const { peer, agentId } = await agent({ binding: 'JSONRPC' })
    peer.script.fault('SubscribeToTask', { fault: 'error', code: -32601, message: 'No such method.' }, Infinity)
    peer.script.fault('GetTask', { fault: 'status', status: 503 })
    const { localId } = await sent(agentId)
    await expect.poll(placeOf(localId), patience).toEqual(polled)
    expect(peer.callsOf('SubscribeToTask')).toBe(1)
    await ends(peer, localId)
  })

  it('offers no stream is never asked for one, whoever replies', async () => {
    const { peer, agentId } = await agent({ streaming: false })
    const { localId, taskId } = await sent(agentId)
    await expect.poll(placeOf(localId), patience).toEqual(polled)
    const looks = peer.callsOf('GetTask')
    await replied(peer, agentId, taskId)
    await expect.poll(() => peer.callsOf('GetTask'), patience).toBeGreaterThan(looks)
    await expect.poll(placeOf(localId), patience).toEqual(polled)
    await ends(peer, localId)
    expect(peer.callsOf('SubscribeToTask')).toBe(0)
  })

  it('refuses it in words that are cut inside a character of two code units is backed off from, and they are shown', async () => {
    const { peer, agentId } = await agent({ binding: 'JSONRPC' })
    const refusal = { fault: 'error', code: -32050, message: '😀'.repeat(300) } as const
    for (const operation of ['SubscribeToTask', 'GetTask']) peer.script.fault(operation, refusal, Infinity)
    const { localId } = await sent(agentId)
    await expect.poll(placeOf(localId), patience).toBe('backingOff')
    const reason = await running.db.pool.oneFirst(sql.type(Value)`
      select snapshot->'context'->'reason' as value from actor where kind = 'subscription' and id = ${localId}`)
    expect(reason).toMatch(/^The agent refused: (?:😀)+\ufffd?$/u)
    peer.script.heal()
    await ends(peer, localId)
  })
})
