/**
 * Reading a large task leaves nothing behind: an embedded database keeps for good what it needed for its largest statement, and nobody
 * who looks at memory from inside of the process sees that. Of the long pass: it moves some hundred megabytes.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TaskAnswer, TasksAnswer } from '../../http/answers.ts'
import { startChild, type Child } from '../bench/child.ts'
import type { TorrentMethods } from '../bench/torrent-agent.ts'
import { Client } from '../support/api.ts'
import { spawnConsole, type SpawnedConsole } from '../support/console.ts'
import { isLong } from '../support/pass.ts'

const MiB = 1024 * 1024
const taskBytes = 100 * MiB
/** Joined into one text in the database, a few huge events took 500 for good. */
const keptBytes = 150 * MiB
const patience = { timeout: 120_000, interval: 500 }

describe.runIf(isLong)('a large task on the embedded database', { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'held-views-'))
  let agent: Child<TorrentMethods>
  beforeAll(() => {
    agent = startChild<TorrentMethods>(new URL('../bench/torrent-agent.ts', import.meta.url))
  })
  afterAll(async () => {
    await agent.end()
    rmSync(folder, { recursive: true })
  })

  test('of huge events is read again and again', async () => {
    const house = await spawnConsole({ dataDirectory: folder, database: 'pglite' })
    try {
      const api = new Client(house.url)
      const agentId = await api.register((await agent.call('open', { bytes: taskBytes })).huge)
      await api.post(`/api/agents/${agentId}/messages`, { text: 'Talk.' })
      const listed = async () => TasksAnswer.parse((await api.get('/api/tasks')).body).tasks[0]
      await expect.poll(async () => (await listed())?.state, patience).toBe('TASK_STATE_COMPLETED')
      const localId = String((await listed())?.localId)
      const before = residentBytes(house)
      for (let n = 0; n < 4; n++) {
        const { task } = TaskAnswer.parse((await api.get(`/api/tasks/${localId}`)).body)
        const shown = task.artifacts.flatMap(({ parts }) => parts.map(({ value }) => String(value).length))
        expect(shown.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(taskBytes / 2)
      }
      // Once its heap has been given back.
      await expect.poll(() => residentBytes(house) - before, patience).toBeLessThan(keptBytes)
    } finally {
      await house.kill()
    }
  })
})

function residentBytes({ process: { pid } }: SpawnedConsole): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
