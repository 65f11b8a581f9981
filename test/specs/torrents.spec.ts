/**
 * An agent that says more about one task than a stream brings: in a thousand small events or in a few huge ones, it is followed over
 * as many streams as that takes, all of it is stored and shown, others are served meanwhile, and nothing of it stays in memory. How
 * long others wait is measured by the bench of the same name.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { TaskAnswer, TasksAnswer } from '../../http/answers.ts'
import { startChild, type Child } from '../bench/child.ts'
import type { TorrentMethods } from '../bench/torrent-agent.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { eitherDatabase } from '../support/databases.ts'
import { heldBytes } from '../support/held-memory.ts'
import { isLong, sized } from '../support/pass.ts'

const MiB = 1024 * 1024
/** Of small events some streams, and one event of the huge ones: each small one costs a processor a tenth of a millisecond and more. */
const taskBytes = sized(3, 100) * MiB
/** Of words: with what is around them less than the 25 MiB that a stream may bring. */
const streamBytes = sized(2, 5) * MiB
/** More than a stream may bring. */
const cutOffBytes = 32 * MiB
/** What a process that has done much keeps: prepared statements, buffers of its pools, code. Less than an event of the huge ones. */
const keptBytes = 20 * MiB
const patienceMs = sized(90_000, 600_000)

describe.each(eitherDatabase)('a torrent about one task on %s', (database) => {
  let agent: Child<TorrentMethods>
  let house: TestConsole
  beforeAll(async () => {
    agent = startChild<TorrentMethods>(new URL('../bench/torrent-agent.ts', import.meta.url))
  })
  afterAll(() => agent.end())
  beforeEach(async () => {
    house = await startConsole({ database, uiDirectory: null })
  })
  afterEach(() => house.close())

  test.each(['small', 'huge'] as const)(
    'in %s events: is stored and shown whole, beside others who are served',
    { timeout: patienceMs + 30_000 },
    async (size) => {
      const cards = await agent.call('open', { bytes: taskBytes, ofStream: streamBytes })
      const agentId = await house.api.register(cards[size])
      const before = heldBytes()
      const { result } = await house.finished((await house.send(agentId, { text: 'Talk.' })).id)
      const localId = String(result?.localId)
      let served = 0
      // Who only needs the process, who reads the database, and the list with the task.
      const look = async (): Promise<string | undefined> => {
        for (const path of ['/api/auth/session', '/api/agents']) expect((await house.api.get(path)).status).toBe(200)
        const { tasks } = TasksAnswer.parse((await house.api.get('/api/tasks?limit=1')).body)
        served++
        return tasks[0]?.state
      }
      await expect.poll(look, { timeout: patienceMs, interval: 60 }).toBe('TASK_STATE_COMPLETED')
      expect(served).toBeGreaterThan(3)
      await expect.poll(() => heldBytes() - before, { interval: 250 }).toBeLessThan(keptBytes)

      const { task, following } = TaskAnswer.parse((await house.api.get(`/api/tasks/${localId}`)).body)
      // What the agent said on a stream that we hung up on is not to be had again: then this says why we did.
      const troubles = house.lines.filter(({ level }) => level !== 'info')
      const shown = task.artifacts.flatMap(({ parts }) => parts.map(({ value }) => String(value).length))
      const shownBytes = shown.reduce((sum, length) => sum + length, 0)
      expect(shownBytes, JSON.stringify({ following, troubles })).toBe((await agent.call('said', null)).at(-1))
      expect(task.transitions.map(({ state }) => state)).toEqual(['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'])
    },
  )

  test.runIf(database === 'postgresql')(
    'that goes on where a stream was cut off: is told to lack something',
    { timeout: patienceMs + 30_000 },
    async () => {
      const cards = await agent.call('open', { bytes: cutOffBytes })
      // The limit counts bytes, whoever brings them: the short pass reaches it in the second event, the long one in ten thousands.
      const agentId = await house.api.register(isLong ? cards.small : cards.huge)
      const { result } = await house.finished((await house.send(agentId, { text: 'Talk.' })).id)
      const missing = expect.stringContaining('An event of the stream was left out') as string
      const read = async () => TaskAnswer.parse((await house.api.get(`/api/tasks/${result?.localId}`)).body).following
      const told = { state: 'finished', reason: missing, nextAttemptAt: null }
      const listed = async () => TasksAnswer.parse((await house.api.get('/api/tasks?limit=1')).body).tasks[0]?.state
      await expect.poll(listed, { timeout: patienceMs, interval: 100 }).toBe('TASK_STATE_COMPLETED')
      await expect.poll(read, { timeout: 30_000, interval: 1_000 }).toEqual(told)
    },
  )
})
