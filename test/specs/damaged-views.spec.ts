/** Views of a task whose rows are damaged: what cannot be read says so, everything else is shown, and the operator is told once. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { rebuildTask } from '../../actors/rebuild.ts'
import { longValue } from '../../domain/part-text.ts'
import { unreadable } from '../../persistence/part-rows.ts'
import { TaskAnswer, TaskViewsAnswer } from '../../http/answers.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

/** Begins and ends with characters of several bytes, and has JSON's own within. */
const said = `é, "1", 2]}${'😀x'.repeat(longValue)}é`
/** Where the value begins: the first character after its quote has two bytes. */
const Row = z.object({ event: z.string(), from: z.number(), bytes: z.number() })

describe.each(bothDatabases)('a damaged task on %s', (database) => {
  let house: TestConsole
  let peer: RawPeer
  let taskId: string
  let whole: z.infer<typeof TaskAnswer>['task']

  beforeAll(async () => {
    house = await startConsole({ database, uiDirectory: null })
    peer = await startRawPeer()
    const agentId = await house.api.register(peer.cardUrl)
    const ids: string[] = []
    for (const text of ['one', 'two', 'three']) {
      const done = await house.finished((await house.send(agentId, { text })).id)
      ids.push(String(done.result?.localId))
    }
    taskId = ids.toSorted((a, b) => (a < b ? -1 : 1))[1] ?? ''
    // Nothing more is heard of them: what is put behind a task's events stays their last.
    await vi.waitUntil(async () => (await subscriptions()) === 0, { timeout: 20_000, interval: 20 })
    // As an agent's stream leaves it, and whole by what the task's events say.
    const { taskId: remote, contextId } = (await viewOf()) ?? {}
    const artifact = { artifactId: 'long', parts: [{ text: said }] }
    const event = JSON.stringify({ artifactUpdate: { taskId: remote, contextId, artifact, lastChunk: true } })
    await house.db.pool.query(sql.unsafe`
      insert into task_event (task_id, position, source, event, received_at)
      select id, events, 'stream', ${event}, updated_at from task where id = ${taskId}`)
    await repair()
    whole = await viewOf()
    expect(whole.artifacts.at(-1)?.parts).toEqual([
      { id: 'long:0', kind: 'text', value: said, mediaType: 'text/plain' },
    ])
  }, 60_000)
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  const subscriptions = () =>
    house.db.pool.oneFirst(sql.type(z.object({ left: z.number() }))`
      select count(*)::int as left from actor where kind = 'subscription'`)
  const viewOf = async () => {
    const reply = await house.api.get(`/api/tasks/${taskId}`)
    expect(reply.status).toBe(200)
    return TaskAnswer.parse(reply.body).task
  }
  const page = async () => {
    const reply = await house.api.get('/api/task-views')
    expect(reply.status).toBe(200)
    return TaskViewsAnswer.parse(reply.body).tasks
  }
  const repair = () => rebuildTask(house.db.pool, house.viewer.organizationId, taskId)
  const row = () =>
    house.db.pool.one(sql.type(Row)`
      select e.event, p.value_from as from, p.value_bytes as bytes from task_artifact_part p
      join task_event e on e.task_id = p.task_id and e.position = p.value_event where p.task_id = ${taskId}`)
  const place = (from: number, bytes: number) =>
    house.db.pool.query(sql.unsafe`
      update task_artifact_part set value_from = ${from}, value_bytes = ${bytes}
      where task_id = ${taskId} and artifact_id = 'long'`)

  test.each<[string, (at: { from: number; bytes: number; event: string }) => [from: number, bytes: number]]>([
    ['behind its event', ({ event }) => [Buffer.byteLength(event) + 1, 10]],
    ['behind all texts', () => [2 ** 31 - 1, 2 ** 31 - 1]],
    ['over the end of its event', ({ from, event }) => [from, Buffer.byteLength(event)]],
    ['from within a character', ({ from, bytes }) => [from + 2, bytes - 2]],
    ['to within a character', ({ from, bytes }) => [from, bytes - 2]],
    ['before its event', ({ bytes }) => [-1, bytes]],
    ['before all texts', ({ bytes }) => [-(2 ** 31), bytes]],
    ['of less than nothing', ({ from }) => [from, -1]],
    ['of nothing', ({ from }) => [from, 0]],
    ['from within the value', ({ from, bytes }) => [from + '"é'.length + 1, bytes - '"é'.length - 1]],
    ['of a number instead of a text', ({ from }) => [from + '"é, \\"'.length + 1, 1]],
    ['of the whole event', ({ event }) => [0, Buffer.byteLength(event)]],
  ])('a value %s is said not to be readable, and everything else is as it was', async (_name, placeOf) => {
    await place(...placeOf(await row()))
    const damaged = {
      ...whole,
      artifacts: whole.artifacts.map((made) =>
        made.artifactId === 'long' ? { ...made, parts: [{ id: 'long:0', ...unreadable }] } : made,
      ),
    }
    expect(await viewOf()).toEqual(damaged)
    const tasks = await page()
    expect(tasks).toHaveLength(3)
    expect(tasks[1]).toEqual(damaged)
    await repair()
    expect(await viewOf()).toEqual(whole)
  })

  test('so are a value whose event is missing, a row that is no part, and words that are none', async () => {
    const { pool } = house.db
    const partOf = async () => (await viewOf()).artifacts.at(-1)?.parts
    const cannot = [{ id: 'long:0', ...unreadable }]
    await pool.query(
      sql.unsafe`update task_artifact_part set value_event = 99 where task_id = ${taskId} and artifact_id = 'long'`,
    )
    expect(await partOf()).toEqual(cannot)
    for (const text of [' {}', '{"kind":', '7', ' ', '{}']) {
      await pool.query(
        sql.unsafe`update task_artifact_part set part = ${text} where task_id = ${taskId} and artifact_id = 'long'`,
      )
      expect(await partOf()).toEqual(cannot)
    }
    await pool.query(sql.unsafe`update task_message set parts = '[{"kind":"text"' where task_id = ${taskId}`)
    expect((await viewOf()).messages.flatMap(({ parts }) => parts.map(({ value }) => value))).toContain(
      unreadable.value,
    )
    expect(await page()).toHaveLength(3)
    await repair()
  })

  test('one that cannot be read takes no other part of its artifact with it', async () => {
    const { pool } = house.db
    const { from, bytes } = await row()
    for (const [position, text] of ['before', 'behind'].entries())
      await pool.query(sql.unsafe`
        insert into task_artifact_part (task_id, artifact_id, position, part)
        values (${taskId}, 'long', ${position * 2 + 1}, ${JSON.stringify({ kind: 'text', value: text, mediaType: 'text/plain' })})`)
    await pool.query(sql.unsafe`
      update task_artifact_part set position = case position when 0 then 2 when 1 then 0 else position end + 10
      where task_id = ${taskId} and artifact_id = 'long'`)
    // Its bytes can be decoded, and are no JSON.
    await place(from + 1 + '"é'.length, bytes - 1 - '"é'.length)
    const parts = (await viewOf()).artifacts.at(-1)?.parts
    expect(parts?.map(({ id, value }) => [id, value])).toEqual([
      ['long:0', 'before'],
      ['long:1', unreadable.value],
      ['long:2', 'behind'],
    ])
    await repair()
  })

  test('a length that cannot be leaves out nothing of the task', async () => {
    const { from } = await row()
    await place(from, 2 ** 31 - 1)
    const { artifacts } = await viewOf()
    expect(artifacts.map(({ artifactId }) => artifactId)).toEqual(whole.artifacts.map(({ artifactId }) => artifactId))
    expect(artifacts.at(-1)?.parts[0]?.value).toBe(unreadable.value)
    await repair()
  })

  test('the operator is told of it once', () => {
    const told = house.log.errors().map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(told).toEqual([
      expect.objectContaining({
        taskId,
        organizationId: house.viewer.organizationId,
        parts: 1,
        msg: expect.stringContaining('rebuild'),
      }),
    ])
  })
})
