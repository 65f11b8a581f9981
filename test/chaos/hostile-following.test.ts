/**
 * What a subscription makes of an agent that cannot be followed: it says why, on the actor and on the task; it is tried more
 * seldom; its rounds do not fill the log; and what can never be read is given up until a person answers.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { TaskView } from '../../domain/task.ts'
import { Following } from '../../domain/following.ts'
import { followingOf } from '../../persistence/following.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer, type RawPeerOptions } from '../support/peers/raw.ts'

const tooLarge = 'Agent response exceeds the safety limit.'
const hugeBytes = 26 * 1024 * 1024
const Logged = z.object({ event: z.string(), facts: z.array(z.string()) })

describe('a task that cannot be followed', () => {
  let house: TestConsole
  beforeAll(async () => {
    house = await startConsole({ database: 'postgresql' })
  })
  afterAll(() => house.close())

  const peers = new Set<RawPeer>()
  const gone = async (peer: RawPeer): Promise<void> => {
    if (peers.delete(peer)) await peer.close()
  }

  async function working(options: RawPeerOptions = {}): Promise<{ peer: RawPeer; agentId: string; localId: string }> {
    const peer = await startRawPeer(options)
    peers.add(peer)
    onTestFinished(() => gone(peer))
    const agentId = await house.api.register(peer.cardUrl)
    const { result } = await house.finished((await house.send(agentId, { text: 'hold' })).id)
    await peer.script.held(1)
    return { peer, agentId, localId: String(result?.localId) }
  }

  const following = (localId: string) => followingOf(house.db.pool, house.viewer.organizationId, localId)
  const log = (localId: string) =>
    house.db.pool.any(sql.type(Logged)`
      select event, facts from actor_log where kind = 'subscription' and actor_id = ${localId} order by revision`)

  it('because its agent is gone from the network: says so once, and keeps trying', { timeout: 60_000 }, async () => {
    const { peer, localId } = await working()
    await expect.poll(() => peer.callsOf('SubscribeToTask')).toBeGreaterThan(0)
    expect(await following(localId)).toEqual({ state: 'streaming', reason: null, nextAttemptAt: null })
    await gone(peer)
    const failures = () =>
      house.db.pool.oneFirst(sql.type(z.object({ failures: z.number() }))`
        select (snapshot->'context'->>'failures')::int4 as failures from actor where kind = 'subscription' and id = ${localId}`)
    await expect.poll(failures, { timeout: 20_000 }).toBeGreaterThanOrEqual(3)
    const { body } = await house.api.get(`/api/tasks/${localId}`)
    const seen = z
      .object({ task: TaskView, commands: z.array(z.unknown()), following: Following })
      .parse(body).following
    expect(['retrying', 'streaming']).toContain(seen.state)
    expect(seen.reason).toMatch(/^Agent (network request failed|Card discovery failed\. Tried: )/)
    // Three failures and their waits are seven steps; the log has the beginning and the one line that says why.
    const told = (await log(localId)).flatMap(({ facts }) => facts)
    expect(told.filter((fact) => fact === 'subscription.failing').length).toBeLessThanOrEqual(2)
    expect((await log(localId)).length).toBeLessThanOrEqual(3)
  })

  it('because its agent has no stream, whatever its card says: is read instead', async () => {
    const peer = await startRawPeer()
    peers.add(peer)
    onTestFinished(() => gone(peer))
    peer.script.fault('SubscribeToTask', { fault: 'error', code: -32601, message: 'No such method.' }, Infinity)
    const agentId = await house.api.register(peer.cardUrl)
    const { result } = await house.finished((await house.send(agentId, { text: 'hold' })).id)
    const localId = String(result?.localId)
    await expect.poll(() => following(localId)).toMatchObject({ state: 'polling', reason: null })
    await peer.script.held(1)
    peer.script.finish()
    await house.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    expect(peer.callsOf('SubscribeToTask')).toBe(1)
  })

  it.each([true, false])(
    'because it is too large (streaming: %s): is given up with the reason, until a person answers',
    async (streaming) => {
      const { peer, agentId, localId } = await working({ streaming })
      const flood = (type: string) => ({ fault: 'flood', bytes: hugeBytes, type }) as const
      peer.script.fault('GetTask', flood('application/json'), Infinity)
      peer.script.fault('SubscribeToTask', flood('text/event-stream'), Infinity)
      // The stream that was opened before the flood has to end first.
      peer.script.emit(String(peer.taskIds()[0]), { statusUpdate: 'no such thing' })
      const stopped = { state: 'stopped', reason: tooLarge, nextAttemptAt: null }
      await expect.poll(() => following(localId), { timeout: 25_000 }).toEqual(stopped)
      const asked = peer.callsOf('SubscribeToTask') + peer.callsOf('GetTask')
      const { body } = await house.api.get(`/api/actors/subscription/${localId}`)
      expect(body).toMatchObject({ actor: { attention: true, context: { reason: tooLarge } } })

      peer.script.heal()
      const { taskId } = await house.task(localId, () => true)
      await house.finished((await house.send(agentId, { text: 'go on', taskId: String(taskId) })).id)
      await house.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
      expect(asked).toBeLessThan(12)
    },
  )
})
