/** A task that its agent no longer knows is lost until something of it is heard, by whatever clocks its process and others have. */
import { sql, type FragmentSqlToken } from 'slonik'
import { v7 as newToken } from 'uuid'
import { z } from 'zod'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askForgotten, keepGivenUp } from '../../persistence/given-up.ts'
import {
  anyUnfinished,
  forgetLost,
  hasUnfinished,
  noteLost,
  readUnfinished,
  unfinishedPage,
} from '../../persistence/reconciliation.ts'
import { unwatchedScopes } from '../../persistence/scopes.ts'
import { openModelStage, statusOf, type Stage } from '../actors/models/stage.ts'
import { bothDatabases } from '../support/databases.ts'
import { rowsRead } from '../support/rows-read.ts'

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

  /** As code does that knows only the table of losses. */
  const moved = (id: string) => stage.db.pool.query(sql.unsafe`update task set version = version + 1 where id = ${id}`)

  it('once its own row says so is asked for again by whatever is heard of it, by code from before, too', async () => {
    for (const heard of [moved, (id: string) => forgetLost(stage.db.pool, id)]) {
      const { version } = await stage.db.pool.one(
        sql.type(z.object({ version: z.number() }))`select version from task where id = ${taskId}`,
      )
      await lose(0, version)
      await keepGivenUp(stage.db.pool)
      await keepGivenUp(stage.db.pool)
      expect(await isWatched()).toBe(false)
      await heard(taskId)
      await keepGivenUp(stage.db.pool)
      expect(await isWatched()).toBe(true)
    }
  })

  it('is asked for once an hour, for a month', async () => {
    const dayMs = 24 * hourMs
    const before = Date.now()
    const after = (ms: number): string => new Date(before + ms).toISOString()
    await lose(0)
    await keepGivenUp(stage.db.pool)
    const asked: number[] = []
    for (const minutes of [30, 59, 61, 90, 119, 122, 122 + 60 * 24]) {
      await askForgotten(stage.db.pool, after(minutes * 60_000))
      if (!(await isWatched())) continue
      asked.push(minutes)
      await lose(minutes * 60_000)
      await keepGivenUp(stage.db.pool)
      expect(await isWatched()).toBe(false)
    }
    expect(asked).toEqual([61, 122, 122 + 60 * 24])
    await askForgotten(stage.db.pool, after(30 * dayMs + hourMs))
    expect(await isWatched()).toBe(false)
  })

  it('is lost no more where it ended or was heard of: nothing is asked of it by the hour', async () => {
    const other = await stage.beginTask(newToken(), 'TASK_STATE_WORKING')
    await lose(-2 * hourMs)
    const lost = [{ organizationId: stage.viewer.organizationId, taskId: other, version: 1 }]
    const at = new Date(Date.now() - 2 * hourMs).toISOString()
    for (let look = 0; look < looks; look++) await stage.db.pool.transaction((tx) => noteLost(tx, lost, at))
    await moved(taskId)
    await stage.db.pool.query(sql.unsafe`update task set state = 'TASK_STATE_COMPLETED' where id = ${other}`)
    await askForgotten(stage.db.pool, new Date().toISOString())
    expect(
      await stage.db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`select task_id as id from lost_task`),
    ).toEqual([])
    expect(await isWatched()).toBe(true)
  })

  it('is read by nobody who looks for what is to be asked for, however many there are', async () => {
    const count = 400
    const { organizationId } = stage.viewer
    const ids = await stage.db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`
      insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
      select gen_random_uuid(), ${organizationId}, ${stage.agentId}, '', 'r' || n, 'task', 'TASK_STATE_WORKING', 1, 1,
        now() - interval '1 day', now() - interval '1 day'
      from generate_series(1, ${count}::int) n returning id`)
    const lost = [taskId, ...ids].map((id) => ({ organizationId, taskId: id, version: 1 }))
    const at = new Date(Date.now() - hourMs).toISOString()
    for (let look = 0; look < looks; look++) await stage.db.pool.transaction((tx) => noteLost(tx, lost, at))
    await keepGivenUp(stage.db.pool)
    await stage.db.raw((client) => client.query('vacuum analyze task, lost_task'))
    const scope = { agentId: stage.agentId, tenant: '' }
    const now = new Date().toISOString()
    const page = { after: null, quietSince: now, at: now, readElsewhere: [], limit: 100 }
    const read = async (query: FragmentSqlToken): Promise<number> => {
      const { task = 0, lost_task = 0 } = await rowsRead(stage.db, query)
      return task + lost_task
    }
    const reads = [unwatchedScopes(now, [], 500), unfinishedPage(scope, page), anyUnfinished(scope)]
    for (const query of reads) expect(await read(query)).toBeLessThan(10)
    // Whose turn it is, an hour later: some at a time, and those that were asked for last come last.
    const later = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString()
    await askForgotten(stage.db.pool, later(-10))
    expect(await isWatched()).toBe(false)
    for (let turn = 1; turn <= 2; turn++) {
      await askForgotten(stage.db.pool, later(1))
      const due = await readUnfinished(stage.db.pool, scope, { ...page, at: later(1) })
      expect(due).toHaveLength(turn * 20)
    }
    await stage.db.pool.query(sql.unsafe`update lost_task set look_at = null`)
    await keepGivenUp(stage.db.pool)
    await stage.db.raw((client) => client.query('vacuum analyze task, lost_task'))
    const [first = '', second = ''] = ids
    await forgetLost(stage.db.pool, first)
    await moved(second)
    for (const query of reads) expect(await read(query)).toBeLessThan(10)
    const asked = await readUnfinished(stage.db.pool, scope, page)
    expect(asked.map(({ id }) => id)).toEqual([first, second].toSorted())
  })
})
