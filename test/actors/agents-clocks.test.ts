/**
 * Agents' clocks run back: of a replica, by an NTP step, in whole seconds beside milliseconds. What the agent shows whenever it is
 * asked is how its task stands, an end is one with everything made by then, and a rebuild comes to the same view. A single look
 * that is behind, as of a replica that lags, is none.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { rebuildTask } from '../../actors/rebuild.ts'
import { instruments } from '../../actors/system.ts'
import { eitherDatabase } from '../support/databases.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { startPatientAgent } from './patient-agent.ts'
import { patience, Scopes } from './reconciliation-turns.ts'

const State = z.object({ state: z.string() })

describe.each(eitherDatabase)('an agent whose clock runs back, on %s', (kind) => {
  let running: RunningSystem
  /** The process' own clock, which no lease is so short of. */
  let aheadMs = 0
  beforeAll(async () => {
    const monotonic = (): number => performance.now() + aheadMs
    running = await freshSystem(kind, { instruments: { ...instruments, monotonic } })
  })
  afterAll(() => running.close())
  const subscription = (localId: string) => (): Promise<string | null> =>
    running.db.pool.maybeOneFirst(sql.type(State)`
      select snapshot->>'value' as state from actor where kind = 'subscription' and id = ${localId}`)
  const view = (localId: string) => running.task(localId, () => true)
  const stateOf = (localId: string) => async () => (await view(localId)).state
  const made = async (localId: string) =>
    (await view(localId)).artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))

  async function begun(name: string, streaming = true) {
    const agent = await startPatientAgent(name, { streaming })
    onTestFinished(() => agent.close())
    const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'Begin.' })).id)
    if (streaming) await expect.poll(agent.streams).toEqual({ held: 1, opened: 1 })
    return { agent, agentId, localId: result?.localId ?? '', remoteId: result?.taskId ?? '' }
  }
  async function isRebuiltAlike(localId: string): Promise<void> {
    const [organizationId, before] = [running.viewer.organizationId, await view(localId)]
    expect(await rebuildTask(running.db.pool, organizationId, localId)).toMatchObject({ repaired: false })
    expect(await view(localId)).toEqual(before)
  }

  async function isBelieved(how: string, streaming: boolean): Promise<void> {
    const { agent, agentId, localId, remoteId } = await begun(`asks, ${how}`, streaming)
    agent.say('INPUT_REQUIRED', { agoMs: 60_000, made: ['half'] })
    await expect.poll(stateOf(localId), patience).toBe('TASK_STATE_INPUT_REQUIRED')
    await expect.poll(subscription(localId), patience).toBe('resting')
    expect(await made(localId)).toEqual(['half'])
    await isRebuiltAlike(localId)

    agent.answersWith('WORKING', 120_000)
    await running.finished((await running.send(agentId, { text: 'Go on.', taskId: remoteId })).id)
    await expect.poll(stateOf(localId), patience).toBe('TASK_STATE_WORKING')
    await isRebuiltAlike(localId)
  }

  it('is believed when it asks, and when it goes on: one that streams, and one that is read', async () => {
    await Promise.all([isBelieved('streaming', true), isBelieved('read', false)])
  })

  it('has its task end with all that it made', async () => {
    const { agent, localId } = await begun('ends', false)
    agent.say('WORKING', { made: ['half'] })
    await expect.poll(() => made(localId), patience).toEqual(['half'])
    agent.say('COMPLETED', { agoMs: 60_000, made: ['half', 'whole'] })
    await expect.poll(stateOf(localId), patience).toBe('TASK_STATE_COMPLETED')
    expect(await made(localId)).toEqual(['half', 'whole'])
    await isRebuiltAlike(localId)
  })

  it('starts following with its answer, though that shows its question as it stood a moment before', async () => {
    const { agent, agentId, localId, remoteId } = await begun('whole seconds')
    agent.say('INPUT_REQUIRED')
    await expect.poll(subscription(localId), patience).toBe('resting')
    agent.answersWith('INPUT_REQUIRED', 60_000)
    await running.finished((await running.send(agentId, { text: 'Go on.', taskId: remoteId })).id)
    await expect.poll(subscription(localId), patience).not.toBe('resting')
    await expect.poll(() => agent.streams().opened, patience).toBeGreaterThan(1)
  })

  it('is not believed against its own stream, whose chunks would be gone', async () => {
    const { agent, agentId, localId } = await begun('stores late')
    const scopes = new Scopes(running)
    agent.tellChunk('one ', false)
    await expect.poll(() => made(localId), patience).toEqual(['one '])
    agent.say('SUBMITTED', { agoMs: 60_000, made: ['on'], isSilent: true })
    for (const [n, text] of ['two ', 'three ', 'four '].entries()) {
      const looks = agent.looks()
      await scopes.turn(agentId)
      expect(agent.looks()).toBeGreaterThan(looks)
      agent.tellChunk(text, true)
      await expect.poll(() => made(localId).then(({ length }) => length), patience).toBe(n + 2)
      // Longer than what looks have to show the same.
      aheadMs += 4_000
    }
    expect(await made(localId)).toEqual(['one ', 'two ', 'three ', 'four '])
    expect(await stateOf(localId)()).toBe('TASK_STATE_WORKING')
  })

  it('is not believed at the first look, nor where more was heard meanwhile', async () => {
    const { agent, agentId, localId } = await begun('lags')
    const scopes = new Scopes(running)
    agent.say('INPUT_REQUIRED', { agoMs: 60_000, isSilent: true })
    const before = agent.looks()
    await scopes.turn(agentId)
    expect(agent.looks()).toBeGreaterThan(before)
    expect(await stateOf(localId)()).toBe('TASK_STATE_WORKING')
    const { version } = await view(localId)
    agent.say('WORKING', { agoMs: -2_000 })
    await running.task(localId, (task) => task.version > version)
    agent.say('INPUT_REQUIRED', { agoMs: 60_000, isSilent: true })
    await scopes.turn(agentId)
    expect(await stateOf(localId)()).toBe('TASK_STATE_WORKING')
  })
})
