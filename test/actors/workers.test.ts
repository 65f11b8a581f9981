/**
 * Leases, between processes: two systems on one PostgreSQL stand for two processes; the embedded database has one owner
 * after another. What had begun is never begun again.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandErrors } from '../../domain/command.ts'
import { openDatabase } from '../../persistence/database.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

describe('two workers on one PostgreSQL', () => {
  let fresh: FreshDatabase
  let other: FreshDatabase['db']
  let one: RunningSystem
  let two: RunningSystem
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    other = await openDatabase(fresh.profile)
    one = await systemOn(fresh.db)
    two = await systemOn(other)
    peer = await startRawPeer()
    agentId = (await one.system.agents.register(one.viewer, peer.cardUrl)).id
  })
  afterAll(async () => {
    await one.close()
    await two.close()
    await other.close()
    await fresh.close()
    await peer.close()
  })

  it('deliver every command exactly once, whoever accepted it', async () => {
    const sent = await Promise.all(
      Array.from({ length: 150 }, (_, i) => (i % 2 ? one : two).send(agentId, { text: 'direct' }, `both-${i}`)),
    )
    const done = await Promise.all(sent.map(({ id }, i) => (i % 2 ? two : one).finished(id)))
    expect(new Set(done.map((command) => command.status))).toEqual(new Set(['succeeded']))
    expect(new Set(sent.map(({ messageId }) => peer.receiptsOf(messageId)))).toEqual(new Set([1]))
  })

  it('discards the late result of a holder whose lease went to somebody else', async () => {
    peer.script.holdReplies()
    const before = peer.receipts.length
    const { id, messageId } = await one.send(agentId, { text: 'direct' })
    await peer.received(before + 1)
    // As if the holder had been stopped for longer than its lease: the database's clock alone decides.
    await fresh.db.pool.query(sql.unsafe`
      update actor set lease_until = now() - interval '1 second', wake_at = now() where kind = 'command' and id = ${id}`)
    const command = await two.finished(id)
    expect(command).toMatchObject({ status: 'uncertain', error: commandErrors.leaseExpired })
    peer.script.release()
    await one.system.runtime.idle()
    expect(await two.system.commands.find(two.viewer, id)).toEqual(command)
    expect(peer.receiptsOf(messageId)).toBe(1)
  })
})

describe.each(eitherDatabase)('ending and beginning again on %s', (kind) => {
  let fresh: FreshDatabase
  let peer: RawPeer
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer()
  })
  afterAll(async () => {
    await fresh.close()
    await peer.close()
  })

  it('waits for a delivery under way, so that a clean drain leaves nothing uncertain', async () => {
    const running = await systemOn(fresh.db)
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    peer.script.holdReplies()
    const before = peer.receipts.length
    const { id } = await running.send(agentId, { text: 'direct' })
    await peer.received(before + 1)
    const stopped = running.close()
    peer.script.release()
    await stopped
    const next = await systemOn(fresh.db, { works: false })
    expect(await next.system.commands.find(next.viewer, id)).toMatchObject({ status: 'succeeded', error: null })
    await next.close()
  })

  it('accepts without working, and a later worker delivers', async () => {
    const clerk = await systemOn(fresh.db, { works: false })
    const { id: agentId } = await clerk.system.agents.register(clerk.viewer, peer.cardUrl)
    const { id, status, messageId } = await clerk.send(agentId, { text: 'direct' })
    expect(status).toBe('pending')
    expect(peer.receiptsOf(messageId)).toBe(0)
    await clerk.close()
    const worker = await systemOn(fresh.db)
    expect(await worker.finished(id)).toMatchObject({ status: 'succeeded' })
    expect(peer.receiptsOf(messageId)).toBe(1)
    await worker.close()
  })
})
