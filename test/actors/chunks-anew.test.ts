/** What an agent tells anew in each of its streams is no news: they are opened ever more rarely [console-http-api.md: "Background loops"]. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { eitherDatabase } from '../support/databases.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { startPatientAgent, type PatientOptions } from './patient-agent.ts'

describe.each(eitherDatabase)('a subscription on %s', (kind) => {
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

  it.each([
    ['shows the artifact', {}],
    ['is asked in vain', { isShown: false as const }],
  ])('opens streams that tell all chunks anew ever more rarely, where the agent %s', async (_, options) => {
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
