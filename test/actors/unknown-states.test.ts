/**
 * Rows of another release, in a state that this one does not know, as a rollback or a rolling restart leaves them: what concerns them waits
 * for whoever can move them, and nothing else does.
 */
import { sql } from 'slonik'
import { v7 as newToken } from 'uuid'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { scopeId, wakeUnwatched } from '../../actors/reconciliation-scopes.ts'
import { instruments } from '../../actors/system.ts'
import { vitalsOf } from '../../actors/vitals.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'

const didNotHear = 'an actor cannot be moved, and did not hear what it was sent'

describe.each(eitherDatabase)('a row of an unknown state on %s', (kind) => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem(kind)
  })
  afterAll(() => running.close())
  const told = (actor: string) =>
    running.lines.filter(({ message, fields }) => message === didNotHear && fields['actor'] === actor)

  it('of a scope keeps no other from being woken, is told of once, and ends no loop', async () => {
    const { db, viewer, system } = running
    const { id: agentId } = await system.agents.register(viewer, 'http://127.0.0.1:9/nobody')
    const unfinished = (tenant: string) =>
      db.pool.query(sql.unsafe`
        insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
        values (${newToken()}, ${viewer.organizationId}, ${agentId}, ${tenant}, 'r', 'task', 'TASK_STATE_WORKING', 1, 1, now(), now())`)
    const [strange, usual] = ['strange', 'usual'].map((tenant) => scopeId({ agentId, tenant }))
    const snapshot = { value: 'sleeping', status: 'active', context: { agentId, tenant: 'strange' } }
    await db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, timers, created_at, updated_at)
      values ('reconciliation', ${strange ?? ''}, ${viewer.organizationId}, ${agentId}, '2', 1, ${JSON.stringify(snapshot)}::jsonb, '{}', now(), now())`)
    for (const tenant of ['strange', 'usual']) await unfinished(tenant)
    for (let n = 0; n < 3; n++) await wakeUnwatched({ db, runtime: system.runtime, instruments })
    const woken = await db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`
      select id from actor where kind = 'reconciliation' and lane = ${agentId} and machine_version = '1'`)
    expect(woken).toEqual([usual])
    expect(told(`reconciliation/${strange}`)).toHaveLength(1)
    const { loops } = vitalsOf(system, db, instruments)
    expect(loops.flatMap(({ name, state, restarts }) => (state === 'up' && restarts === 0 ? [] : [name]))).toEqual([])
  })

  it('of who follows a task takes nothing of what the task’s agent answers', async () => {
    const { db } = running
    const peer = await startRawPeer()
    onTestFinished(() => peer.close())
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'ask' })).id)
    const [localId, taskId] = [String(result?.localId), String(result?.taskId)]
    const follower = sql.fragment`kind = 'subscription' and id = ${localId}`
    const isResting = async () =>
      db.pool.exists(sql.type(z.object({ id: z.string() }))`select id from actor where ${follower} and work is null`)
    await expect.poll(isResting).toBe(true)
    await db.pool.query(sql.unsafe`
      update actor set snapshot = jsonb_set(snapshot, '{value}', '"dozing"'), machine_version = '2', wake_at = null where ${follower}`)
    const reply = await running.finished((await running.send(agentId, { text: 'blue', taskId })).id)
    expect(reply).toMatchObject({ status: 'succeeded', result: { localId } })
    expect(told(`subscription/${localId}`)).toHaveLength(1)
  })
})
