/**
 * Agents that are not what they were: moved to another address, behind a list that shows less than there is, or with a stream that
 * tells its story from the start each time. What was sent to them is found all the same, and they are not asked for ever.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Command } from '../../domain/command.ts'
import { instruments, type SystemOptions } from '../../actors/system.ts'
import { signer, signText } from '../a2a/signing.ts'
import { failuresOf } from '../support/attempts.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const json = { 'content-type': 'application/json' }
const sse = { 'content-type': 'text/event-stream' }
const working = 'TASK_STATE_WORKING'
const says = (value: unknown) => ({ fault: 'body', headers: json, body: JSON.stringify(value) }) as const
const unknownTask = says({ error: { code: 404, status: 'NOT_FOUND', message: 'Never heard of it.' } })

describe.each(eitherDatabase)('an agent on %s', (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  beforeEach(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
  })
  afterEach(async () => {
    await running.close()
    await peer.close()
    await fresh.close()
  })

  async function begin(options: Partial<SystemOptions> = {}): Promise<Scopes> {
    running = await systemOn(fresh.db, options)
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    return new Scopes(running)
  }
  let aheadMs = 0
  /** With a clock that can be put ahead, and nothing followed by itself. */
  const beginAhead = (options: Partial<SystemOptions> = {}): Promise<Scopes> => {
    aheadMs = 0
    const monotonic = (): number => performance.now() + aheadMs
    return begin({ rhythm: followsNothing, instruments: { ...instruments, monotonic }, ...options })
  }
  const sent = async (text: string): Promise<Command> => running.finished((await running.send(agentId, { text })).id)

  /** Its card names another address, where the task has ended. */
  async function moved(taskId: unknown): Promise<RawPeer> {
    const next = await startRawPeer({ binding: 'HTTP+JSON' })
    onTestFinished(() => next.close())
    peer.script.fault('GetAgentCard', says(await (await fetch(next.cardUrl)).json()), Infinity)
    next.script.fault('GetTask', says({ id: taskId, status: { state: 'TASK_STATE_COMPLETED' } }), Infinity)
    return next
  }

  it('that moved is found at its new address, though the old one only says that it knows no task', async () => {
    const scopes = await beginAhead()
    const { result } = await sent('hold')
    const localId = String(result?.localId)
    await moved(result?.taskId)
    peer.script.fault('GetTask', unknownTask, Infinity)
    peer.script.fault('ListTasks', says({ tasks: [], nextPageToken: '' }), Infinity)
    await scopes.turn(agentId)
    expect(await scopes.facts(localId)).toContain('task.lost')
    // A card of some seconds ago is no news.
    aheadMs = 15_000
    await scopes.dueLooks()
    await scopes.turn(agentId)
    expect((await running.task(localId, () => true)).state).toBe('TASK_STATE_COMPLETED')
  })

  /** As if a quarter of an hour had passed since the agent showed its card last. */
  const cardGrowsOld = () =>
    fresh.db.pool.query(sql.unsafe`update agent_card set last_seen_at = last_seen_at - interval '15 minutes'`)

  it('that moved is noticed though its old address still answers as if nothing had happened', async () => {
    const scopes = await beginAhead()
    const { result } = await sent('hold')
    const next = await moved(result?.taskId)
    aheadMs = 15_000
    await scopes.turn(agentId)
    expect(next.callsOf('GetTask')).toBe(0)
    await cardGrowsOld()
    await scopes.turn(agentId)
    expect((await running.task(String(result?.localId), () => true)).state).toBe('TASK_STATE_COMPLETED')
  })

  it('that does not show its card any more is read as before, and not asked for it at each turn', async () => {
    const scopes = await beginAhead()
    await sent('hold')
    peer.script.fault('GetAgentCard', { fault: 'status', status: 503 }, Infinity)
    await cardGrowsOld()
    aheadMs = 15_000
    const before = peer.callsOf('GetAgentCard')
    const looks = peer.callsOf('GetTask')
    for (let turn = 0; turn < 2; turn++) expect((await scopes.turn(agentId)).context).toMatchObject({ failures: 0 })
    expect(peer.callsOf('GetTask')).toBeGreaterThanOrEqual(looks + 2)
    expect(peer.callsOf('GetAgentCard')).toBe(before + 1)
  })

  it('whose old card is followed by one that is not trusted is not read any more', async () => {
    const key = await signer('pinned')
    const scopes = await beginAhead({
      cards: { requireSigned: false, trustedKeys: { [peer.origin]: [key.pinned] } },
    })
    await sent('hold')
    const card = z.looseObject({}).parse(await (await fetch(peer.cardUrl)).json())
    const signatures = [await signText(key, 'another card')]
    peer.script.fault('GetAgentCard', says({ ...card, signatures }), Infinity)
    await cardGrowsOld()
    aheadMs = 15_000
    const looks = peer.callsOf('GetTask')
    const { context } = await scopes.turn(agentId)
    expect(context).toMatchObject({ failures: 1, reason: 'Agent Card trust policy rejected this connection.' })
    expect(peer.callsOf('GetTask')).toBe(looks)
  })

  it.each(['ROLE_AGENT', 'ROLE_USER'])(
    'whose list shows less of a task than it has is asked for the task, whoever said what is shown: %s',
    async (role) => {
      const scopes = await begin({ rhythm: followsNothing })
      peer.script.fault('ListTasks', { fault: 'status', status: 503 }, Infinity)
      peer.script.fault('SendMessage', { fault: 'reset', performed: true })
      const { id, status } = await sent('hold')
      expect(status).toBe('uncertain')
      await expect.poll(async () => (await evidenceOf(id))?.outcome, patience).toBe('unreadable')
      peer.script.heal()
      const history = [{ messageId: 'the last', role, parts: [{ text: 'x' }] }]
      const task = { id: peer.taskIds().at(-1), status: { state: working }, history }
      peer.script.fault('ListTasks', says({ tasks: [task], nextPageToken: '' }), Infinity)
      await scopes.dueLooks()
      await scopes.begin(agentId)
      await expect.poll(async () => (await evidenceOf(id))?.outcome, patience).toBe('found')
    },
  )

  it('that shows no words anywhere is not said to have been looked at whole', async () => {
    await begin({ rhythm: followsNothing })
    const task = { id: 'mute', status: { state: working } }
    peer.script.fault('ListTasks', says({ tasks: [task], nextPageToken: '' }), Infinity)
    peer.script.fault('GetTask', says(task), Infinity)
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id } = await sent('hold')
    await expect.poll(() => evidenceOf(id), patience).toMatchObject({ outcome: 'absent', isWhole: false })
  })

  it.each([
    ['states without times', [{ state: 'TASK_STATE_SUBMITTED' }, { state: working }]],
    ['a state that the task has left', [{ state: 'TASK_STATE_SUBMITTED' }]],
  ])('whose stream begins anew each time, with %s, is followed less and less often', async (_what, statuses) => {
    await begin()
    const { result } = await sent('ask')
    const taskId = String(result?.taskId)
    await running.task(String(result?.localId), ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const body = statuses.map((status) => `data: ${JSON.stringify({ statusUpdate: { taskId, status } })}\n\n`).join('')
    peer.script.fault('SubscribeToTask', { fault: 'body', headers: sse, body }, Infinity)
    const task = { id: taskId, status: { state: working } }
    peer.script.fault('GetTask', says(task), Infinity)
    peer.script.fault('SendMessage', says({ task }))
    await running.finished((await running.send(agentId, { text: 'green', taskId })).id)
    await expect.poll(() => failuresOf(fresh.db, String(result?.localId)), patience).toBeGreaterThanOrEqual(3)
  })

  it('whose message on the stream of a task does not name it speaks of that one', async () => {
    await begin()
    const { result } = await sent('hold')
    await expect.poll(() => peer.subscribed().length, patience).toBe(1)
    const said = { messageId: 'unnamed', role: 'ROLE_AGENT', parts: [{ text: 'Half of it is done.' }] }
    peer.script.emit(String(result?.taskId), { message: said })
    const view = await running.task(String(result?.localId), ({ messages }) => messages.length > 1)
    expect(view.messages.map(({ id }) => id)).toContain('unnamed')
  })

  const Evidence = z.object({ outcome: z.string().nullable(), isWhole: z.boolean().nullable() })
  const evidenceOf = (id: string) =>
    fresh.db.pool.maybeOne(sql.type(Evidence)`
      select outcome, is_whole as "isWhole" from command_evidence where command_id = ${id}`)
})
