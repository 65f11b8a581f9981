/**
 * Reconciliation below HTTP: many tasks in turns, one that cannot be read, pages of a list, and a subscription that misses the
 * end of what it follows.
 */
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { v7 as newToken } from 'uuid'
import { z } from 'zod'
import { openDatabase } from '../../persistence/database.ts'
import { readEvidence } from '../../persistence/evidence.ts'
import { eitherDatabase, freshDatabase } from '../support/databases.ts'
import { deepJson } from '../support/peers/raw-faults.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem, systemOn, type RunningSystem } from '../support/system.ts'
import { archivedSubscription } from '../support/archive.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const Found = z.object({ id: z.string() })
const working = (id: string, messageIds: readonly string[]) => ({
  id,
  contextId: 'c',
  status: { state: 'TASK_STATE_WORKING' },
  history: messageIds.map((messageId) => ({ messageId, role: 'ROLE_USER', parts: [{ text: 'hello' }] })),
})
const page = (tasks: readonly unknown[], nextPageToken = '') =>
  ({ fault: 'body', body: JSON.stringify({ tasks, nextPageToken }) }) as const

describe.each(eitherDatabase)('reconciling on %s', (kind) => {
  let running: RunningSystem
  let scopes: Scopes
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    running = await freshSystem(kind, { rhythm: followsNothing })
    scopes = new Scopes(running)
  })
  beforeEach(async () => {
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  })
  afterEach(async () => {
    await running.system.agents.remove(running.viewer, agentId)
    await peer.close()
  })
  afterAll(() => running.close())

  /** It is looked for at once, so whatever a look is to find has to be there before. */
  async function uncertain(messageId: string = newToken()): Promise<string> {
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id } = await running.send(agentId, { text: 'hello', messageId })
    expect((await running.finished(id)).status).toBe('uncertain')
    return id
  }
  const evidenceOf = async (id: string) => (await readEvidence(running.db.pool, running.viewer, [id])).get(id)
  async function looked(id: string) {
    await expect.poll(async () => (await evidenceOf(id))?.looks, patience).toBe(1)
    return evidenceOf(id)
  }
  const openTasks = (of = agentId) =>
    running.db.pool.anyFirst(sql.type(Found)`
      select id from task where agent_id = ${of} and state in ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING') order by id`)

  const addTasks = (of: string, count: number) =>
    running.db.pool.query(sql.unsafe`
      insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
      select gen_random_uuid(), ${running.viewer.organizationId}, ${of}, '', 'past ' || n, 'task', 'TASK_STATE_WORKING', 1, 0,
        now() - interval '1 hour', now() - interval '1 hour' from generate_series(1, ${count}::int) n`)

  it('takes many tasks in turns, and begins where it left off', async () => {
    const forgetful = await startRawPeer()
    const { id: agent } = await running.system.agents.register(running.viewer, forgetful.cardUrl)
    // Tasks of a past in which this agent had another memory: it answers for each that it does not know it.
    await addTasks(agent, 130)
    const all = await openTasks(agent)
    const first = await scopes.turn(agent)
    expect(first).toMatchObject({ value: 'yielding', context: { after: all[99] } })
    expect(forgetful.callsOf('GetTask')).toBe(100)
    expect(await scopes.turn(agent)).toMatchObject({ value: 'pausing', context: { after: null } })
    expect(forgetful.callsOf('GetTask')).toBe(130)
    expect(await scopes.facts(all[129] ?? '')).toEqual(['task.lost'])
    await forgetful.close()
  })

  it('asks for the other tasks although the first of them cannot be read', async () => {
    for (const { id } of await Promise.all([1, 2, 3].map(() => running.send(agentId, { text: 'hold' }))))
      await running.finished(id)
    peer.script.finish()
    peer.script.fault('GetTask', { fault: 'reset', performed: false }, 1)
    const failed = await scopes.turn(agentId)
    expect(failed).toMatchObject({ value: 'backingOff', context: { failures: 1 } })
    const [first] = await openTasks()
    expect(failed.context.after).toBe(first)
    expect((await scopes.turn(agentId)).value).toBe('pausing')
    expect(await openTasks()).toEqual([first])
    expect((await scopes.turn(agentId)).value).toBe('resting')
  })

  it('leaves a task about which its agent was silent twice out of the next pass, and still reads the list', async () => {
    for (const { id } of await Promise.all([1, 2, 3].map(() => running.send(agentId, { text: 'hold' }))))
      await running.finished(id)
    const reason = 'Agent network request failed.'
    for (const passes of [1, 2]) {
      // Two are answered as ever and the third is not: it is not the agent that is silent.
      peer.script.fault('GetTask', { fault: 'delay', delayMs: 0 }, 2)
      peer.script.fault('GetTask', { fault: 'reset', performed: false }, 1)
      const passed = { value: 'pausing', context: { after: null, failures: 0, passes, reason } }
      expect(await scopes.turn(agentId)).toMatchObject(passed)
      expect(peer.callsOf('GetTask')).toBe(3 * passes)
    }
    expect(await scopes.turn(agentId)).toMatchObject({
      value: 'pausing',
      context: { failures: 0, passes: 3, reason: null },
    })
    expect(peer.callsOf('GetTask')).toBe(8)
    await scopes.turn(agentId)
    expect(peer.callsOf('ListTasks')).toBe(1)
    peer.script.finish()
  })

  it('takes the end of a task for which its agent never answers from the list', async () => {
    const { id } = await running.send(agentId, { text: 'hold' })
    await running.finished(id)
    peer.script.fault('GetTask', { fault: 'reset', performed: false }, Infinity)
    peer.script.finish()
    for (const failures of [1, 2, 3])
      expect(await scopes.turn(agentId)).toMatchObject({ value: 'backingOff', context: { failures } })
    expect(peer.callsOf('ListTasks')).toBe(0)
    expect(await openTasks()).toHaveLength(1)
    expect(await scopes.turn(agentId)).toMatchObject({ value: 'backingOff', context: { failures: 4, passes: 0 } })
    expect(await openTasks()).toEqual([])
    expect((await scopes.turn(agentId)).value).toBe('resting')
    peer.script.heal()
  })

  it('takes what a list tells although one of its tasks cannot be read', async () => {
    const { id } = await running.send(agentId, { text: 'hold' })
    await running.finished(id)
    const [taskId = ''] = peer.taskIds()
    const done = { ...working(taskId, []), status: { state: 'TASK_STATE_COMPLETED' } }
    peer.script.fault('GetTask', { fault: 'reset', performed: false }, Infinity)
    peer.script.fault('ListTasks', page([working('\0', []), done, 'no task']), Infinity)
    for (let n = 0; n < 4; n++) await scopes.turn(agentId)
    expect(await openTasks()).toEqual([])
    expect((await scopes.row(agentId))?.context.listReason).toBeNull()
    peer.script.heal()
  })

  it('does not call a list whole of which one task cannot be read', async () => {
    peer.script.fault('ListTasks', page([working('one', ['other'])]))
    expect(await looked(await uncertain())).toMatchObject({ outcome: 'absent', isWhole: true })
    peer.script.fault('ListTasks', page([working('\0', []), working('one', ['other'])]))
    expect(await looked(await uncertain())).toMatchObject({ outcome: 'absent', isWhole: false })
  })

  it('says of an agent that is gone from the network what it tried, and counts that as a look', async () => {
    const doomed = await startRawPeer()
    const { id: agent } = await running.system.agents.register(running.viewer, doomed.cardUrl)
    doomed.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id } = await running.send(agent, { text: 'hello' })
    expect((await running.finished(id)).status).toBe('uncertain')
    expect(await looked(id)).toMatchObject({ outcome: 'absent' })
    await doomed.close()
    await scopes.dueLooks()
    const failed = { value: 'backingOff', context: { failures: 1, reason: 'Agent network request failed.' } }
    expect(await scopes.turn(agent)).toMatchObject(failed)
    expect(await evidenceOf(id)).toMatchObject({ outcome: 'unreadable', looks: 2, nextLookAt: expect.any(String) })
  })

  it('does not read a task again and again that is larger than what may be read', async () => {
    const { id } = await running.send(agentId, { text: 'hold' })
    const localId = (await running.finished(id)).result?.localId ?? ''
    peer.script.fault('GetTask', { fault: 'flood', bytes: 30 * 1024 * 1024 }, Infinity)
    expect(await scopes.turn(agentId)).toMatchObject({ value: 'pausing', context: { failures: 0 } })
    expect((await scopes.turn(agentId)).value).toBe('pausing')
    expect(peer.callsOf('GetTask')).toBe(1)
    expect(await scopes.facts(localId)).toContain('task.lost')
  })

  it('says of an agent that shows no card where it looked for one', async () => {
    peer.script.fault('GetAgentCard', { fault: 'status', status: 503 }, Infinity)
    await addTasks(agentId, 1)
    const { value, context } = await scopes.turn(agentId)
    expect({ value, failures: context.failures }).toEqual({ value: 'backingOff', failures: 1 })
    expect(context.reason).toMatch(/^Agent Card discovery failed\. Tried: .*\(HTTP 503\)/)
    expect(peer.callsOf('GetTask')).toBe(0)
  })

  it('looks for a message page by page', async () => {
    const messageId = newToken()
    peer.script.fault('ListTasks', page([working('one', ['other'])], 'second'))
    peer.script.fault('ListTasks', page([working('two', ['another', messageId])]))
    expect(await looked(await uncertain(messageId))).toMatchObject({
      outcome: 'found',
      taskId: 'two',
      taskState: 'TASK_STATE_WORKING',
    })
    expect(peer.callsOf('ListTasks')).toBe(2)
  })

  it('does not look for ever: after four pages it says that there was more', async () => {
    peer.script.fault('ListTasks', page([working('one', ['other'])], 'more'), Infinity)
    const evidence = await looked(await uncertain())
    expect(evidence).toMatchObject({ outcome: 'absent', isWhole: false })
    expect(evidence?.sentence).toContain('Not everything could be looked at.')
    expect(peer.callsOf('ListTasks')).toBe(4)
  })

  it('reads the tasks whose history a list does not show', async () => {
    peer.script.fault('SendMessage', { fault: 'reset', performed: true })
    peer.script.fault('ListTasks', { fault: 'status', status: 503 })
    const { id } = await running.send(agentId, { text: 'hello' })
    expect((await running.finished(id)).status).toBe('uncertain')
    expect(await looked(id)).toMatchObject({ outcome: 'unreadable' })
    const [taskId = ''] = peer.taskIds()
    const { history: _, ...mute } = working(taskId, [])
    peer.script.fault('ListTasks', page([mute]), Infinity)
    await scopes.dueLooks()
    await scopes.turn(agentId)
    expect(await evidenceOf(id)).toMatchObject({ outcome: 'found', taskId, taskState: 'TASK_STATE_COMPLETED' })
  })

  it('asks again without their words where a page of tasks is too large', async () => {
    const wordy = await startRawPeer()
    const { id: agent } = await running.system.agents.register(running.viewer, wordy.cardUrl)
    wordy.script.fault('SendMessage', { fault: 'reset', performed: true })
    wordy.script.fault('ListTasks', { fault: 'flood', bytes: 3 * 1024 * 1024 })
    const { id } = await running.send(agent, { text: 'hello' })
    expect((await running.finished(id)).status).toBe('uncertain')
    expect(await looked(id)).toMatchObject({ outcome: 'found', taskState: 'TASK_STATE_COMPLETED' })
    expect(wordy.callsOf('ListTasks')).toBe(2)
    expect(wordy.seen('ListTasks')?.body).toMatchObject({ params: { historyLength: 0 } })
    await wordy.close()
  })

  it('survives a list that is nested deeper than any stack', async () => {
    peer.script.fault('ListTasks', deepJson(200_000), Infinity)
    expect(await looked(await uncertain())).toMatchObject({
      outcome: expect.stringMatching(/unreadable|absent/),
      looks: 1,
    })
    expect(running.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('searches once for all that a crash left in doubt', async () => {
    const messageId = newToken()
    const ids = [await uncertain(), await uncertain(messageId), await uncertain()]
    for (const id of ids) await looked(id)
    const before = peer.callsOf('ListTasks')
    peer.script.fault('ListTasks', page([working('one', [messageId])]), Infinity)
    await scopes.dueLooks()
    await scopes.turn(agentId)
    const outcomes = await Promise.all(ids.map(async (id) => (await evidenceOf(id))?.outcome))
    expect(outcomes).toEqual(['absent', 'found', 'absent'])
    expect(peer.callsOf('ListTasks')).toBe(before + 1)
  })
})

describe('two workers on one PostgreSQL', () => {
  it('wake a scope at once and are one reader of it', async () => {
    const fresh = await freshDatabase('postgresql')
    const other = await openDatabase(fresh.profile)
    const one = await systemOn(fresh.db, { rhythm: followsNothing })
    const two = await systemOn(other, { rhythm: followsNothing })
    const peer = await startRawPeer()
    const { id: agentId } = await one.system.agents.register(one.viewer, peer.cardUrl)
    const { result } = await one.finished((await one.send(agentId, { text: 'hold' })).id)
    await new Scopes(one).silence()
    await Promise.all([one, two, one, two].map((running) => new Scopes(running).wake()))
    await expect.poll(async () => (await new Scopes(one).row(agentId))?.value, patience).toBe('pausing')
    expect(peer.callsOf('GetTask')).toBe(1)
    peer.script.finish()
    await new Scopes(two).turn(agentId)
    await one.task(result?.localId ?? '', ({ state }) => state === 'TASK_STATE_COMPLETED')
    for (const running of [one, two]) expect(running.lines.filter(({ level }) => level === 'error')).toEqual([])
    await one.close()
    await two.close()
    await other.close()
    await fresh.close()
    await peer.close()
  })
})

describe.each(eitherDatabase)('a subscription that misses the end on %s', (kind) => {
  it('is ended by reconciliation, and the task shows what it made', async () => {
    const running = await freshSystem(kind)
    const scopes = new Scopes(running)
    const peer = await startRawPeer()
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    peer.script.fault('SubscribeToTask', { fault: 'hang-after-head' }, Infinity)
    const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
    const localId = result?.localId ?? ''
    await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBe(1)
    peer.script.finish()
    await scopes.turn(agentId)
    await running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    await expect.poll(() => archivedSubscription(running, localId), patience).toEqual([localId])
    expect(running.lines.filter(({ level }) => level === 'error')).toEqual([])
    await peer.close()
    await running.close()
  })
})
