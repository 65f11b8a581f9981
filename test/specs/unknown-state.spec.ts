/**
 * An agent with words of its own for a task's state, which A2A does not have: the task keeps the state that is known, is followed
 * on, and shows what was said; the event keeps the agent's word.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

describe('a state that A2A does not have', () => {
  let house: TestConsole
  let peer: RawPeer
  beforeAll(async () => {
    house = await startConsole({ database: 'pglite', uiDirectory: null })
    peer = await startRawPeer()
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  it('says nothing of the state, and takes nothing from the rest', async () => {
    const agentId = await house.api.register(peer.cardUrl)
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    await house.task(localId, ({ state }) => state === 'TASK_STATE_WORKING')
    await expect.poll(() => peer.subscribed().length, { timeout: 15_000 }).toBeGreaterThan(0)
    const [taskId = ''] = peer.taskIds()
    const said = (state: string) => ({
      statusUpdate: {
        taskId,
        status: { state, message: { messageId: state, role: 'ROLE_AGENT', parts: [{ text: `I am ${state}.` }] } },
      },
    })
    // The second is the console's own word for a reply without a task, and final there.
    for (const state of ['TASK_STATE_PONDERING', 'MESSAGE_ONLY']) peer.script.emit(taskId, said(state))
    const view = await house.task(localId, ({ messages }) => messages.some(({ id }) => id === 'MESSAGE_ONLY'))
    expect(view.state).toBe('TASK_STATE_WORKING')
    expect(view.messages.map(({ id }) => id)).toContain('TASK_STATE_PONDERING')
    peer.script.finish()
    const done = await house.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    const states = done.transitions.map(({ state }) => state)
    expect(states.filter((state) => /PONDERING|MESSAGE_ONLY/.test(state))).toEqual([])
    const events = await house.db.pool.anyFirst(sql.type(z.object({ event: z.string() }))`
      select event from task_event where task_id = ${localId}`)
    expect(events.filter((event) => event.includes('TASK_STATE_PONDERING'))).toHaveLength(1)
  })
})
