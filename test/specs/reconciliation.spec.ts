/**
 * What a stream misses is healed: by asking for each unfinished task, and by the agent's list. The subscriptions of these
 * consoles follow nothing, so whatever they show came by reconciliation.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { scopeId } from '../../actors/reconciliation-scopes.ts'
import { followsNothing, Scopes } from '../actors/reconciliation-turns.ts'
import { bothDatabases } from '../support/databases.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const Count = z.object({ count: z.number() })

describe.each(bothDatabases)('reconciliation on %s', (kind) => {
  let console_: TestConsole
  let scopes: Scopes
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    console_ = await startConsole({ database: kind, system: { rhythm: followsNothing }, uiDirectory: null })
    scopes = new Scopes(console_)
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    agentId = await console_.api.register(peer.cardUrl)
  })
  afterAll(async () => {
    await console_.close()
    await peer.close()
  })

  it('learns by asking that a task has ended, with what it made', async () => {
    const { localId } = await console_.api.send(agentId, { text: 'hold' })
    expect((await scopes.turn(agentId)).value).toBe('pausing')
    peer.script.finish('Done at last.')
    const row = await scopes.turn(agentId)
    const view = await console_.api.task(localId)
    expect(view).toMatchObject({ state: 'TASK_STATE_COMPLETED', artifacts: [{ parts: [{ value: 'Done at last.' }] }] })
    expect(row).toMatchObject({ value: 'resting', wakeAt: null, timers: {} })
  })

  it('leaves a scope in which nothing is unfinished alone, for good', async () => {
    const before = await scopes.row(agentId)
    expect(before).toMatchObject({ value: 'resting', work: null, wakeAt: null })
    const asked = peer.callsOf('GetTask')
    await scopes.silence()
    await scopes.wake()
    expect(await scopes.row(agentId)).toEqual(before)
    expect(peer.callsOf('GetTask')).toBe(asked)
  })

  it('learns by the list what asking does not show, and takes no foreign task from it', async () => {
    const { localId } = await console_.api.send(agentId, { text: 'hold' })
    const message = { messageId: 'foreign', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
    const headers = { 'content-type': 'application/json' }
    await fetch(`${peer.origin}/a2a/rest/message:send`, { method: 'POST', headers, body: JSON.stringify({ message }) })
    peer.script.finish()
    peer.script.fault('GetTask', { fault: 'error', code: -32603, message: 'Not today.' }, Infinity)
    const refused = await scopes.turn(agentId)
    expect(refused).toMatchObject({ value: 'backingOff', context: { reason: 'The agent refused: Not today.' } })
    peer.script.heal()
    // Three passes see the task; the fourth is followed by the list.
    peer.script.fault('GetTask', { fault: 'body', body: JSON.stringify(working(peer, localId)) }, Infinity)
    await console_.close
    const tasks = await console_.db.pool.oneFirst(sql.type(Count)`select count(*)::int as count from task`)
    expect(tasks).toBeGreaterThan(0)
    peer.script.heal()
    await scopes.turn(agentId)
    expect((await console_.api.task(localId)).state).toBe('TASK_STATE_COMPLETED')
    expect(await scopes.facts(scopeId({ agentId, tenant: '' }))).toContain('reconciliation.woken')
  })
})

const working = (_peer: RawPeer, _id: string): unknown => ({})
void startSdkPeer
