/** Views of tasks that hold more than anybody should wait for: pages become shorter, and one view says what it leaves out. */
import { randomUUID } from 'node:crypto'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { TaskAnswer, TaskViewsAnswer } from '../../http/answers.ts'
import { pageBytes, statementBytes, viewBytes, viewMessages } from '../../persistence/task-weights.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { eitherDatabase } from '../support/databases.ts'
import { sized } from '../support/pass.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const MiB = 1024 * 1024

describe.each(eitherDatabase)('heavy tasks on %s', (database) => {
  let house: TestConsole
  let peer: RawPeer
  const ids: string[] = []

  beforeAll(async () => {
    house = await startConsole({ database, uiDirectory: null })
    peer = await startRawPeer()
    const agentId = await house.api.register(peer.cardUrl)
    for (let n = 0; n < 4; n++) {
      const done = await house.finished((await house.send(agentId, { text: `hello ${n}` })).id)
      ids.push(String(done.result?.localId))
    }
    ids.sort((a, b) => (a < b ? -1 : 1))
  }, 60_000)
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  /** As a stream of large values leaves them; made in the database, for what crosses to it is not what is looked at. */
  const grow = (taskId: string, artifactId: string, ...megabytes: readonly number[]) =>
    house.db.pool.query(sql.unsafe`
      with a as (
        insert into task_artifact (task_id, artifact_id, position, extensions, complete, update_count, part_count, parts_digest)
        values (${taskId}, ${artifactId}, ${artifactId === 'first' ? 5000 : 6000}, '[]', false, 1, ${megabytes.length}, ''))
      insert into task_artifact_part (task_id, artifact_id, position, part)
      select ${taskId}, ${artifactId}, n - 1, '{"kind":"text","value":"' || repeat('x', megabytes * ${MiB}) || '","mediaType":"text/plain"}'
      from unnest(${sql.array([...megabytes], 'int4')}) with ordinality as part (megabytes, n)`)
  const page = async (after: string | null) => {
    const reply = await house.api.get(`/api/task-views${after === null ? '' : `?after=${after}`}`)
    expect(reply.status).toBe(200)
    return TaskViewsAnswer.parse(reply.body)
  }
  /** Of all pages, which show every task once. */
  async function pageLengths(): Promise<readonly number[]> {
    const pages: string[][] = []
    for (let after: string | null = null; ;) {
      const { tasks, next } = await page(after)
      pages.push(tasks.map(({ localId }) => localId))
      if (next === null) break
      expect(next).toBe(tasks.at(-1)?.localId)
      after = next
    }
    expect(pages.flat()).toEqual(ids)
    return pages.map(({ length }) => length)
  }
  /** Said after all else, in few words. */
  const say = (taskId: string, count: number) =>
    house.db.pool.query(sql.unsafe`
      insert into task_message (task_id, message_id, position, role, said_at, from_status, parts)
      select ${taskId}, 'short ' || n, 100000 + n, 'agent', now(), false, '[{"kind":"text","value":"' || n || '","mediaType":"text/plain"}]'
      from generate_series(1, ${count}) n`)
  const viewOf = async (id: string) => TaskAnswer.parse((await house.api.get(`/api/tasks/${id}`)).body).task

  test('have their parts in order, with their own names, also where each page of them is a statement of its own', async () => {
    const [first = ''] = ids
    const bytes = Math.floor(statementBytes / 3)
    // Some end with a page, some go over it; and in between one that is many.
    const counts = { zeta: 4, alpha: 1, many: 500, last: 3 }
    for (const [place, [artifactId, parts]] of Object.entries(counts).entries())
      await house.db.pool.query(sql.unsafe`
        with a as (
          insert into task_artifact (task_id, artifact_id, position, extensions, complete, update_count, part_count, parts_digest)
          values (${first}, ${artifactId}, ${8000 + place}, '[]', false, 1, ${parts}, ''))
        insert into task_artifact_part (task_id, artifact_id, position, part)
        select ${first}, ${artifactId}, n, '{"kind":"text","value":"' || n || ' of ' || ${artifactId}::text
          || repeat('x', ${artifactId === 'many' ? 100 : bytes}) || '","mediaType":"text/plain"}'
        from generate_series(0, ${parts - 1}) n`)
    const made = (await viewOf(first)).artifacts.filter(({ artifactId }) => artifactId !== 'answer')
    expect(made.map(({ artifactId, parts }) => [artifactId, parts.length])).toEqual(Object.entries(counts))
    for (const { artifactId, parts } of made)
      expect(parts.map(({ id, value }) => [id, String(value).split('x')[0]])).toEqual(
        parts.map((_part, n) => [`${artifactId}:${n}`, `${n} of ${artifactId}`]),
      )
    for (const table of ['task_artifact', 'task_artifact_part'])
      await house.db.pool.query(sql.unsafe`
        delete from ${sql.identifier([table])} where task_id = ${first} and artifact_id = any(${sql.array(Object.keys(counts), 'text')})`)
  })

  test('of many short messages come on shorter pages, too', async () => {
    for (const id of ids.slice(0, 2)) await say(id, viewMessages)
    expect(await pageLengths()).toEqual([1, 3])
    await house.db.pool.query(sql.unsafe`delete from task_message where message_id like 'short %'`)
  })

  test('come on pages that are shorter, and none is left out', async () => {
    const [, second = '', third = ''] = ids
    const quarter = pageBytes / 4 / MiB
    for (const id of [second, third]) await grow(id, 'first', quarter, quarter, quarter)
    expect(await pageLengths()).toEqual([2, 2])
  })

  test('show so much of what was made, and say that there is more', { timeout: 240_000 }, async () => {
    const [, , , last = ''] = ids
    // The first that is beyond is not read. Before it there is as much as fits, in the long pass; in the short one it is the larger.
    const [each, beyond] = [sized(2, 24), sized(120, 24)]
    await grow(last, 'first', 24, each, each, each)
    await grow(last, 'second', each, beyond)
    // A stream of small ones behind them, some of which have no parts yet.
    await house.db.pool.query(sql.unsafe`
      with a as (
        insert into task_artifact (task_id, artifact_id, position, extensions, complete, update_count, part_count, parts_digest)
        select ${last}, 'behind-' || n, 7000 + n, '[]', false, 1, n % 2, '' from generate_series(1, 3000) n)
      insert into task_artifact_part (task_id, artifact_id, position, part)
      select ${last}, 'behind-' || n, 0, '{"kind":"text","value":"x","mediaType":"text/plain"}' from generate_series(1, 3000) n
      where n % 2 = 1`)
    // It is still a page of its own, and the one before it another. Read once: it is up to 128 MiB of JSON.
    const { tasks, next } = await page(ids[2] ?? '')
    expect([tasks.map(({ localId }) => localId), next]).toEqual([[last], null])
    const [{ artifacts } = { artifacts: [] }] = tasks
    const made = artifacts.filter(({ artifactId }) => artifactId !== 'answer')
    const shown = made.map(({ parts }) => parts.map(({ kind, value }) => [kind, String(value).length]))
    expect(shown.map((parts) => parts.map(([kind]) => kind))).toEqual([
      ['text', 'text', 'text', 'text'],
      ['text', 'unknown'],
    ])
    expect(z.string().parse(made[1]?.parts[1]?.value)).toBe(
      `The task holds more than ${viewBytes.artifacts / MiB} MiB of artifacts. The others are kept in the task's events and are not shown.`,
    )
  })

  test('show the last of what was said', async () => {
    const [first = ''] = ids
    const bytes = viewBytes.messages / 4
    await house.db.pool.query(sql.unsafe`
      insert into task_message (task_id, message_id, position, role, said_at, from_status, parts)
      select ${first}, ${randomUUID()} || n, 100000 + n, 'agent', now(), false,
        '[{"kind":"text","value":"' || n || repeat('x', ${bytes}) || '","mediaType":"text/plain"}]'
      from generate_series(1, 6) n`)
    const { messages } = await viewOf(first)
    const said = messages.flatMap(({ parts }) => parts.map(({ value }) => String(value)))
    expect(said.map((text) => text.slice(0, 3))).toEqual(['The', '4xx', '5xx', '6xx'])
    expect(said[0]).toContain(`more than ${viewBytes.messages / MiB} MiB of messages`)
  })

  test('show so many of them as may be read at once, however short they are', async () => {
    const [, second = ''] = ids
    // What the database believes of the table is of before, as of any that has just grown.
    await house.db.pool.query(sql.unsafe`analyze task_message`)
    await say(second, viewMessages + 10)
    const { messages } = await viewOf(second)
    const said = messages.flatMap(({ parts }) => parts.map(({ value }) => String(value)))
    expect(said).toHaveLength(viewMessages + 1)
    expect(said[0]).toContain(`more than ${viewBytes.messages / MiB} MiB of messages, or than ${viewMessages} of them`)
    expect([said[1], said.at(-1)]).toEqual(['11', String(viewMessages + 10)])
  })
})
