/** Parts of artifacts as they are kept: whole where they are long, none of one that is not known, and no more than are asked for. */
import { sql } from 'slonik'
import { z } from 'zod'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readArtifactParts } from '../../persistence/artifact-parts.ts'
import { bothDatabases } from '../support/databases.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { live } from './histories.ts'

describe.each(bothDatabases)('parts of artifacts on %s', (kind) => {
  let running: RunningSystem
  let taskId: string
  beforeAll(async () => {
    running = await freshSystem(kind, { works: false })
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    const artifacts = [
      { artifactId: 'short', parts: [{ text: 'one,\ntwo' }, { data: { three: [3] } }] },
      { artifactId: 'long', parts: [{ text: 'x'.repeat(100_000) }] },
    ]
    const reply = { task: { id: 'parts', contextId: 'c', status: { state: 'TASK_STATE_WORKING' }, artifacts } }
    await live(running, agentId, { id: 'parts', body: { text: 'parts' }, reply, later: [] })
    taskId = await running.db.pool.oneFirst(sql.type(z.object({ id: z.string() }))`
      select id from task where remote_id = 'parts'`)
  })
  afterAll(() => running.close())

  it('are read as they were said', async () => {
    const parts = await readArtifactParts(running.db.pool, taskId, ['short', 'long', 'other', 'short'], 1_000_000)
    expect(
      Object.fromEntries([...parts].map(([id, texts]) => [id, texts.map((text): unknown => JSON.parse(text))])),
    ).toEqual({
      short: [
        { kind: 'text', value: 'one,\ntwo', mediaType: 'text/plain' },
        { kind: 'data', value: { three: [3] }, mediaType: 'application/json' },
      ],
      long: [{ kind: 'text', value: 'x'.repeat(100_000), mediaType: 'text/plain' }],
      other: [],
    })
  })

  it('are not read beyond a limit', async () => {
    const parts = await readArtifactParts(running.db.pool, taskId, ['short', 'along', 'long'], 100_000)
    expect([...parts.keys()]).toEqual(['along'])
  })
})
