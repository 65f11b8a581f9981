/**
 * PostgreSQL crashes while commands are under way, and comes back. The process stays, nothing accepted is lost, nothing is
 * delivered twice, and what is known is recorded once the database answers again.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

describe('a PostgreSQL that crashes', () => {
  let postgres: TestPostgres
  let db: Database
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    // The tests' own server acknowledges before it writes; a user's does not, and this is about what it acknowledged.
    postgres = await startPostgres({ settings: ['synchronous_commit=on'] })
    db = await openDatabase({ kind: 'postgresql', url: postgres.url })
    await db.raw((client) => migrateUp(client, migrations))
    running = await systemOn(db)
    peer = await startRawPeer()
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  })
  afterAll(async () => {
    await running.close()
    await db.close()
    await postgres.stop()
    await peer.close()
  })

  it('costs no accepted command its outcome: what the agent had answered is recorded when it is back', async () => {
    peer.script.holdReplies()
    const sent = await Promise.all(
      Array.from({ length: 10 }, (_, i) => running.send(agentId, { text: 'direct' }, `c${i}`)),
    )
    await peer.received(10)
    await postgres.crash('quit')
    // The answers arrive while there is no database to write them to.
    peer.script.release()
    await postgres.recover()
    const done = await Promise.all(sent.map(({ id }) => running.finished(id)))
    expect(done.map((command) => command.status)).toEqual(sent.map(() => 'succeeded'))
    expect(sent.map(({ messageId }) => peer.receiptsOf(messageId))).toEqual(sent.map(() => 1))
  })

  it('is no failure of an agent whose stream ends meanwhile: nothing is told of it, and it is followed again', async () => {
    const { id } = await running.send(agentId, { text: 'hold' }, 'talks on')
    const { result } = await running.finished(id)
    const localId = String(result?.localId)
    await expect.poll(() => peer.callsOf('SubscribeToTask')).toBe(1)
    const taskId = peer.taskIds().at(-1)
    await postgres.crash('quit')
    // Nobody can ask now whether the stream brought anything.
    peer.script.emit(String(taskId), { statusUpdate: 'no such thing' })
    await postgres.recover()
    await expect.poll(() => peer.callsOf('SubscribeToTask'), { timeout: 30_000 }).toBe(2)
    peer.script.finish()
    await running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    const Told = z.object({ event: z.string(), facts: z.array(z.string()) })
    const log = await db.pool.any(sql.type(Told)`
      select event, facts from actor_log where kind = 'subscription' and actor_id = ${localId}`)
    expect(
      log.filter(({ event, facts }) => event.includes('xstate.error') || facts.includes('subscription.failing')),
    ).toEqual([])
  })

  it('leaves the process working: later commands are delivered as ever', async () => {
    const { id, messageId } = await running.send(agentId, { text: 'direct' }, 'later')
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
    expect(peer.receiptsOf(messageId)).toBe(1)
    expect(running.system.supervisor.snapshot.matches('running')).toBe(true)
  })
})

describe('an agent that hangs', () => {
  let running: RunningSystem
  let hanging: RawPeer
  let healthy: RawPeer
  beforeAll(async () => {
    const { freshSystem } = await import('../support/system.ts')
    running = await freshSystem('postgresql')
    hanging = await startRawPeer()
    healthy = await startRawPeer()
  })
  afterAll(async () => {
    hanging.script.release()
    await running.close()
    await hanging.close()
    await healthy.close()
  })

  it('does not take every place from the others', async () => {
    const register = async (peer: RawPeer) => (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    const [stuckId, wellId] = [await register(hanging), await register(healthy)]
    hanging.script.holdReplies()
    await Promise.all(Array.from({ length: 300 }, (_, i) => running.send(stuckId, { text: 'direct' }, `h${i}`)))
    const { laneLimit } = running.system.kinds['command'] ?? { laneLimit: 0 }
    await hanging.received(laneLimit)
    const { id } = await running.send(wellId, { text: 'direct' }, 'well')
    expect(await running.finished(id)).toMatchObject({ status: 'succeeded' })
    // A claim may take a few of one lane at once.
    expect(hanging.receipts.length).toBeLessThan(laneLimit + 20)
  })
})
