/**
 * What a stream misses is healed, and what nobody knows of a command is looked for. The subscriptions of these consoles follow
 * nothing, so whatever they show came by reconciliation.
 */
import { randomUUID } from 'node:crypto'
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { scopeId } from '../../actors/reconciliation-scopes.ts'
import { commandErrors, type Command } from '../../domain/command.ts'
import { followsNothing, patience, Scopes } from '../actors/reconciliation-turns.ts'
import { commandIn } from '../support/api.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startOldPeer } from '../actors/reconciliation-peers.ts'
import { garbage } from '../support/peers/raw-faults.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const Count = z.object({ count: z.number() })
const message = (text: string) => ({ messageId: `foreign-${text}`, role: 'ROLE_USER', parts: [{ text }] })

/** What is looked at here is agents; how the database keeps what is asked of them is tried on both (test/actors/models/push-and-reconciliation.test.ts). */
describe.each(eitherDatabase)('reconciliation on %s', (kind) => {
  let house: TestConsole
  let scopes: Scopes
  let peer: RawPeer
  let agentId: string
  let keys = 0
  beforeAll(async () => {
    house = await startConsole({ database: kind, system: { rhythm: followsNothing }, uiDirectory: null })
    scopes = new Scopes(house)
  })
  beforeEach(async () => {
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    agentId = await house.api.register(peer.cardUrl)
  })
  // An agent that is gone is not asked: what one test leaves unfinished is none of the next one's.
  afterEach(async () => {
    await house.api.delete(`/api/agents/${agentId}`)
    await peer.close()
  })
  afterAll(() => house.close())

  /** A command as the API shows it once it is finished. */
  async function finished(of: string, body: object): Promise<Command> {
    const headers = { 'idempotency-key': `key-${kind}-${++keys}` }
    const { id } = commandIn(await house.api.post(`/api/agents/${of}/commands`, body, headers))
    await house.finished(id)
    return house.api.command(id)
  }
  const evidenceOf = async (id: string) => (await house.api.command(id)).evidence

  it('learns by asking that a task has ended, with what it made', async () => {
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    expect((await scopes.turn(agentId)).value).toBe('pausing')
    peer.script.finish('Done at last.')
    await scopes.turn(agentId)
    const view = await house.api.task(localId)
    expect(view).toMatchObject({ state: 'TASK_STATE_COMPLETED', artifacts: [{ parts: [{ value: 'Done at last.' }] }] })
  })

  it('leaves a scope in which nothing is unfinished alone, for good', async () => {
    await house.api.send(agentId, { text: 'hold' })
    peer.script.finish()
    const before = await scopes.turn(agentId)
    expect(before).toMatchObject({ value: 'resting', work: null, wakeAt: null, timers: {} })
    const asked = peer.callsOf('GetTask')
    await scopes.silence()
    await scopes.wake()
    expect(await scopes.row(agentId)).toEqual(before)
    expect(peer.callsOf('GetTask')).toBe(asked)
  })

  it('says nothing twice: a task that waits for a person for long writes no further fact', async () => {
    const { localId } = await house.api.send(agentId, { text: 'ask' })
    const factsOf = () => scopes.facts(scopeId({ agentId, tenant: '' }))
    await scopes.turn(agentId)
    await scopes.turn(agentId)
    const { version } = await house.api.task(localId)
    const before = await factsOf()
    const asked = peer.callsOf('GetTask')
    await scopes.turn(agentId)
    await scopes.turn(agentId)
    expect(peer.callsOf('GetTask')).toBe(asked + 2)
    expect(await factsOf()).toEqual(before)
    expect((await house.api.task(localId)).version).toBe(version)
  })

  it('learns by the list what asking does not show, and takes no foreign task from it', async () => {
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const foreign = JSON.stringify({ message: message('hello') })
    expect((await fetch(`${peer.origin}/a2a/rest/message:send`, { ...init, body: foreign })).status).toBe(200)
    peer.script.finish()
    const tasks = () => house.db.pool.oneFirst(sql.type(Count)`select count(*)::int as count from task`)
    const known = await tasks()
    peer.script.fault('GetTask', { fault: 'error', code: -32603, message: 'Not today.' }, Infinity)
    const row = await scopes.turn(agentId)
    expect(row).toMatchObject({ value: 'backingOff', context: { reason: 'The agent refused: Not today.' } })
    // After four passes the list is asked, whether or not they succeeded; then once more, for what the task has made.
    const lists = async () => (await scopes.turn(agentId), peer.callsOf('ListTasks'))
    await expect.poll(lists, patience).toBe(2)
    const healed = { state: 'TASK_STATE_COMPLETED', artifacts: [{ parts: [{ value: 'Released.' }] }] }
    expect(await house.api.task(localId)).toMatchObject(healed)
    expect(await tasks()).toBe(known)
  })

  it('never opens a finished task again, whatever an agent lists', async () => {
    const done = await house.api.send(agentId, { text: 'hold' })
    peer.script.finish()
    await scopes.turn(agentId)
    const before = await house.api.task(done.localId)
    expect(before.state).toBe('TASK_STATE_COMPLETED')
    const alive = await house.api.send(agentId, { text: 'hold' })
    const { taskId } = before
    const reopened = { id: taskId, contextId: before.contextId, status: { state: 'TASK_STATE_WORKING' } }
    const body = JSON.stringify({ tasks: [reopened], nextPageToken: '', pageSize: 1, totalSize: 1 })
    peer.script.fault('ListTasks', { fault: 'body', body }, Infinity)
    const lists = peer.callsOf('ListTasks')
    await expect.poll(async () => (await scopes.turn(agentId), peer.callsOf('ListTasks')), patience).toBe(lists + 1)
    expect(await house.api.task(done.localId)).toEqual(before)
    peer.script.finish()
    await scopes.turn(agentId)
    expect((await house.api.task(alive.localId)).state).toBe('TASK_STATE_COMPLETED')
  })

  it('says once that an agent forgot a task, asks a few times more, and rests', async () => {
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    const notFound = JSON.stringify({ error: { code: 404, status: 'NOT_FOUND', message: 'Never heard of it.' } })
    peer.script.fault('GetTask', { fault: 'body', body: notFound }, Infinity)
    peer.script.fault('ListTasks', { fault: 'body', body: JSON.stringify({ tasks: [], nextPageToken: '' }) }, Infinity)
    const asked = peer.callsOf('GetTask')
    for (let turn = 0; turn < 5; turn++) {
      expect((await scopes.turn(agentId)).value).toBe('pausing')
      await scopes.dueLooks()
    }
    expect((await scopes.turn(agentId)).value).toBe('resting')
    expect(peer.callsOf('GetTask')).toBe(asked + 5)
    expect((await scopes.facts(localId)).filter((fact) => fact === 'task.lost')).toHaveLength(1)
    // Looks in vain are no news: there is one an hour, for a month.
    const vain = house.db.pool.exists(sql.unsafe`select from fact where kind = 'reconciliation.unanswered'`)
    expect(await vain).toBe(false)
    await scopes.wake()
    expect((await scopes.row(agentId))?.value).toBe('resting')
    // Once an hour it is asked for all the same, though nothing else of that agent is unfinished: it may be given back what it lost.
    await scopes.hourLater()
    await scopes.turn(agentId)
    expect(peer.callsOf('GetTask')).toBe(asked + 6)
    expect((await scopes.turn(agentId)).value).toBe('resting')
    peer.script.heal()
    peer.script.finish()
    await scopes.wake()
    expect((await scopes.row(agentId))?.value).toBe('resting')
    await scopes.hourLater()
    await scopes.turn(agentId)
    expect((await house.api.task(localId)).state).toBe('TASK_STATE_COMPLETED')
  })

  it('waits longer and longer for an agent that is dead, says why, and goes on when it is back', async () => {
    const mortal = await startRawPeer()
    const id = await house.api.register(mortal.cardUrl)
    const { localId } = await house.api.send(id, { text: 'hold' })
    mortal.script.fault('GetTask', { fault: 'reset', performed: false }, Infinity)
    const waits: number[] = []
    for (let failure = 1; failure <= 7; failure++) {
      const { value, context, timers, wakeAt } = await scopes.turn(id)
      expect({ value, failures: context.failures }).toEqual({ value: 'backingOff', failures: failure })
      expect(context.reason).toBe('Agent network request failed.')
      expect(wakeAt).toBe(Object.values(timers)[0]?.dueAt)
      waits.push(await scopes.lastWaitMs(id))
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000])
    mortal.script.heal()
    mortal.script.finish()
    expect(await scopes.turn(id)).toMatchObject({ value: 'resting', context: { failures: 0, reason: null } })
    expect((await house.api.task(localId)).state).toBe('TASK_STATE_COMPLETED')
    const told = (await scopes.facts(scopeId({ agentId: id, tenant: '' }))).filter((fact) => !fact.startsWith('agent.'))
    const all = ['woken', 'failing', 'recovered', 'rested'].map((fact) => `reconciliation.${fact}`)
    expect(told).toEqual(all)
    await mortal.close()
  })

  it('lets no agent that hangs keep both readers, even by two of its tenants', async () => {
    const hanging = await startRawPeer()
    const id = await house.api.register(hanging.cardUrl)
    await house.api.send(id, { text: 'hold' })
    await house.api.send(id, { text: 'hold', tenant: 'north' })
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    peer.script.finish('Not delayed.')
    hanging.script.fault('GetTask', { fault: 'hang-before-head' }, Infinity)
    await scopes.begin(id)
    await expect.poll(() => hanging.callsOf('GetTask'), patience).toBe(1)
    await house.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    expect(hanging.callsOf('GetTask')).toBe(1)
    await hanging.close()
  })

  it.each(['JSONRPC', 'HTTP+JSON'] as const)('heals agents of 0.3 over %s, which have no list', async (binding) => {
    const old = await startSdkPeer({ version: '0.3', binding })
    const id = await house.api.register(old.cardUrl)
    const { localId } = await house.api.send(id, { text: 'hold' })
    for (let turn = 0; turn < 4; turn++)
      expect(await scopes.turn(id)).toMatchObject({ value: 'pausing', context: { reason: null, listReason: null } })
    old.script.finish()
    await expect.poll(async () => (await scopes.turn(id)).value, patience).toBe('resting')
    expect((await house.api.task(localId)).state).toBe('TASK_STATE_COMPLETED')
    await old.close()
  })

  it('finds an uncertain message in the task that it made, and leaves the command as it is', async () => {
    peer.script.fault('SendMessage', { fault: 'reset', performed: true })
    const command = await finished(agentId, { text: 'hello' })
    const { id, messageId, evidence } = command
    expect(command).toMatchObject({ status: 'uncertain', error: commandErrors.uncertain })
    expect(evidence).toMatchObject({ messageId })
    // Nobody gave one: it needs no index of its own to be found by.
    expect(messageId).toBe(id)
    // Nobody has to wake anybody: the doubt does.
    await expect.poll(async () => (await evidenceOf(id))?.outcome, patience).toBe('found')
    const { lookedAt } = (await evidenceOf(id)) ?? {}
    expect(Date.parse(lookedAt ?? '') - Date.parse(command.updatedAt)).toBeLessThan(4_000)
    const taskId = peer.taskIds().at(-1)
    const sentence = `The agent has the message: it stands in the history of task ${taskId}, which was completed at that look.`
    const found = { looks: 1, nextLookAt: null, taskId, localId: null, taskState: 'TASK_STATE_COMPLETED', sentence }
    expect(await evidenceOf(id)).toMatchObject(found)
    const { evidence: _, ...after } = await house.api.command(id)
    const { evidence: __, ...before } = command
    expect(after).toEqual(before)
    expect(peer.receiptsOf(messageId)).toBe(1)
    expect(await scopes.facts(id)).toContain('command.evidence')
  })

  it('looks at once also where the scope pauses, and an unfinished task is asked for on the way', async () => {
    await house.api.send(agentId, { text: 'hold' })
    expect((await scopes.turn(agentId)).value).toBe('pausing')
    peer.script.fault('SendMessage', { fault: 'reset', performed: true })
    const { id, updatedAt } = await finished(agentId, { text: 'hello' })
    await expect.poll(async () => (await evidenceOf(id))?.outcome, patience).toBe('found')
    const { lookedAt } = (await evidenceOf(id)) ?? {}
    expect(Date.parse(lookedAt ?? '') - Date.parse(updatedAt)).toBeLessThan(8_000)
  })

  it('looks five times for a message that is not there, and says that this proves nothing', async () => {
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id } = await finished(agentId, { text: 'hello' })
    for (let look = 1; look <= 5; look++) {
      if (look > 1) await scopes.dueLooks()
      if (look > 1) await scopes.begin(agentId)
      await expect.poll(async () => (await evidenceOf(id))?.looks, patience).toBe(look)
      const { outcome, isWhole, nextLookAt } = (await evidenceOf(id)) ?? {}
      expect({ outcome, isWhole, again: nextLookAt !== null }).toEqual({
        outcome: 'absent',
        isWhole: true,
        again: look < 5,
      })
    }
    const sentence = 'The message was not found at the agent, which does not prove that it never arrived.'
    expect((await evidenceOf(id))?.sentence).toBe(sentence)
    expect(await house.api.command(id)).toMatchObject({ status: 'uncertain', result: null })
  })

  it('claims nothing of a message whose id another command has as well, and says why', async () => {
    const messageId = randomUUID()
    const first = await finished(agentId, { text: 'hold', messageId })
    const { taskId } = await house.api.task(first.result?.localId ?? '')
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id } = await finished(agentId, { text: 'more', taskId, messageId })
    await expect.poll(async () => (await evidenceOf(id))?.looks, patience).toBe(1)
    expect(await evidenceOf(id)).toMatchObject({
      outcome: 'unsearchable',
      taskId: null,
      sentence: 'There is nothing in which to look for it. Another command was sent under the same message id.',
    })
    // Of two in doubt, one of which arrived, nobody can tell which.
    const doubtful = randomUUID()
    peer.script.fault('SendMessage', { fault: 'reset', performed: true })
    const second = await finished(agentId, { text: 'hello', messageId: doubtful })
    await expect.poll(async () => (await evidenceOf(second.id))?.outcome, patience).toBe('found')
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const third = await finished(agentId, { text: 'hello', messageId: doubtful })
    await expect.poll(async () => (await evidenceOf(third.id))?.outcome, patience).toBe('unsearchable')
    // Nor does it tell them apart that somebody settled the one that arrived.
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const fourth = await finished(agentId, { text: 'hello', messageId: doubtful, replaces: second.id })
    await house.api.post(`/api/sends/${third.id}/settle`, { decision: 'no-matter' })
    await expect.poll(async () => (await evidenceOf(fourth.id))?.outcome, patience).toBe('unsearchable')
  })

  it('claims nothing of a message whose id a command has that is still being sent', async () => {
    const messageId = randomUUID()
    peer.script.fault('SendMessage', { fault: 'hang-before-head' })
    await house.api.post(
      `/api/agents/${agentId}/commands`,
      { text: 'hello', messageId },
      { 'idempotency-key': messageId },
    )
    await expect.poll(() => peer.receiptsOf(messageId), patience).toBe(1)
    // What the agent made of that message, the answer to which it still holds back.
    const body = JSON.stringify({ message: { messageId, role: 'ROLE_USER', parts: [{ text: 'hello' }] } })
    const headers = { 'content-type': 'application/json' }
    await fetch(`${peer.origin}/a2a/rest/message:send`, { method: 'POST', headers, body })
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id, status } = await finished(agentId, { text: 'hello', messageId })
    expect(status).toBe('uncertain')
    await expect.poll(async () => (await evidenceOf(id))?.outcome, patience).toBe('unsearchable')
  })

  it('looks into the task that an uncertain message or cancel names', async () => {
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    const { taskId } = await house.api.task(localId)
    peer.script.fault('SendMessage', { fault: 'reset', performed: true })
    const said = await finished(agentId, { text: 'more', taskId })
    expect(said.status).toBe('uncertain')
    await expect.poll(async () => (await evidenceOf(said.id))?.outcome, patience).toBe('found')
    expect(await evidenceOf(said.id)).toMatchObject({ taskId, localId })
  })

  it.each([
    ['was carried out', true, 'found', 'The agent says that the task is canceled.'],
    ['never came', false, 'absent', 'At that look the agent said that the task was working, not canceled.'],
  ] as const)('says of an uncertain cancel that %s how the task stands', async (_, performed, outcome, sentence) => {
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    const { taskId } = await house.api.task(localId)
    peer.script.fault('CancelTask', { fault: 'reset', performed })
    const cancelled = await finished(agentId, { action: 'cancelTask', taskId })
    expect(cancelled.status).toBe('uncertain')
    await expect.poll(async () => (await evidenceOf(cancelled.id))?.outcome, patience).toBe(outcome)
    expect(await evidenceOf(cancelled.id)).toMatchObject({ taskId, localId, sentence })
  })

  it('says what it could not look into: an agent that cannot list', async () => {
    const old = await startOldPeer()
    const id = await house.api.register(old.cardUrl)
    const command = await finished(id, { text: 'hello' })
    expect(command.status).toBe('uncertain')
    await expect.poll(async () => (await evidenceOf(command.id))?.outcome, patience).toBe('unsearchable')
    expect((await evidenceOf(command.id))?.sentence).toMatch(
      /^There is nothing in which to look for it\. The agent cannot/,
    )
    await old.close()
  })

  it('says what it could not look into: an agent that answers nonsense, and is then removed', async () => {
    peer.script.fault('SendMessage', { fault: 'reset', performed: true })
    peer.script.fault('ListTasks', garbage, Infinity)
    const { id } = await finished(agentId, { text: 'hello' })
    await expect.poll(async () => (await evidenceOf(id))?.outcome, patience).toBe('unreadable')
    expect(await evidenceOf(id)).toMatchObject({ looks: 1, nextLookAt: expect.any(String) })
    await house.api.delete(`/api/agents/${agentId}`)
    expect(await evidenceOf(id)).toMatchObject({ outcome: 'unreadable', looks: 1, nextLookAt: null })
  })

  it('logs no error for what agents do wrong', () => {
    expect(house.lines.filter((line) => line.level === 'error')).toEqual([])
    expect(house.log.errors()).toEqual([])
  })
})
