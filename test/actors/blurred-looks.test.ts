/**
 * What another process committed is heard by whoever holds a stream, also where a look cannot say of whom it was: after a failover, a
 * restore or a jump of the sequence, at which nobody is named and everybody is meant.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { statusOf } from './models/stage.ts'
import { patience } from './reconciliation-turns.ts'

describe.each(['named', 'blurred'] as const)('a look at which what moved is %s', (look) => {
  let fresh: FreshDatabase
  let other: Database
  let peer: RawPeer
  let worker: RunningSystem
  let web: RunningSystem
  let streams: ServerResponse[]
  beforeEach(async () => {
    fresh = await freshDatabase('postgresql')
    other = await openDatabase(fresh.profile)
    streams = []
    peer = await startRawPeer({
      asked: (operation, answer) => void (operation === 'SubscribeToTask' && streams.push(answer)),
    })
    worker = await systemOn(fresh.db)
    web = await systemOn(other, { works: false })
  })
  afterEach(async () => {
    await web.close()
    await worker.close()
    await peer.close()
    await other.close()
    await fresh.close()
  })

  /** A stream that its agent keeps open, and when it is hung up on. */
  async function held() {
    const { id: agentId } = await worker.system.agents.register(worker.viewer, peer.cardUrl)
    const { result } = await worker.finished((await worker.send(agentId, { text: 'hold' })).id)
    await expect.poll(() => streams.length, patience).toBe(1)
    const [stream] = streams
    if (!stream) throw new Error('No stream was asked for.')
    // Every look that is to come will have passed over more numbers than it remembers.
    if (look === 'blurred')
      await other.pool.query(sql.unsafe`
        select setval(pg_get_serial_sequence('fact', 'number'), (select max(number) + 20000 from fact))`)
    const closed = once(stream, 'close', { signal: AbortSignal.timeout(10_000) })
    return { agentId, localId: String(result?.localId), remoteId: String(result?.taskId), closed }
  }

  it('takes the stream from an agent that was removed elsewhere', async () => {
    const { agentId, closed } = await held()
    await web.system.agents.remove(web.viewer, agentId)
    await closed
    expect(streams.length).toBe(1)
  })

  it('ends the stream of a task whose end was told elsewhere', async () => {
    const { agentId, localId, remoteId, closed } = await held()
    const observations = [statusOf(remoteId, 'TASK_STATE_COMPLETED', '2030-01-01T00:00:00.000Z')]
    const report = { agentId, tenant: '', source: 'push' as const, command: null, remoteTaskId: remoteId, observations }
    const ref = { kind: 'subscription', id: localId }
    const told = [{ type: 'agent.reported' as const, report }]
    await web.system.runtime.step({ ref, event: null, told, lease: null, cause: 'test' })
    await closed
    expect(streams.length).toBe(1)
  })
})
