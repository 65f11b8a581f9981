/**
 * A brief outage while work is given back that never began: it is outlasted, for what ran out instead would be in doubt. A large send that
 * finds no room is such work.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DatabaseBusy } from '../../persistence/admission.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { rowsOf, sendLarge } from './large-rows.ts'

describe.each(eitherDatabase)('a large send without room, and an outage on %s', (kind) => {
  let fresh: FreshDatabase
  let hanging: RawPeer
  let running: RunningSystem
  let agentId: string
  /** How many statements more that say of one row whether its work has begun, or give it back, are turned away. */
  let refused: number
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
  })
  afterAll(() => fresh.close())
  beforeEach(async () => {
    refused = 0
    hanging = await startRawPeer()
    hanging.script.holdReplies()
  })
  afterEach(async () => {
    hanging.script.release()
    await running.close()
    await hanging.close()
  })

  const start = async (limits: object = {}): Promise<void> => {
    const pool = new Proxy(fresh.db.pool, {
      get(target, name) {
        const method: unknown = Reflect.get(target, name)
        if (name !== 'query' || typeof method !== 'function') return method
        return (query: { readonly sql: string }) => {
          if (refused > 0 && query.sql.includes('update actor') && refused-- > 0)
            return Promise.reject(new DatabaseBusy())
          return method.call(target, query)
        }
      },
    })
    // The database of these tests is one object, whatever of it is a getter.
    const db = Object.create(fresh.db, { pool: { value: pool } })
    running = await systemOn(db, { largeSends: { all: 6_000, each: 3_000, largeBytes: 1_000, ...limits } })
    agentId = (await running.system.agents.register(running.viewer, hanging.cardUrl)).id
  }
  const send = (n: number) => sendLarge(running, agentId, n)
  const rows = () => rowsOf(fresh.db, agentId)
  const delivered = async (by: RunningSystem, sent: readonly { id: string; messageId: string }[]): Promise<void> => {
    hanging.script.release()
    for (const { id, messageId } of sent) {
      expect(await by.finished(id)).toMatchObject({ status: 'succeeded' })
      expect(hanging.receiptsOf(messageId)).toBe(1)
    }
  }

  it('that is met by what says that it waits leaves nothing begun', async () => {
    await start()
    const sent = await send(2)
    await hanging.received(2)
    refused = 3
    sent.push(...(await send(1)))
    await expect.poll(rows, { timeout: 3_000 }).toEqual({ begun: 2, waiting: 1, free: 0 })
    expect(refused).toBe(0)
    await delivered(running, sent)
  })

  it('that is met by its being put off leaves nothing begun', async () => {
    await start({ waitingEach: 0 })
    const sent = await send(2)
    await hanging.received(2)
    refused = 2
    sent.push(...(await send(1)))
    await expect.poll(rows, { timeout: 3_000 }).toEqual({ begun: 2, waiting: 0, free: 1 })
    expect(refused).toBe(0)
    await delivered(running, sent)
  })

  it('that is met by a drain leaves nothing begun', async () => {
    await start()
    const sent = await send(3)
    await expect.poll(rows).toEqual({ begun: 2, waiting: 1, free: 0 })
    refused = 2
    const closed = running.close()
    await expect.poll(() => refused).toBe(0)
    await expect.poll(rows, { timeout: 3_000 }).toEqual({ begun: 2, waiting: 0, free: 1 })
    hanging.script.release()
    await closed
    await start()
    await delivered(running, sent)
  })
})
