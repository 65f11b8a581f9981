/** A task that its agent no longer knows is lost until something of it is heard, by whatever clocks its process and others have. */
import { v7 as newToken } from 'uuid'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hasUnfinished, noteLost } from '../../persistence/reconciliation.ts'
import { openModelStage, statusOf, type Stage } from '../actors/models/stage.ts'
import { bothDatabases } from '../support/databases.ts'

const hourMs = 3_600_000
/** After so many looks in vain only news brings it back. */
const looks = 5

describe.each(bothDatabases)('a lost task on %s', (kind) => {
  let stage: Stage
  let remoteId: string
  let taskId: string
  beforeEach(async () => {
    stage = await openModelStage(kind)
    remoteId = newToken()
    taskId = await stage.beginTask(remoteId, 'TASK_STATE_WORKING')
  })

  afterEach(() => stage.close())

  /** By a process whose clock is so far from those of the others. */
  async function lose(offMs: number, version = 1): Promise<void> {
    const at = new Date(Date.now() + offMs).toISOString()
    const lost = [{ organizationId: stage.viewer.organizationId, taskId, version }]
    for (let look = 0; look < looks; look++) await stage.db.pool.transaction((tx) => noteLost(tx, lost, at))
  }
  const isWatched = (): Promise<boolean> => hasUnfinished(stage.db.pool, { agentId: stage.agentId, tenant: '' })

  it.each([-hourMs, 0, hourMs])(
    'noted by a clock that is %d ms off is asked for no more, until it is heard of',
    async (offMs) => {
      expect(await isWatched()).toBe(true)
      await lose(offMs)
      expect(await isWatched()).toBe(false)
      const seen = statusOf(remoteId, 'TASK_STATE_INPUT_REQUIRED', new Date().toISOString())
      await stage.tell({ kind: 'subscription', id: taskId }, { source: 'stream', remoteTaskId: remoteId }, seen)
      expect(await isWatched()).toBe(true)
    },
  )

  it('is void where it was heard of after it was asked for, and before the loss was noted', async () => {
    const seen = statusOf(remoteId, 'TASK_STATE_INPUT_REQUIRED', new Date().toISOString())
    await stage.tell({ kind: 'subscription', id: taskId }, { source: 'push', remoteTaskId: remoteId }, seen)
    await lose(0)
    expect(await isWatched()).toBe(true)
    await lose(0, 2)
    expect(await isWatched()).toBe(false)
  })
})
