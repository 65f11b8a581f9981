/**
 * An agent that is removed between a command's acceptance and its first byte gets nothing, however slow the commit or the card
 * was: what is known of an agent is trusted for a second, and then read again.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Outbound } from '../../actors/outbound.ts'
import { instruments } from '../../actors/system.ts'
import { commandErrors } from '../../domain/command.ts'
import type { Database } from '../../persistence/database.ts'
import type { Flight } from '../../persistence/drivers/flight.ts'
import { followingOf } from '../../persistence/following.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

const policy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] } as const
const unavailable = { status: 'failed', error: commandErrors.unavailable }

describe.each(bothDatabases)('an agent that is removed meanwhile, on %s', (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  /** What happens once after the next commit, before anybody hears of it; and before the next request to the agent. */
  let onCommit: (() => Promise<void>) | null = null
  let onRequest: (() => Promise<void>) | null = null
  /** Milliseconds that the process's own clock has been moved. */
  let passedMs = 0

  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer()
    const db: Database = {
      ...fresh.db,
      async fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
        const result = await fresh.db.fly(work)
        const then = onCommit
        onCommit = null
        await then?.()
        return result
      },
    }
    class Slow extends Outbound {
      override async exchange(...asked: Parameters<Outbound['exchange']>) {
        const then = onRequest
        onRequest = null
        await then?.()
        return super.exchange(...asked)
      }
    }
    const time = { ...instruments, monotonic: () => instruments.monotonic() + passedMs }
    running = await systemOn(db, { instruments: time, outbound: new Slow(policy) })
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    // Its card is at hand from here on, so that commands are accepted and begun in one commit.
    await running.finished((await running.send(agentId, { text: 'direct' })).id)
  })
  afterAll(async () => {
    await running.close()
    await peer.close()
    await fresh.close()
  })

  const removeAfter = (ms: number) => async (): Promise<void> => {
    await running.system.agents.remove(running.viewer, agentId)
    passedMs += ms
  }
  const again = async (): Promise<void> => void (await running.system.agents.register(running.viewer, peer.cardUrl))

  it('gets what was accepted and begun in one commit, at once', async () => {
    const { id, messageId } = await running.send(agentId, { text: 'direct' })
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
    expect(peer.receiptsOf(messageId)).toBe(1)
  })

  it('gets nothing when the commit was slow to be acknowledged', async () => {
    onCommit = removeAfter(1_100)
    const { id, messageId } = await running.send(agentId, { text: 'direct' })
    expect(await running.finished(id)).toMatchObject(unavailable)
    expect(peer.receiptsOf(messageId)).toBe(0)
    await again()
  })

  it('is not followed any more: the stream that was held of it ends', async () => {
    const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
    const following = () => followingOf(fresh.db.pool, running.viewer.organizationId, String(result?.localId))
    await expect.poll(() => peer.callsOf('SubscribeToTask')).toBeGreaterThan(0)
    expect(await following()).toMatchObject({ state: 'streaming' })
    await running.system.agents.remove(running.viewer, agentId)
    await expect.poll(following).toMatchObject({ state: 'stopped', reason: 'The agent was removed.' })
    await again()
    peer.script.finish()
  })

  it('gets nothing when its card was slow to come', async () => {
    await running.finished((await running.send(agentId, { text: 'direct' })).id)
    // The card was at hand when the command was accepted, and is too old when it is to be delivered.
    onCommit = () => {
      passedMs += 25_000
      onRequest = removeAfter(1_100)
      return Promise.resolve()
    }
    const { id, messageId } = await running.send(agentId, { text: 'direct' })
    expect(await running.finished(id)).toMatchObject(unavailable)
    expect(peer.receiptsOf(messageId)).toBe(0)
  })
})
