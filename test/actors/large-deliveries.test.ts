/**
 * Large sends to an agent that reads and says nothing: so many are at it at once, the others wait without having begun. They hold up nobody
 * who has less to say, are delivered once when there is room, and are nobody's doubt when their process ends.
 */
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { rowsOf, sendLarge } from './large-rows.ts'

const largeSends = { all: 6_000, each: 3_000, largeBytes: 1_000, waitingEach: 3 }
const asksForNothing = (kinds: Kinds): Kinds =>
  Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, { ...kind, pollMs: 3_600_000 }]))

describe.each(eitherDatabase)('large sends on %s', (kind) => {
  let fresh: FreshDatabase
  let hanging: RawPeer
  let running: RunningSystem
  let agentId: string
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())
  beforeEach(async () => {
    hanging = await startRawPeer()
    hanging.script.holdReplies()
  })
  afterEach(async () => {
    hanging.script.release()
    await running.close()
    await hanging.close()
  })

  const start = async (limits: object = {}, rhythm = (kinds: Kinds): Kinds => kinds): Promise<void> => {
    running = await systemOn(fresh.db, { largeSends: { ...largeSends, ...limits }, rhythm })
    agentId = (await running.system.agents.register(running.viewer, hanging.cardUrl)).id
  }
  const large = (n: number, to = agentId) => sendLarge(running, to, n)
  const rows = () => rowsOf(fresh.db, agentId)
  const eventsOf = (id: string) =>
    fresh.db.pool.anyFirst(sql.type(z.object({ type: z.string() }))`
      select event::jsonb->>'type' as type from actor_log where actor_id = ${id}`)
  const allDelivered = async (by: RunningSystem, sent: readonly { id: string; messageId: string }[]): Promise<void> => {
    for (const { id, messageId } of sent) {
      expect(await by.finished(id)).toMatchObject({ status: 'succeeded' })
      expect(hanging.receiptsOf(messageId)).toBe(1)
      expect(await eventsOf(id)).not.toContain('interrupted')
    }
  }

  it('to an agent that hangs wait, a few of them here, and hold up neither small ones nor other agents', async () => {
    await start()
    const other = await startRawPeer()
    const otherId = (await running.system.agents.register(running.viewer, other.cardUrl)).id
    const sent = await large(8)
    await expect.poll(rows).toEqual({ begun: 2, waiting: 3, free: 3 })
    const small = await running.send(agentId, { text: 'direct' })
    await hanging.received(3)
    expect(hanging.receiptsOf(small.messageId)).toBe(1)
    for (const { id } of [...(await large(2, otherId)), await running.send(otherId, { text: 'direct' })])
      expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
    expect(hanging.receipts).toHaveLength(3)
    hanging.script.release()
    await allDelivered(running, [...sent, small])
    expect(running.lines.filter(({ level }) => level !== 'info')).toEqual([])
    await other.close()
  })

  it('that found no room for a while wait in their rows', async () => {
    await start({ waitMs: 50 })
    const sent = await large(4)
    await expect.poll(rows).toEqual({ begun: 2, waiting: 0, free: 2 })
    hanging.script.release()
    await allDelivered(running, sent)
  })

  it('that wait go back at once when the process drains, and whoever comes next delivers them', async () => {
    await start()
    const sent = await large(5)
    await expect.poll(rows).toEqual({ begun: 2, waiting: 3, free: 0 })
    const closed = running.close()
    await expect.poll(rows).toEqual({ begun: 2, waiting: 0, free: 3 })
    expect(hanging.receipts).toHaveLength(2)
    hanging.script.release()
    await closed
    running = await systemOn(fresh.db, { largeSends })
    await allDelivered(running, sent)
  })

  it.runIf(kind === 'postgresql')(
    'that wait are not sent where another process took their leases meanwhile',
    async () => {
      // It would otherwise take them again itself.
      await start({}, asksForNothing)
      const sent = await large(5)
      await expect.poll(rows).toEqual({ begun: 2, waiting: 3, free: 0 })
      const another = await systemOn(fresh.db, { largeSends: { ...largeSends, each: 30_000, all: 30_000 } })
      await fresh.db.pool.query(sql.unsafe`
      update actor set lease_until = now() - interval '1 second', wake_at = now()
      where kind = 'command' and lane = ${agentId} and work_started_at is null`)
      await hanging.received(5)
      hanging.script.release()
      await allDelivered(another, sent)
      await running.close()
      expect(hanging.receipts).toHaveLength(5)
      running = another
    },
  )
})
