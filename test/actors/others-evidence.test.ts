/**
 * What another said is no evidence: one agent may be registered twice, a person may choose one message id for several sends, and a list may
 * show more than was asked for. A message speaks for a send only where it cannot be another's.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { followsNothing, patience } from './reconciliation-turns.ts'

const json = { 'content-type': 'application/json' }
const messageId = 'chosen by a person'
const arrives = { fault: 'reset', performed: true } as const
const says = (value: unknown) => ({ fault: 'body', headers: json, body: JSON.stringify(value) }) as const
const isLost = { fault: 'reset', performed: false } as const

describe.each(eitherDatabase)('an uncertain send, on %s', (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let first: string
  beforeEach(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    running = await systemOn(fresh.db, { rhythm: followsNothing })
    first = await registered(peer.cardUrl)
  })
  afterEach(async () => {
    await running.close()
    await peer.close()
    await fresh.close()
  })

  const registered = async (cardUrl: string) => (await running.system.agents.register(running.viewer, cardUrl)).id
  const sent = async (agentId: string, text: string, contextId?: string) => {
    const body = { text, messageId, ...(contextId === undefined ? {} : { contextId }) }
    return running.finished((await running.send(agentId, body)).id)
  }
  const Evidence = z.object({
    outcome: z.string(),
    remoteId: z.string().nullable(),
    reason: z.string().nullable(),
    isWhole: z.boolean(),
  })
  const seenOf = ({ id }: { readonly id: string }) =>
    fresh.db.pool.maybeOne(sql.type(Evidence)`
      select outcome, remote_task_id as "remoteId", reason, is_whole as "isWhole" from command_evidence
      where command_id = ${id} and outcome <> 'pending'`)
  async function evidenceOf(command: { readonly id: string }) {
    await expect.poll(() => seenOf(command), patience).not.toBeNull()
    return seenOf(command)
  }
  const isShared = {
    outcome: 'unsearchable',
    isWhole: false,
    remoteId: null,
    reason: 'Another command was sent under the same message id.',
  }
  async function otherPeer(): Promise<RawPeer> {
    const other = await startRawPeer({ binding: 'HTTP+JSON' })
    onTestFinished(() => other.close())
    return other
  }

  it('is not taken for what another registration of its agent was answered to', async () => {
    const second = await registered(peer.origin)
    expect((await sent(second, 'hold')).status).toBe('succeeded')
    peer.script.fault('SendMessage', isLost)
    expect(await evidenceOf(await sent(first, 'other words'))).toEqual(isShared)
  })

  it('is not taken for what another registration of its agent may have said, either', async () => {
    const second = await registered(peer.origin)
    peer.script.fault('SendMessage', arrives)
    const { id } = await sent(second, 'hold')
    expect(await evidenceOf({ id })).toMatchObject({ outcome: 'found' })
    peer.script.fault('SendMessage', isLost)
    expect(await evidenceOf(await sent(first, 'other words'))).toEqual(isShared)
  })

  it('is not found in a task that another registration, at another address, was answered with', async () => {
    const front = await otherPeer()
    await sent(first, 'hold')
    const { result } = await sent(first, 'hold')
    await sent(first, 'hold')
    const task = {
      id: result?.taskId,
      status: { state: 'TASK_STATE_WORKING' },
      history: [{ messageId, role: 'ROLE_USER', parts: [{ text: 'hold' }] }],
    }
    front.script.fault('ListTasks', says({ tasks: [task] }), Infinity)
    front.script.fault('SendMessage', isLost)
    expect(await evidenceOf(await sent(await registered(front.cardUrl), 'other words'))).toEqual(isShared)
  })

  it('is found though another agent was sent its words under the same id', async () => {
    const other = await otherPeer()
    expect((await sent(await registered(other.cardUrl), 'hold')).status).toBe('succeeded')
    peer.script.fault('SendMessage', arrives)
    expect(await evidenceOf(await sent(first, 'hold'))).toMatchObject({
      outcome: 'found',
      remoteId: peer.taskIds().at(-1),
    })
  })

  it('is not found in another context than the one it named', async () => {
    const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'hold' }], contextId: 'another' }
    await fetch(`${peer.origin}/a2a/rest/message:send`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ message, configuration: { returnImmediately: true } }),
    })
    peer.script.fault('SendMessage', isLost)
    expect(await evidenceOf(await sent(first, 'hold', 'its own'))).toMatchObject({ outcome: 'absent', remoteId: null })
  })

  it('is not said to be nowhere by a task of which an agent that names its questions alike shows the end', async () => {
    const said = { messageId: 'question', role: 'ROLE_USER', parts: [{ text: 'again' }] }
    const task = {
      id: 'talkative',
      status: { state: 'TASK_STATE_WORKING' },
      history: Array.from({ length: 100 }, () => said),
    }
    peer.script.fault('ListTasks', says({ tasks: [task] }), Infinity)
    peer.script.fault('GetTask', says(task), Infinity)
    peer.script.fault('SendMessage', isLost)
    expect(await evidenceOf(await sent(first, 'hold'))).toMatchObject({ outcome: 'absent', isWhole: false })
  })
})
