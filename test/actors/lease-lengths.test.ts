/**
 * How long a lease is in its row, by the database's own clock, on a running console [console-http-api.md: "Background loops"]: as it
 * is granted with the work that a commit makes due, and as it is granted with a claim. That it is renewed in time is leases.test.ts.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { commandIn } from '../support/api.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const Held = z.object({ work: z.string(), leftMs: z.number() })

describe.each(bothDatabases)('a lease on %s', (database) => {
  let fresh: FreshDatabase
  let peer: RawPeer
  let house: TestConsole
  beforeEach(async () => {
    fresh = await freshDatabase(database)
    peer = await startRawPeer()
    house = await startConsole({ database: fresh.db, uiDirectory: null })
  })
  afterEach(async () => {
    peer.script.release()
    await house.close()
    await peer.close()
    await fresh.close()
  })
  const sent = async (agentId: string, messageId: string): Promise<string> => {
    const body = { text: 'hold', messageId }
    return commandIn(await house.api.post(`/api/agents/${agentId}/commands`, body, { 'idempotency-key': messageId })).id
  }
  /** What is left of the lease of such work, once it is under way. */
  const left = async (work: string): Promise<number> => {
    const leases = () =>
      fresh.db.pool.any(sql.type(Held)`
        select work, (extract(epoch from lease_until - now()) * 1000)::float8 as "leftMs" from actor
        where work = ${work} and lease_until > now()`)
    await expect.poll(async () => (await leases()).length).toBe(1)
    return (await leases())[0]?.leftMs ?? 0
  }
  /** It is renewed at a third, and before that it has only become shorter. */
  const expectLease = (leftMs: number, seconds: number): void => {
    expect(leftMs).toBeLessThanOrEqual(seconds * 1000)
    expect(leftMs).toBeGreaterThan((seconds * 1000) / 2)
  }

  it('is 60 s for a command and 15 s for a subscription, where they begin with what makes them due', async () => {
    const agentId = await house.api.register(peer.cardUrl)
    await sent(agentId, 'followed')
    await expect.poll(() => peer.subscribed()).toHaveLength(1)
    expectLease(await left('follow'), 15)
    peer.script.holdReplies()
    await sent(agentId, 'delivered')
    expectLease(await left('deliver'), 60)
  })

  it('is 60 s for a command and 15 s for a subscription, where they are claimed', async () => {
    const agentId = await house.api.register(peer.cardUrl)
    await sent(agentId, 'followed')
    await expect.poll(() => peer.subscribed()).toHaveLength(1)
    // Given back by one process, left due by another that does no work.
    await house.close()
    house = await startConsole({ database: fresh.db, uiDirectory: null, system: { works: false } })
    const id = await sent(agentId, 'delivered')
    expect(await house.api.command(id)).toMatchObject({ status: 'pending' })
    await house.close()
    // A process that begins knows no card: the search for it is what a claim begins, the delivery follows under the same lease.
    peer.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
    house = await startConsole({ database: fresh.db, uiDirectory: null })
    expectLease(await left('discover'), 60)
    expectLease(await left('follow'), 15)
  })
})
