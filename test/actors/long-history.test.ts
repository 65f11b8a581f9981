/**
 * An answer with a history of thousands of messages is recorded a piece at a time, whichever way it comes: in the order of the history, the
 * state behind all of it, and once, also where a process died in between. A rebuild shows the same.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Message, Task } from '../../a2a/messages.ts'
import { messageIds, tellAhead } from '../../actors/long-history.ts'
import { rebuildTask } from '../../actors/rebuild.ts'
import { observed } from '../../actors/threads/stream-parser.ts'
import type { Report } from '../../domain/fact.ts'
import { lookAhead, pieceMessages } from '../../domain/long-history.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const json = { 'content-type': 'application/json' }
const sse = { 'content-type': 'text/event-stream' }
const count = 2 * pieceMessages + 500
const pieces = 3
const longestPiece = pieceMessages + lookAhead + 1
const names = Array.from({ length: count }, (_, n) => `m${n}`)
const said = (messageId: string): Message => ({ messageId, role: 'ROLE_AGENT', parts: [{ text: messageId }] })
const history = names.map(said)

describe.each(eitherDatabase)('a long history on %s', { timeout: 60_000 }, (kind) => {
  let fresh: FreshDatabase
  let running: RunningSystem
  let peer: RawPeer
  let agentId: string
  async function begin(options: Parameters<typeof systemOn>[1] = { rhythm: followsNothing }) {
    running = await systemOn(fresh.db, options)
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  }
  beforeEach(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
  })
  afterEach(async () => {
    await running.close()
    await peer.close()
    await fresh.close()
  })

  async function sent(text: string, more: { taskId?: string; messageId?: string } = {}) {
    const command = await running.finished((await running.send(agentId, { text, ...more })).id)
    expect(command.status).toBe('succeeded')
    const { localId, taskId, event } = command.result ?? {}
    return { localId: String(localId), remoteId: String(taskId), event }
  }
  const shows = (method: string, body: unknown): void =>
    peer.script.fault(method, { fault: 'body', headers: json, body: JSON.stringify(body) })
  const done = (id: string, more: Partial<Task> = {}): Task => ({
    id,
    status: { state: 'TASK_STATE_COMPLETED' },
    history,
    ...more,
  })

  const Name = z.object({ name: z.string() })
  const agentsWords = (localId: string): Promise<readonly string[]> =>
    fresh.db.pool.anyFirst(sql.type(Name)`
      select message_id as name from task_message where task_id = ${localId} and role = 'agent' order by position`)
  /** Of each event that is kept how many messages it shows, and the state that each change brought. */
  async function recorded(localId: string) {
    const lengths = await fresh.db.pool.anyFirst(sql.type(z.object({ length: z.number() }))`
      select jsonb_array_length(event::jsonb->'task'->'history') as length from task_event
      where task_id = ${localId} and event::jsonb->'task' ? 'history' order by position`)
    const states = await fresh.db.pool.anyFirst(sql.type(Name)`
      select data->>'state' as name from fact where subject_id = ${localId} and kind = 'task.observed' order by number`)
    return { longest: Math.max(...lengths), states }
  }
  async function isRebuiltAlike(localId: string): Promise<void> {
    const shown = await agentsWords(localId)
    const rebuilt = await rebuildTask(fresh.db.pool, running.viewer.organizationId, localId)
    expect(rebuilt).toMatchObject({ repaired: false })
    expect(await agentsWords(localId)).toEqual(shown)
  }
  const isOver = (localId: string) => running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
  async function look(shown: Task): Promise<void> {
    shows('GetTask', shown)
    await new Scopes(running).turn(agentId)
  }
  /** A commit a piece, and the state with the last. */
  async function isRecordedInPieces(localId: string): Promise<void> {
    expect(await agentsWords(localId)).toEqual(names)
    const { longest, states } = await recorded(localId)
    expect(longest).toBeLessThanOrEqual(longestPiece)
    const isEnd = states.slice(-1 - pieces).map((state) => state === 'TASK_STATE_COMPLETED')
    expect(isEnd).toEqual([false, false, false, true])
    await isRebuiltAlike(localId)
  }

  it('that a look shows', async () => {
    await begin()
    const { localId, remoteId } = await sent('hold')
    await look(done(remoteId))
    await isOver(localId)
    await isRecordedInPieces(localId)
  })

  it('that a stream shows, between other events of it', async () => {
    await begin({})
    const status = { state: 'TASK_STATE_WORKING' }
    const events = [{ task: done('streamed', { status, history: [said('m0')] }) }, { task: done('streamed') }]
    const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    peer.script.fault('SubscribeToTask', { fault: 'body', headers: sse, body })
    shows('SendMessage', { task: { id: 'streamed', status } })
    const { localId } = await sent('hold')
    await isOver(localId)
    await isRecordedInPieces(localId)
  })

  it('of an answer that brings its task is the command’s, whole', async () => {
    await begin()
    shows('SendMessage', { task: done('brought') })
    const { localId, event } = await sent('hold')
    expect(event).toMatchObject({ task: { id: 'brought', history } })
    expect(await agentsWords(localId)).toEqual(names)
    expect((await recorded(localId)).longest).toBeLessThanOrEqual(longestPiece)
    await isRebuiltAlike(localId)
  })

  it('of an answer in a task that is known: newer than what was known, whatever its clock says', async () => {
    await begin()
    const { localId, remoteId } = await sent('hold')
    await look(done(remoteId, { status: { state: 'TASK_STATE_INPUT_REQUIRED', timestamp: '2030-01-01T00:00:00Z' } }))
    const status = { state: 'TASK_STATE_WORKING', timestamp: '2029-01-01T00:00:00Z' }
    const more = [...names, ...Array.from({ length: count }, (_, n) => `more${n}`)]
    shows('SendMessage', { task: done(remoteId, { status, history: more.map(said) }) })
    await sent('green', { taskId: remoteId })
    const { state } = await running.task(localId, () => true)
    expect(state).toBe('TASK_STATE_WORKING')
    expect(await agentsWords(localId)).toEqual(more)
    await isRebuiltAlike(localId)
  })

  it.each([
    ['as they were sent', 'green'],
    ['in another form', 'green '],
    ['not at all', null],
  ])(
    'of an answer to own words, which it shows %s: they stand once, before what was said to them',
    async (_, shown) => {
      await begin()
      const { localId, remoteId } = await sent('hold')
      await look(done(remoteId, { status: { state: 'TASK_STATE_WORKING' } }))
      const own: Message[] = shown === null ? [] : [{ messageId: 'own', role: 'ROLE_USER', parts: [{ text: shown }] }]
      shows('SendMessage', { task: done(remoteId, { history: [...history, ...own, said('heard')] }) })
      await sent('green', { taskId: remoteId, messageId: 'own' })
      const { messages } = await isOver(localId)
      const texts = messages.flatMap(({ parts }) => parts.map(({ value }) => value))
      expect(texts).toEqual(['hold', ...names, shown ?? 'green', 'heard'])
      await isRebuiltAlike(localId)
    },
  )

  it('of which a part was missed that lies in two pieces', async () => {
    await begin()
    const { localId, remoteId } = await sent('hold')
    const isMissed = (_: unknown, n: number): boolean => Math.abs(n - pieceMessages) < 10 || n < 5
    const known = history.filter((each, n) => !isMissed(each, n))
    await look(done(remoteId, { status: { state: 'TASK_STATE_WORKING' }, history: known }))
    await look(done(remoteId))
    await isOver(localId)
    expect(await agentsWords(localId)).toEqual(names)
    await isRebuiltAlike(localId)
  })

  it('of which a part was missed that is found when all else stands as it was', async () => {
    await begin()
    const { localId, remoteId } = await sent('hold')
    const scopes = new Scopes(running)
    const status = { state: 'TASK_STATE_WORKING' }
    // The second look shows what is known; the third is told apart from it.
    for (const shown of [history.toSpliced(1_000, 1), history.toSpliced(1_000, 1), history]) {
      shows('GetTask', done(remoteId, { status, history: shown }))
      await scopes.turn(agentId)
    }
    expect(await agentsWords(localId)).toEqual(names)
  })

  it('of which a process told a part when it died is told on, nothing of it twice', async () => {
    await begin()
    const { localId, remoteId } = await sent('hold')
    const report = { agentId, tenant: '', source: 'poll' as const, command: null, remoteTaskId: remoteId }
    const tell = (piece: Pick<Report, 'observations'>) => {
      const told = [{ type: 'agent.reported' as const, report: { ...report, ...piece } }]
      const ref = { kind: 'subscription', id: localId }
      return running.system.runtime.step({ ref, event: null, told, lease: null, cause: 'test' })
    }
    let told = 0
    const dies = tellAhead({ kind: 'observation', ...observed({ task: done(remoteId) }) }, undefined, (piece) =>
      told++ < 2 ? tell(piece) : Promise.reject(new Error('It died.')),
    )
    await expect(dies).rejects.toThrow('It died.')
    const { state } = await running.task(localId, () => true)
    expect(state).not.toBe('TASK_STATE_COMPLETED')
    await look(done(remoteId))
    await isOver(localId)
    expect(await agentsWords(localId)).toEqual(names)
    await isRebuiltAlike(localId)
  })

  it('is searched whole for a message', async () => {
    await begin()
    const event = { kind: 'observation' as const, ...observed({ task: done('searched') }) }
    expect([...(await messageIds(event))].toSorted()).toEqual(names.toSorted())
  })

  it('that is shown again changes nothing', async () => {
    await begin()
    const { localId, remoteId } = await sent('hold')
    const working = done(remoteId, { status: { state: 'TASK_STATE_WORKING' } })
    await look(working)
    const { version } = await running.task(localId, () => true)
    await look({ ...working, metadata: { again: true } })
    expect((await running.task(localId, () => true)).version).toBe(version)
    await expect.poll(() => agentsWords(localId), patience).toEqual(names)
  })
})
