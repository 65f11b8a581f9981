/**
 * What an agent says between two of its streams, or says anew in each: nothing is missed while a stream goes on whose agent does not show
 * the task as it begins [console-http-api.md: "Background loops", "so missed events heal"], and what is told anew is no news.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { eitherDatabase } from '../support/databases.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { startPatientAgent, type PatientOptions } from './patient-agent.ts'

describe.each(eitherDatabase)('a stream on %s', (kind) => {
  let running: RunningSystem
  beforeAll(async () => {
    running = await freshSystem(kind)
  })
  afterAll(() => running.close())

  async function begun(name: string, options: PatientOptions) {
    const agent = await startPatientAgent(name, options)
    onTestFinished(() => agent.close())
    const { id: agentId } = await running.system.agents.register(running.viewer, agent.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text: 'Begin.' })).id)
    return { agent, localId: result?.localId ?? '' }
  }
  const textsOf = (localId: string) => async (): Promise<unknown[]> => {
    const { artifacts } = await running.task(localId, () => true)
    return artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))
  }

  it('is looked beside, where it begins with what comes: the hole before it is closed while it goes on', async () => {
    const { agent, localId } = await begun('live only', { begins: 'with what comes' })
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 1 })
    agent.say('WORKING', { made: ['one'], isSilent: true })
    agent.tellChunk('one', false)
    await expect.poll(textsOf(localId)).toEqual(['one'])
    await expect.poll(agent.looks).toBeGreaterThan(0)
    const looks = agent.looks()
    agent.cut()
    // The look at its end, which sees nothing of this.
    await expect.poll(agent.looks, { interval: 5 }).toBe(looks + 1)
    agent.say('WORKING', { made: ['one', 'two'], isSilent: true })
    await expect.poll(agent.streams).toEqual({ held: 1, opened: 2 })
    agent.say('WORKING', { made: ['one', 'two', 'three'], isSilent: true })
    agent.tellChunk('three', true)
    await expect.poll(textsOf(localId)).toEqual(['one', 'two', 'three'])
    // It is the same stream, and goes on where it was.
    agent.tellChunk('four', true)
    await expect.poll(textsOf(localId)).toEqual(['one', 'two', 'three', 'four'])
    expect(agent.streams()).toEqual({ held: 1, opened: 2 })
  })

  it.each([
    ['shows the artifact', {}],
    ['is asked in vain', { isShown: false as const }],
  ])('that tells all chunks anew each time is opened ever more rarely, where the agent %s', async (_, options) => {
    const { agent, localId } = await begun(`anew ${JSON.stringify(options)}`, { begins: 'with all chunks', ...options })
    agent.say('WORKING', { made: ['one', 'two', 'three'], isSilent: true })
    await expect.poll(textsOf(localId)).toEqual(['one', 'two', 'three'])
    // By which the pause before the next grows: 1, 2, 4 s.
    const failures = () =>
      running.db.pool.maybeOneFirst(sql.type(z.object({ n: z.number() }))`
        select (snapshot->'context'->>'failures')::int as n from actor where kind = 'subscription' and id = ${localId}`)
    await expect.poll(failures, { timeout: 20_000, interval: 50 }).toBe(3)
    expect(await textsOf(localId)()).toEqual(['one', 'two', 'three'])
  })
})
