/**
 * A stream is given up where the agent waits for a person, whichever word it has for that, although it would have kept the stream
 * open; and a reply opens it again [console-http-api.md: "Background loops"]. What goes on
 * by itself, or is there again after it was given up, is followed again.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { eitherDatabase } from '../support/databases.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { startPatientAgent, type PatientOptions } from './patient-agent.ts'
import { patience, Scopes } from './reconciliation-turns.ts'

const State = z.object({ state: z.string() })

describe.each(eitherDatabase)('a held stream on %s', (kind) => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem(kind)
  })
  afterAll(() => running.close())
  const subscription = (localId: string) => (): Promise<string | null> =>
    running.db.pool.maybeOneFirst(sql.type(State)`
      select snapshot->>'value' as state from actor where kind = 'subscription' and id = ${localId}`)

  it.each(['INPUT_REQUIRED', 'AUTH_REQUIRED'])(
    'is closed at %s, is opened by a reply only, and closed at the end',
    async (waiting) => {
      const agent = await startPatientAgent(`task ${waiting}`)
      const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
      const { result } = await running.finished((await running.send(agentId, { text: 'Begin.' })).id)
      const { localId = '', taskId = '' } = result ?? {}
      await expect.poll(agent.streams).toEqual({ held: 1, opened: 1 })

      agent.say(waiting)
      await running.task(localId, ({ state }) => state === `TASK_STATE_${waiting}`)
      await expect.poll(agent.streams).toEqual({ held: 0, opened: 1 })
      await expect.poll(subscription(localId)).toBe('resting')

      await running.finished((await running.send(agentId, { text: 'Go on.', taskId: taskId ?? '' })).id)
      await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })

      agent.say('COMPLETED')
      await running.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
      await expect.poll(agent.streams).toEqual({ held: 0, opened: 2 })
      await expect.poll(subscription(localId)).toBeNull()
      await agent.close()
    },
  )

  async function begun(name: string, options?: PatientOptions) {
    const agent = await startPatientAgent(name, options)
    onTestFinished(() => agent.close())
    const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'Begin.' })).id)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 1 })
    return { agent, agentId, localId: result?.localId ?? '', taskId: result?.taskId ?? '' }
  }

  it('is opened again where a look finds that the task went on without an answer', async () => {
    const { agent, agentId, localId } = await begun('out of band')
    agent.say('AUTH_REQUIRED')
    await expect.poll(subscription(localId)).toBe('resting')
    agent.say('WORKING', { isSilent: true })
    await new Scopes(running).turn(agentId)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })
    expect(await subscription(localId)()).toBe('following')
  })

  it('is opened again where it rests beside a task that is known to be at work, as a process of before may leave it', async () => {
    const { agent, agentId, localId } = await begun('left behind')
    agent.say('AUTH_REQUIRED')
    await expect.poll(subscription(localId)).toBe('resting')
    agent.say('WORKING', { isSilent: true })
    await running.db.pool.query(sql.unsafe`
      update task set state = 'TASK_STATE_WORKING', version = version + 1 where id = ${localId}`)
    await new Scopes(running).turn(agentId)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })
  })

  it('is opened again once the agent knows the task again, though nothing of it is new', async () => {
    const { agent, agentId, localId } = await begun('restarted')
    agent.forget(true)
    await expect.poll(subscription(localId)).toBe('stopped')
    agent.forget(false)
    await new Scopes(running).turn(agentId)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })
    expect(await subscription(localId)()).toBe('following')
  })

  it('is opened again once the agent was removed and is there again', async () => {
    const { agent, agentId, localId } = await begun('registered anew')
    await running.system.agents.remove(running.viewer, agentId)
    await expect.poll(subscription(localId), patience).toBe('stopped')
    await running.system.agents.register(running.viewer, agent.cardUrl)
    await new Scopes(running).turn(agentId)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })
  })

  it('is closed at a question at once although somebody wrote to the task while it was at work', async () => {
    const { agent, agentId, localId, taskId } = await begun('written to')
    await running.finished((await running.send(agentId, { text: 'And also this.', taskId })).id)
    expect(agent.streams()).toEqual({ held: 1, opened: 1 })
    agent.say('INPUT_REQUIRED')
    await expect.poll(subscription(localId)).toBe('resting')
    expect(agent.streams()).toEqual({ held: 0, opened: 1 })
  })

  it('is hung up on where the question stands although it was answered: some seconds, once', async () => {
    const { agent, agentId, localId, taskId } = await begun('stubborn')
    agent.say('INPUT_REQUIRED')
    await expect.poll(subscription(localId)).toBe('resting')
    agent.answersWith('', 0)
    await running.finished((await running.send(agentId, { text: 'My answer.', taskId })).id)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })
    agent.tellChunk('Made beside it.', false)
    await expect.poll(subscription(localId), { timeout: 40_000, interval: 50 }).toBe('resting')
    expect(agent.streams()).toEqual({ held: 0, opened: 2 })
    // It goes on after all.
    agent.say('WORKING')
    await new Scopes(running).turn(agentId)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 3 })
  })

  it('is opened again where nothing else shows whether the question stands', async () => {
    const { agent, agentId, localId, taskId } = await begun('thinks for long', { isShown: false })
    agent.say('INPUT_REQUIRED')
    await expect.poll(subscription(localId)).toBe('resting')
    agent.answersWith('', 0)
    await running.finished((await running.send(agentId, { text: 'My answer.', taskId })).id)
    await expect.poll(agent.streams, { timeout: 40_000, interval: 50 }).toEqual({ held: 1, opened: 3 })
    agent.say('WORKING')
    await running.task(localId, ({ state }) => state === 'TASK_STATE_WORKING')
    expect(agent.streams()).toEqual({ held: 1, opened: 3 })
  })

  it('is opened where a task that began with a question goes on by itself', async () => {
    const agent = await startPatientAgent('authorized elsewhere')
    onTestFinished(() => agent.close())
    agent.answersWith('AUTH_REQUIRED', 0)
    const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'Begin.' })).id)
    expect(await subscription(result?.localId ?? '')()).toBeNull()
    agent.say('WORKING')
    await new Scopes(running).turn(agentId)
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 1 })
  })
})
