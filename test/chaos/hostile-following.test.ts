/**
 * What a subscription makes of an agent that cannot be followed: it says why, on the actor and on the task; it is tried more
 * seldom; its rounds do not fill the log; and what can never be read is given up until a person answers. And what it makes of an
 * end that it saw in part: the whole is read until it was seen.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { explainActor } from '../../domain/actor-explanation.ts'
import { TaskActorsAnswer } from '../../domain/task-actors.ts'
import { TaskView } from '../../domain/task.ts'
import { Following } from '../../domain/following.ts'
import { followingOf } from '../../persistence/following.ts'
import { failuresOf } from '../support/attempts.ts'
import { archivedSubscription } from '../support/archive.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawFault, type RawPeer, type RawPeerOptions } from '../support/peers/raw.ts'

const tooLarge = 'Agent response exceeds the safety limit.'
const hugeBytes = 26 * 1024 * 1024
const Logged = z.object({ event: z.string(), facts: z.array(z.string()) })

describe('a task that cannot be followed', () => {
  let house: TestConsole
  beforeAll(async () => {
    house = await startConsole({ database: 'postgresql' })
  })
  afterAll(() => house.close())

  const peers = new Set<RawPeer>()
  const gone = async (peer: RawPeer): Promise<void> => {
    if (peers.delete(peer)) await peer.close()
  }

  async function working(options: RawPeerOptions = {}): Promise<{ peer: RawPeer; agentId: string; localId: string }> {
    const peer = await startRawPeer(options)
    peers.add(peer)
    onTestFinished(() => gone(peer))
    const agentId = await house.api.register(peer.cardUrl)
    const { result } = await house.finished((await house.send(agentId, { text: 'hold' })).id)
    await peer.script.held(1)
    return { peer, agentId, localId: String(result?.localId) }
  }

  const following = (localId: string) => followingOf(house.db.pool, house.viewer.organizationId, localId)
  const log = (localId: string) =>
    house.db.pool.any(sql.type(Logged)`
      select event, facts from actor_log where kind = 'subscription' and actor_id = ${localId} order by revision`)

  it('because its agent is gone from the network: says so once, and keeps trying', { timeout: 60_000 }, async () => {
    const { peer, localId } = await working()
    await expect.poll(() => peer.callsOf('SubscribeToTask')).toBeGreaterThan(0)
    expect(await following(localId)).toEqual({ state: 'streaming', reason: null, nextAttemptAt: null })
    await gone(peer)
    await expect.poll(() => failuresOf(house.db, localId), { timeout: 20_000 }).toBeGreaterThanOrEqual(3)
    const { body } = await house.api.get(`/api/tasks/${localId}`)
    const seen = z
      .object({ task: TaskView, commands: z.array(z.unknown()), following: Following })
      .parse(body).following
    expect(['retrying', 'streaming']).toContain(seen.state)
    expect(seen.reason).toMatch(/^Agent (network request failed|Card discovery failed\. Tried: )/)
    // Three failures and their waits are seven steps; the log has the beginning and the one line that says why.
    const told = (await log(localId)).flatMap(({ facts }) => facts)
    expect(told.filter((fact) => fact === 'subscription.failing').length).toBeLessThanOrEqual(2)
    expect((await log(localId)).length).toBeLessThanOrEqual(3)
  })

  it('because its agent has no stream, whatever its card says: is read instead', async () => {
    const peer = await startRawPeer()
    peers.add(peer)
    onTestFinished(() => gone(peer))
    peer.script.fault('SubscribeToTask', { fault: 'error', code: -32601, message: 'No such method.' }, Infinity)
    const agentId = await house.api.register(peer.cardUrl)
    const { result } = await house.finished((await house.send(agentId, { text: 'hold' })).id)
    const localId = String(result?.localId)
    await expect.poll(() => following(localId)).toMatchObject({ state: 'polling', reason: null })
    await peer.script.held(1)
    peer.script.finish()
    await house.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    expect(peer.callsOf('SubscribeToTask')).toBe(1)
  })

  it.each([true, false])(
    'because it is too large (streaming: %s): is given up with the reason, until a person answers',
    async (streaming) => {
      const { peer, agentId, localId } = await working({ streaming })
      const flood = (type: string) => ({ fault: 'flood', bytes: hugeBytes, type }) as const
      peer.script.fault('GetTask', flood('application/json'), Infinity)
      peer.script.fault('SubscribeToTask', flood('text/event-stream'), Infinity)
      // The stream that was opened before the flood has to end first.
      peer.script.emit(String(peer.taskIds()[0]), { statusUpdate: 'no such thing' })
      const stopped = { state: 'stopped', reason: tooLarge, nextAttemptAt: null }
      await expect.poll(() => following(localId), { timeout: 25_000 }).toEqual(stopped)
      const asked = peer.callsOf('SubscribeToTask') + peer.callsOf('GetTask')
      const { body } = await house.api.get(`/api/actors/subscription/${localId}`)
      expect(body).toMatchObject({ actor: { attention: true, context: { reason: tooLarge } } })

      peer.script.heal()
      const { taskId } = await house.task(localId, () => true)
      await house.finished((await house.send(agentId, { text: 'go on', taskId: String(taskId) })).id)
      await house.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
      expect(asked).toBeLessThan(12)
    },
  )
})

/**
 * What an agent made may be missed while its stream was away: a chunk between the answer and the stream, or between two streams
 * of an agent that shows no snapshot. Only a look at the whole task heals that, and nobody asks for a finished task later.
 */
