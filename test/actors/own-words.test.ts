/**
 * A person's own words in their task's conversation: all that was sent stands there, before what it caused, whatever its message ids are
 * and whichever way the agent's answer came first. A rebuild shows the same.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { rebuildTask } from '../../actors/rebuild.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { patience } from './reconciliation-turns.ts'

const json = { 'content-type': 'application/json' }
const working = 'TASK_STATE_WORKING'

describe.each(eitherDatabase)('own words on %s', (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  let localId: string
  let taskId: string
  beforeEach(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    running = await systemOn(fresh.db)
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    const { result } = await running.finished((await running.send(agentId, { text: 'hold', messageId: 'mine' })).id)
    localId = String(result?.localId)
    taskId = String(result?.taskId)
    await expect.poll(() => peer.subscribed().length, patience).toBe(1)
  })
  afterEach(async () => {
    await running.close()
    await peer.close()
    await fresh.close()
  })

  async function texts(): Promise<readonly unknown[]> {
    const { messages } = await running.task(localId, () => true)
    return messages.flatMap(({ parts }) => parts.map(({ value }) => value))
  }
  async function isRebuiltAlike(): Promise<void> {
    const shown = await texts()
    const rebuilt = await rebuildTask(fresh.db.pool, running.viewer.organizationId, localId)
    expect(rebuilt).toMatchObject({ repaired: false })
    expect(await texts()).toEqual(shown)
  }
  const answered = (history: readonly unknown[] = []): void =>
    peer.script.fault('SendMessage', {
      fault: 'body',
      headers: json,
      body: JSON.stringify({ task: { id: taskId, status: { state: working }, history } }),
    })
  const says = (messageId: string, text: string, role = 'ROLE_AGENT') => ({ messageId, role, parts: [{ text }] })
  const send = async (text: string, messageId: string) => running.send(agentId, { text, taskId, messageId })
  /** Sent, and heard on the stream before it is answered. */
  async function caused(sends: readonly (readonly [text: string, messageId: string])[], events: readonly object[]) {
    const ids: string[] = []
    peer.script.holdReplies()
    for (const [nth, [text, messageId]] of sends.entries()) {
      answered()
      const { id } = await send(text, messageId)
      await peer.received(nth + 2)
      ids.push(id)
    }
    const { version } = await running.task(localId, () => true)
    for (const event of events) peer.script.emit(taskId, { ...event })
    await running.task(localId, (view) => view.version >= version + events.length)
    peer.script.release()
    for (const id of ids) expect((await running.finished(id)).status).toBe('succeeded')
  }
  const status = (message: object) => ({ statusUpdate: { taskId, status: { state: working, message } } })

  it('are all shown, whatever id a person chose for them', async () => {
    for (const text of ['other words', 'a third time']) {
      answered()
      await running.finished((await send(text, 'mine')).id)
    }
    expect(await texts()).toEqual(['hold', 'other words', 'a third time'])
    await isRebuiltAlike()
    // What the agent shows of them is no news, in whatever form.
    answered([
      says('mine', 'hold', 'ROLE_USER'),
      says('mine', 'other words!', 'ROLE_USER'),
      says('told', 'Both heard.'),
    ])
    await running.finished((await send('and now', 'another')).id)
    expect(await texts()).toEqual(['hold', 'other words', 'a third time', 'and now', 'Both heard.'])
    await isRebuiltAlike()
  })

  it('stand before the answer that a stream told before they were', async () => {
    await caused(
      [['more', 'second']],
      [status(says('doing', 'Doing more.')), status(says('done', 'Half of it is done.'))],
    )
    expect(await texts()).toEqual(['hold', 'more', 'Doing more.', 'Half of it is done.'])
    await isRebuiltAlike()
  })

  it('stand before what they caused together, where several were on their way', async () => {
    const both = [
      ['more', 'second'],
      ['most', 'third'],
    ] as const
    await caused(both, [status(says('doing', 'Doing both.'))])
    expect(new Set((await texts()).slice(0, 3))).toEqual(new Set(['hold', 'more', 'most']))
    expect((await texts()).slice(3)).toEqual(['Doing both.'])
    await isRebuiltAlike()
  })

  it('stand in the order in which they were told, where several were on their way and nothing was heard meanwhile', async () => {
    const both = [
      ['more', 'second'],
      ['most', 'third'],
    ] as const
    await caused(both, [])
    const told = await fresh.db.pool.anyFirst(sql.type(z.object({ text: z.string() }))`
      select event::jsonb->'message'->'parts'->0->>'text' as text from task_event
      where task_id = ${localId} and source = 'sent' order by position`)
    expect(told).toHaveLength(3)
    expect(await texts()).toEqual(told)
    await isRebuiltAlike()
  })

  it('stand once where the stream shows them first, in another form', async () => {
    const echo = { messageId: 'second', role: 'ROLE_USER', parts: [{ text: 'more ', mediaType: 'text/markdown' }] }
    await caused([['more', 'second']], [{ task: { id: taskId, status: { state: working }, history: [echo] } }])
    expect(await texts()).toEqual(['hold', 'more '])
    await isRebuiltAlike()
  })
})
