/**
 * Words of an agent that are easily taken for others: an answer that does not name its task, an event of another conversation, a
 * time that alone is new, an end of which only the list tells.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { observed } from '../../actors/threads/stream-parser.ts'
import type { StreamResponse } from '../../a2a/messages.ts'
import { rebuildTask } from '../../actors/rebuild.ts'
import { commandErrors } from '../../domain/command.ts'
import type { Report } from '../../domain/fact.ts'
import { readActorLog } from '../../persistence/actor-views.ts'
import { failuresOf } from '../support/attempts.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const json = { 'content-type': 'application/json' }
const sse = { 'content-type': 'text/event-stream' }
const Told = z.object({ kind: z.string() })

describe.each(eitherDatabase)('on %s', (kind) => {
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

  async function begin(options: Parameters<typeof systemOn>[1] = {}) {
    running = await systemOn(fresh.db, options)
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
  }
  async function sent(text: string, more: { taskId?: string } = {}) {
    const command = await running.finished((await running.send(agentId, { text, ...more })).id)
    expect(command.status).toBe('succeeded')
    return { localId: String(command.result?.localId), remoteId: String(command.result?.taskId) }
  }
  /** As if somebody who reads the agent had heard it. */
  async function hears(
    localId: string,
    source: 'stream' | 'push' | 'poll',
    remoteTaskId: string,
    said: StreamResponse,
  ) {
    const observations = [observed(said).observation]
    const report: Report = { agentId, tenant: '', source, command: null, remoteTaskId, observations }
    const told = [{ type: 'agent.reported' as const, report }]
    await running.system.runtime.step({
      ref: { kind: 'subscription', id: localId },
      event: null,
      told,
      lease: null,
      cause: 'test',
    })
  }
  const told = (localId: string): Promise<readonly string[]> =>
    fresh.db.pool.anyFirst(sql.type(Told)`select kind from fact where subject_id = ${localId} order by number`)

  const remoteIds = (): Promise<readonly (string | null)[]> =>
    fresh.db.pool.anyFirst(sql.type(z.object({ id: z.string().nullable() }))`select remote_id as id from task`)

  describe('a message that answers a task', () => {
    const answers = (more: object) =>
      peer.script.fault('SendMessage', {
        fault: 'body',
        headers: json,
        body: JSON.stringify({
          message: {
            messageId: `m-${JSON.stringify(more)}`,
            role: 'ROLE_AGENT',
            parts: [{ text: 'Thank you.' }],
            ...more,
          },
        }),
      })

    it.each([{}, { contextId: 'c' }])(
      'and does not name it (%j) is of that task, and wakes who follows it',
      async (more) => {
        await begin()
        const asked = await sent('ask')
        await running.task(asked.localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
        const before = peer.callsOf('SubscribeToTask')
        answers(more)
        expect(await sent('green', { taskId: asked.remoteId })).toEqual(asked)
        const { messages } = await running.task(asked.localId, () => true)
        expect(messages.flatMap(({ parts }) => parts.map(({ value }) => value)).slice(-2)).toEqual([
          'green',
          'Thank you.',
        ])
        await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBeGreaterThan(before)
      },
    )
  })

  describe('a second question under the id of the first', () => {
    const asks = (n: number, text: string): StreamResponse => ({
      statusUpdate: {
        taskId: '',
        contextId: '',
        status: {
          state: 'TASK_STATE_INPUT_REQUIRED',
          timestamp: new Date(Date.now() + n * 60_000).toISOString(),
          message: { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text }] },
        },
      },
    })
    it.each(['stream', 'push', 'poll'] as const)(
      'is shown beside it, told by %s, and rebuilt alike',
      async (source) => {
        await begin({ rhythm: followsNothing })
        const { localId, remoteId } = await sent('hold')
        const told = async (n: number, text: string) => {
          const said = asks(n, text)
          if ('statusUpdate' in said) Object.assign(said.statusUpdate, { taskId: remoteId })
          await hears(localId, source, remoteId, said)
        }
        await told(1, 'Which account?')
        await told(2, 'Really pay?')
        // The next look shows the last of them again.
        await told(3, 'Really pay?')
        const read = async () => {
          const { messages } = await running.task(localId, () => true)
          return messages.filter(({ fromStatus }) => fromStatus).map(({ id, parts }) => [id, parts[0]?.value])
        }
        const shown = await read()
        expect(shown).toEqual([
          ['q', 'Which account?'],
          [expect.stringMatching(/^q#agent-/), 'Really pay?'],
        ])
        expect(await rebuildTask(fresh.db.pool, running.viewer.organizationId, localId)).toMatchObject({
          repaired: false,
        })
        expect(await read()).toEqual(shown)
      },
    )
  })

  describe('a task that answers for another', () => {
    const other = (state: string) => ({ id: 'another', contextId: 'c', status: { state } })
    const answers = (operation: string, body: object) =>
      peer.script.fault(operation, { fault: 'body', headers: json, body: JSON.stringify(body) })

    it.each([false, true])(
      'which was to be canceled leaves that in doubt, and is not believed (known: %j)',
      async (isKnown) => {
        await begin({ rhythm: followsNothing })
        if (isKnown) answers('SendMessage', { task: other('TASK_STATE_WORKING') })
        const known = await sent('hello')
        const { localId, remoteId } = await sent('hold')
        const before = await running.task(known.localId, () => true)
        answers('CancelTask', other('TASK_STATE_CANCELED'))
        const cancel = await running.send(agentId, { action: 'cancelTask', taskId: remoteId })
        expect(await running.finished(cancel.id)).toMatchObject({
          status: 'uncertain',
          result: null,
          error: commandErrors.uncertain,
        })
        const log = await readActorLog(fresh.db.pool, 'command', cancel.id, { after: 0 }, 50)
        expect(JSON.stringify(log)).toContain('The agent answered with another task.')
        expect(await running.task(known.localId, () => true)).toEqual(before)
        expect((await running.task(localId, () => true)).state).not.toBe('TASK_STATE_CANCELED')
        expect(new Set(await remoteIds())).toEqual(new Set([known.remoteId, remoteId]))
      },
    )

    it('which a message was to continue is what the agent made of the message: it is kept, and named as the result', async () => {
      await begin({ rhythm: followsNothing })
      const asked = await sent('ask')
      answers('SendMessage', { task: other('TASK_STATE_WORKING') })
      const made = await sent('green', { taskId: asked.remoteId })
      expect(made).toMatchObject({ remoteId: 'another' })
      expect(made.localId).not.toBe(asked.localId)
      const { messages } = await running.task(made.localId, () => true)
      expect(messages.flatMap(({ parts }) => parts.map(({ value }) => value))).toEqual(['green'])
    })
  })

  it.each(['stream', 'push'] as const)(
    'an event by %s with the task’s id and another context changes nothing',
    async (by) => {
      await begin({ rhythm: followsNothing })
      const { localId, remoteId } = await sent('hold')
      const before = await running.task(localId, () => true)
      const of = { taskId: remoteId, contextId: 'another conversation' }
      await hears(localId, by, remoteId, { statusUpdate: { ...of, status: { state: 'TASK_STATE_COMPLETED' } } })
      await hears(localId, by, remoteId, {
        artifactUpdate: { ...of, artifact: { artifactId: 'foreign', parts: [{ text: 'not ours' }] } },
      })
      expect(await running.task(localId, () => true)).toEqual(before)
      // Without a context, or with its own, it is the task's.
      await hears(localId, by, remoteId, {
        statusUpdate: { taskId: remoteId, status: { state: 'TASK_STATE_COMPLETED' } },
      })
      expect((await running.task(localId, () => true)).state).toBe('TASK_STATE_COMPLETED')
    },
  )

  it('a task that is stamped anew with each look is kept once a minute, and without what it made', async () => {
    await begin({ rhythm: followsNothing })
    const { localId, remoteId } = await sent('hold')
    const made = 'x'.repeat(100_000)
    const seen = (second: number) =>
      hears(localId, 'poll', remoteId, {
        task: {
          id: remoteId,
          status: {
            state: 'TASK_STATE_WORKING',
            timestamp: new Date(Date.UTC(2035, 0, 1, 0, 0, second)).toISOString(),
          },
          artifacts: [{ artifactId: 'a', parts: [{ text: made }] }],
        },
      })
    await seen(0)
    const whole = await running.task(localId, () => true)
    for (let second = 15; second <= 180; second += 15) await seen(second)
    const { version } = await running.task(localId, () => true)
    expect(version - whole.version).toBe(3)
    const sizes = await fresh.db.pool.anyFirst(sql.type(z.object({ size: z.number() }))`
      select length(event) as size from task_event where task_id = ${localId} and position >= ${whole.version} order by position`)
    for (const size of sizes) expect(size).toBeLessThan(200)
  })

  it('a stream that brings nothing but a new time is opened less and less often', async () => {
    await begin({ rhythm: (kinds) => kinds })
    const { localId, remoteId } = await sent('ask')
    await running.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    // Works again, and says nothing but the time: a snapshot a minute on, and the stream is over.
    const stamped = (minute: number) => ({
      id: remoteId,
      status: { state: 'TASK_STATE_WORKING', timestamp: new Date(Date.UTC(2035, 0, 1, 0, minute)).toISOString() },
    })
    for (let minute = 1; minute <= 4; minute++) {
      const body = `data: ${JSON.stringify({ task: stamped(minute) })}\n\n`
      peer.script.fault('SubscribeToTask', { fault: 'body', headers: sse, body })
      peer.script.fault('GetTask', { fault: 'body', headers: json, body: JSON.stringify(stamped(minute)) })
    }
    peer.script.fault('SendMessage', { fault: 'body', headers: json, body: JSON.stringify({ task: stamped(0) }) })
    await sent('green', { taskId: remoteId })
    await expect.poll(() => failuresOf(fresh.db, localId), patience).toBeGreaterThanOrEqual(3)
  })

  it('a stream that cannot be read is not well because its task is seen to move', async () => {
    peer.script.fault('SubscribeToTask', { fault: 'body', headers: sse, body: 'data: no JSON\n\n' }, Infinity)
    await begin()
    const { localId, remoteId } = await sent('hold')
    const parts = (look: number) => [{ text: `look ${look}` }]
    for (let look = 1; look <= 3; look++) {
      const history = [{ messageId: `look-${look}`, role: 'ROLE_AGENT', parts: parts(look) }]
      const task = { id: remoteId, status: { state: 'TASK_STATE_WORKING' }, history }
      peer.script.fault('GetTask', { fault: 'body', headers: json, body: JSON.stringify(task) })
    }
    // The first look may have come before these were written down: the last of them tells when all are seen.
    await running.task(localId, ({ messages }) => messages.some(({ id }) => id === 'look-3'))
    await expect.poll(() => failuresOf(fresh.db, localId), patience).toBeGreaterThanOrEqual(3)
    expect(await told(localId)).not.toContain('subscription.recovered')
  })

  it('the end of a task that is too large for every look is taken from the list, and said to be all that is known', async () => {
    await begin({ rhythm: followsNothing })
    const { localId, remoteId } = await sent('hold')
    peer.script.fault('GetTask', { fault: 'flood', bytes: 30 * 1024 * 1024 }, Infinity)
    const listed = { id: remoteId, status: { state: 'TASK_STATE_COMPLETED', timestamp: '2035-01-01T00:00:00.000Z' } }
    const page = { tasks: [listed], nextPageToken: '', pageSize: 50, totalSize: 1 }
    peer.script.fault('ListTasks', { fault: 'body', headers: json, body: JSON.stringify(page) })
    peer.script.fault('ListTasks', { fault: 'flood', bytes: 3 * 1024 * 1024 })
    const scopes = new Scopes(running)
    for (let turn = 0; turn < 8 && peer.callsOf('ListTasks') < 2; turn++) await scopes.turn(agentId)
    expect((await running.task(localId, () => true)).state).toBe('TASK_STATE_COMPLETED')
    expect(await told(localId)).toContain('task.settled')
  })
})