describe('a task whose end is told, and a part of what it made is not', () => {
  let house: TestConsole
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    house = await startConsole({ database: 'postgresql', uiDirectory: null })
  })
  beforeEach(async () => {
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    agentId = await house.api.register(peer.cardUrl)
  })
  afterEach(() => peer.close())
  afterAll(() => house.close())

  const json = { 'content-type': 'application/json' }
  const chunks = [{ text: 'chunk 1 ' }, { text: 'chunk 2 ' }]
  const answer = (parts: readonly object[]) => ({ artifactId: 'answer', name: 'answer', parts })
  const shows = (id: string, state: string, more: object = {}): RawFault => ({
    fault: 'body',
    headers: json,
    body: JSON.stringify({ id, status: { state, timestamp: '2030-01-01T00:00:00Z' }, ...more }),
  })
  const whole = (id: string, state = 'TASK_STATE_COMPLETED'): RawFault =>
    shows(id, state, { artifacts: [answer(chunks)] })

  /** Its stream is held at the agent. */
  async function streaming(): Promise<{ localId: string; taskId: string }> {
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    await expect.poll(() => peer.callsOf('SubscribeToTask')).toBe(1)
    return { localId, taskId: String(peer.taskIds()[0]) }
  }
  const endsWithout = (taskId: string): void => {
    const chunk = { artifact: answer([{ text: 'chunk 2 ' }]), append: true, lastChunk: true }
    peer.script.emit(taskId, { artifactUpdate: { taskId, ...chunk } })
    peer.script.emit(taskId, { statusUpdate: { taskId, status: { state: 'TASK_STATE_COMPLETED' } } })
  }
  const archived = (localId: string) => () => archivedSubscription(house, localId)
  const made = async (localId: string): Promise<unknown> =>
    (await house.api.task(localId)).artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))
  const everything = ['chunk 1 ', 'chunk 2 ']

  it('is read once, where the look succeeds', async () => {
    const { localId, taskId } = await streaming()
    peer.script.fault('GetTask', whole(taskId), Infinity)
    endsWithout(taskId)
    await expect.poll(archived(localId)).toEqual([localId])
    expect(await made(localId)).toEqual(everything)
    expect(peer.callsOf('GetTask')).toBe(1)
  })

  it('was too large for the stream: is read instead, and the page says that not all of it may be there', async () => {
    const { localId, taskId } = await streaming()
    peer.script.fault('GetTask', whole(taskId), Infinity)
    const artifact = { artifactId: 'large', parts: [{ text: 'x'.repeat(hugeBytes) }] }
    peer.script.emit(taskId, { artifactUpdate: { taskId, artifact, lastChunk: true } })
    await expect.poll(archived(localId), { timeout: 20_000 }).toEqual([localId])
    expect(await made(localId)).toEqual(everything)
    const { body } = await house.api.get(`/api/task-actors/${localId}`)
    const answers = TaskActorsAnswer.parse(body)
    const seen = answers.actors.find(({ actor }) => actor.kind === 'subscription')
    if (!seen) throw new Error('The task has no subscription.')
    const [explanation] = explainActor(seen, Date.parse(answers.at))
    expect(explanation).toMatchObject({ tone: 'warn', title: 'Not all of it may be here' })
    expect(explanation?.sentences.join(' ')).toContain(`${tooLarge} An event of the stream was left out`)
  })

  it.each<readonly [string, (taskId: string) => RawFault]>([
    ['answers 503', () => ({ fault: 'status', status: 503 })],
    ['resets', () => ({ fault: 'reset', performed: false })],
    ['is asked for too much', () => ({ fault: 'status', status: 429 })],
    ['shows the task as it was', (taskId) => shows(taskId, 'TASK_STATE_WORKING')],
  ])('is read again where the agent %s at first', async (_, fault) => {
    const { localId, taskId } = await streaming()
    peer.script.fault('GetTask', fault(taskId))
    peer.script.fault('GetTask', whole(taskId), Infinity)
    endsWithout(taskId)
    await expect.poll(() => made(localId)).toEqual(everything)
    await expect.poll(archived(localId)).toEqual([localId])
    expect(peer.callsOf('GetTask')).toBe(2)
  })

  it(
    'is read again where its agent was away for a while, and let go at once where no look can help',
    { timeout: 60_000 },
    async () => {
      const { localId, taskId } = await streaming()
      // 1, 2, 4 and 8 s; when nobody looks any more is said by the machine (test/machines/subscription.test.ts), which takes two minutes.
      peer.script.fault('GetTask', { fault: 'status', status: 503 }, 4)
      peer.script.fault('GetTask', whole(taskId), Infinity)
      endsWithout(taskId)
      await expect.poll(archived(localId), { timeout: 30_000 }).toEqual([localId])
      expect(await made(localId)).toEqual(everything)
      expect(peer.callsOf('GetTask')).toBe(5)
      const notFound = { code: 404, status: 'NOT_FOUND', message: 'No such task.' }
      const forgets: RawFault = { fault: 'body', headers: json, body: JSON.stringify({ error: notFound }) }
      const other = await house.api.send(agentId, { text: 'hold' })
      await expect.poll(() => peer.callsOf('SubscribeToTask')).toBe(2)
      peer.script.heal()
      peer.script.fault('GetTask', forgets, Infinity)
      endsWithout(String(peer.taskIds()[1]))
      await expect.poll(archived(other.localId)).toEqual([other.localId])
      expect(peer.callsOf('GetTask')).toBe(6)
    },
  )

  it('is read once where a reply told the end and nothing else, and not where it told all', async () => {
    const cancel = async (taskId: string) =>
      house.finished((await house.send(agentId, { action: 'cancelTask', taskId })).id)
    const { localId, taskId } = await streaming()
    peer.script.fault('CancelTask', shows(taskId, 'TASK_STATE_CANCELED'))
    peer.script.fault('GetTask', whole(taskId, 'TASK_STATE_CANCELED'), Infinity)
    await cancel(taskId)
    await expect.poll(archived(localId)).toEqual([localId])
    expect(await made(localId)).toEqual(everything)
    expect(peer.callsOf('GetTask')).toBe(1)
    const other = await house.api.send(agentId, { text: 'hold' })
    const id = String(peer.taskIds()[1])
    peer.script.fault('CancelTask', whole(id, 'TASK_STATE_CANCELED'))
    await cancel(id)
    await expect.poll(archived(other.localId)).toEqual([other.localId])
    expect(await made(other.localId)).toEqual(everything)
    expect(peer.callsOf('GetTask')).toBe(1)
  })
})
