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
import { isLong } from '../support/pass.ts'
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
  async function lose(offMs: number, version = 1, oversized = false): Promise<void> {
    await giveUp([taskId], offMs, { version, oversized })
  }
  async function giveUp(ids: readonly string[], offMs: number, { version = 1, oversized = false } = {}): Promise<void> {
    const { organizationId } = stage.viewer
    const at = new Date(Date.now() + offMs).toISOString()
    const lost = ids.map((id) => ({ organizationId, taskId: id, version, oversized }))
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

  /** As many of an agent's, found by nobody for an hour. */
  async function loseMany(agentId: string, count: number): Promise<readonly string[]> {
    const { organizationId } = stage.viewer
    const ids = await stage.db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`
      insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
      select gen_random_uuid(), ${organizationId}, ${agentId}, '', 'r' || n, 'task', 'TASK_STATE_WORKING', 1, 1,
        now() - interval '1 day', now() - interval '1 day'
      from generate_series(1, ${count}::int) n returning id`)
    await giveUp(ids, -hourMs)
    while ((await given()) < count) await keepGivenUp(stage.db.pool)
    return ids
  }
  const counted = (query: FragmentSqlToken): Promise<number> =>
    stage.db.pool.oneFirst(sql.type(z.object({ count: z.number() }))`select count(*)::int as count ${query}`)
  const given = () => counted(sql.fragment`from task where given_up_version is not null`)
  const due = (agentId: string) =>
    counted(sql.fragment`from lost_task l join task t on t.id = l.task_id
      where t.agent_id = ${agentId} and l.look_at is not null and t.given_up_version is null`)

  it('is asked for at the beginning of each hour, for a month', async () => {
    const from = Date.parse(new Date(Date.now() + hourMs).toISOString().replace(/:.*/, ':00:00Z'))
    const at = (hours: number): string => new Date(from + hours * hourMs).toISOString()
    await lose(from - Date.now() + hourMs / 10)
    await keepGivenUp(stage.db.pool)
    const asked: number[] = []
    for (const hours of [0.5, 0.9, 1, 1.5, 1.9, 2.01, 24, 24.5]) {
      await askForgotten(stage.db.pool, at(hours))
      if (!(await isWatched())) continue
      asked.push(hours)
      await lose(from + hours * hourMs - Date.now())
      await keepGivenUp(stage.db.pool)
      expect(await isWatched()).toBe(false)
    }
    expect(asked).toEqual([1, 2.01, 24])
    const month = 30 * 24
    await askForgotten(stage.db.pool, at(month + 2))
    expect(await isWatched()).toBe(true)
    await lose(from + (month + 2) * hourMs - Date.now())
    await keepGivenUp(stage.db.pool)
    await askForgotten(stage.db.pool, at(month + 4))
    expect(await isWatched()).toBe(false)
  })

  it('is not asked for by the hour where it is too large to be read, or its agent was removed', async () => {
    await lose(-2 * hourMs, 1, true)
    await askForgotten(stage.db.pool, new Date().toISOString())
    expect(await isWatched()).toBe(false)
    await stage.db.pool.query(sql.unsafe`update agent set enabled = false`)
    await loseMany(stage.agentId, 3)
    await askForgotten(stage.db.pool, new Date().toISOString())
    expect(await due(stage.agentId)).toBe(0)
  })

  it('keeps nobody’s waiting of whom fewer were forgotten: twenty of each agent are asked for at a time', async () => {
    const other = '019f0000-0000-7000-8000-000000000001'
    await stage.db.pool.query(sql.unsafe`
      insert into agent (id, organization_id, card_url, source, name)
      values (${other}, ${stage.viewer.organizationId}, 'http://other.example/card.json', 'managed', 'Other')`)
    await loseMany(stage.agentId, 190)
    await loseMany(other, 3 + 190)
    const sweep = () => askForgotten(stage.db.pool, new Date().toISOString())
    await sweep()
    expect([await due(stage.agentId), await due(other)]).toEqual([20, 10])
    await sweep()
    expect([await due(stage.agentId), await due(other)]).toEqual([20, 30])
    // All had their turn in this hour.
    await sweep()
    expect([await due(stage.agentId), await due(other)]).toEqual([20, 30])
  })

  it('is asked for or given up, and never neither, whoever does both at once', async () => {
    await loseMany(stage.agentId, 60)
    const everybody = Array.from({ length: 12 }, async (_, n) => {
      const later = new Date(Date.now() + (n + 1) * hourMs).toISOString()
      await Promise.all([askForgotten(stage.db.pool, later), keepGivenUp(stage.db.pool)])
    })
    await Promise.all(everybody)
    const neither = sql.fragment`from task t join lost_task l on l.task_id = t.id
      where t.given_up_version is not null and l.look_at is not null`
    expect(await counted(neither)).toBe(0)
  })

  it('is lost no more where it ended or was heard of: nothing is asked of it by the hour', async () => {
    const other = await stage.beginTask(newToken(), 'TASK_STATE_WORKING')
    await giveUp([taskId, other], -2 * hourMs)
    await moved(taskId)
    await stage.db.pool.query(sql.unsafe`update task set state = 'TASK_STATE_COMPLETED' where id = ${other}`)
    await askForgotten(stage.db.pool, new Date().toISOString())
    expect(await counted(sql.fragment`from lost_task`)).toBe(0)
    expect(await isWatched()).toBe(true)
  })

  // What its planner makes of three thousand rows, which take the embedded database seconds: there in the long pass.
  it.runIf(isLong || kind === 'postgresql')(
    'is read by nobody who looks for what is to be asked for, however many there are',
    async () => {
      const ids = await loseMany(stage.agentId, 3_000)
      await lose(-hourMs)
      await keepGivenUp(stage.db.pool)
      const scope = { agentId: stage.agentId, tenant: '' }
      const now = new Date().toISOString()
      const page = { after: null, quietSince: now, at: now, readElsewhere: [], limit: 100 }
      const read = async (query: FragmentSqlToken): Promise<number> => {
        const { task = 0, lost_task = 0 } = await rowsRead(stage.db, query)
        return task + lost_task
      }
      const reads = [unwatchedScopes(now, [], 500), unfinishedPage(scope, page), anyUnfinished(scope)]
      const analyze = () => stage.db.raw((client) => client.query('vacuum analyze task, lost_task'))
      await analyze()
      for (const query of reads) expect(await read(query)).toBeLessThan(10)
      const [first = '', second = ''] = ids
      await forgetLost(stage.db.pool, first)
      await moved(second)
      for (const query of reads) expect(await read(query)).toBeLessThan(10)
      const asked = await readUnfinished(stage.db.pool, scope, page)
      expect(asked.map(({ id }) => id)).toEqual([first, second].toSorted())
      // Beside many that are asked for: of those each is looked up by itself, and no more of them than a page has.
      await stage.db.pool.query(
        sql.unsafe`update task set version = version + 1 where id = any(${sql.array(ids.slice(0, 1_500), 'uuid')})`,
      )
      await analyze()
      const [unwatched, ofPage, any] = await Promise.all(reads.map(read))
      expect([unwatched, any].map((rows) => (rows ?? 0) < 10)).toEqual([true, true])
      expect(ofPage).toBeLessThan(4 * page.limit)
    },
  )
})
