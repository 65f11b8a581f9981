/**
 * What stands where in a task's view: what was missed when it was said is shown where its agent's history has it, however many
 * messages come at once. A rebuild shows the same.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rebuildTask } from '../../actors/rebuild.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { followsNothing, Scopes } from './reconciliation-turns.ts'

const json = { 'content-type': 'application/json' }

describe.each(eitherDatabase)('a task’s messages on %s', (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  beforeEach(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    running = await systemOn(fresh.db, { rhythm: followsNothing })
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  })
  afterEach(async () => {
    await running.close()
    await peer.close()
    await fresh.close()
  })

  async function sent(text: string) {
    const command = await running.finished((await running.send(agentId, { text })).id)
    expect(command.status).toBe('succeeded')
    return { localId: String(command.result?.localId), remoteId: String(command.result?.taskId) }
  }
  async function textsOf(localId: string): Promise<readonly unknown[]> {
    const { messages } = await running.task(localId, () => true)
    return messages.flatMap(({ parts }) => parts.map(({ value }) => value))
  }
  /** The next look at the task shows such a history, behind what it was sent. */
  async function looked(localId: string, remoteId: string, texts: readonly string[]): Promise<void> {
    const { messages, version } = await running.task(localId, () => true)
    const own = messages.filter(({ role }) => role === 'user').map(({ id }) => id)
    const history = [
      ...own.map((messageId) => ({ messageId, role: 'ROLE_USER', parts: [{ text: 'hold' }] })),
      ...texts.map((text) => ({ messageId: `m-${text}`, role: 'ROLE_AGENT', parts: [{ text }] })),
    ]
    const task = { id: remoteId, status: { state: 'TASK_STATE_WORKING' }, history }
    peer.script.fault('GetTask', { fault: 'body', headers: json, body: JSON.stringify(task) })
    const scopes = new Scopes(running)
    await scopes.silence()
    await scopes.turn(agentId)
    await running.task(localId, (view) => view.version > version)
  }
  async function isRebuiltAlike(localId: string): Promise<void> {
    const shown = await textsOf(localId)
    const rebuilt = await rebuildTask(fresh.db.pool, running.viewer.organizationId, localId)
    expect(rebuilt).toMatchObject({ repaired: false })
    expect(await textsOf(localId)).toEqual(shown)
  }

  it('that were missed are shown where the agent’s history has them', async () => {
    const { localId, remoteId } = await sent('hold')
    await looked(localId, remoteId, ['first', 'fourth'])
    await looked(localId, remoteId, ['first', 'second', 'third', 'fourth', 'fifth'])
    expect(await textsOf(localId)).toEqual(['hold', 'first', 'second', 'third', 'fourth', 'fifth'])
    await isRebuiltAlike(localId)
  })

  it('keep their order when thousands of them come at once', async () => {
    const { localId, remoteId } = await sent('hold')
    const many = Array.from({ length: 6_000 }, (_, n) => `${(n * 7_919) % 6_000}`)
    await looked(localId, remoteId, many)
    expect(await textsOf(localId)).toEqual(['hold', ...many])
    // All of them are known now, and are read in several statements.
    const more = [...many.slice(0, 10), 'missed', ...many.slice(10), 'last']
    await looked(localId, remoteId, more)
    expect(await textsOf(localId)).toEqual(['hold', ...more])
    await isRebuiltAlike(localId)
  })
})
