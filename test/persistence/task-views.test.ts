/** Views of tasks as they are read: a page is one look at one moment. What a page may weigh is specs/heavy-views.spec.ts. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Connection, Pool } from '../../persistence/connection.ts'
import { eventPageBytes, readEvent, readEvents } from '../../persistence/stored-events.ts'
import { readViewsPage, type ViewsPage } from '../../persistence/task-views.ts'
import { artifactsCut, viewBytes } from '../../persistence/task-weights.ts'
import { at, idOf, ours, placeCommands } from '../support/command-rows.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { isLong } from '../support/pass.ts'
import { administratorOf } from '../support/viewers.ts'
import { readView } from '../support/views.ts'

const viewer = administratorOf(ours)
const count = 3

/** The pool's transactions alone, and nothing outside of them; `asked` is told of each statement once it is answered. */
function watching(pool: Pool, asked: (statement: string) => Promise<void>): Pool {
  const watched = (tx: Connection): Connection =>
    new Proxy(tx, {
      get(target, name, receiver) {
        const own: unknown = Reflect.get(target, name, receiver)
        if (typeof own !== 'function') return own
        return async (statement: { readonly sql: string }) => {
          const answer: unknown = await Reflect.apply(own, target, [statement])
          await asked(statement.sql)
          return answer
        }
      },
    })
  const alone = {
    transaction: (work: (tx: Connection) => Promise<unknown>) => pool.transaction((tx) => work(watched(tx))),
  }
  return alone as Pool
}

async function pageOf(...asked: Parameters<typeof readViewsPage>): Promise<ViewsPage> {
  const looked = await readViewsPage(...asked)
  if ('heavyBytes' in looked) throw new Error(`The page has ${looked.heavyBytes} bytes.`)
  return looked
}

describe.each(bothDatabases)('a page of views on %s', (database) => {
  let fresh: FreshDatabase
  beforeAll(async () => {
    fresh = await freshDatabase(database)
    await placeCommands(fresh.db, 0)
    await fresh.db.pool.query(sql.unsafe`
      insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
      select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${ours}, ${ours}, '', 'theirs-' || n, 'task',
        'TASK_STATE_WORKING', 1, 0, ${at(0)}, ${at(0)}
      from generate_series(1, ${count}) n`)
  })
  afterAll(() => fresh.close())

  test('weighs its tasks once, and is of one moment, whatever is committed while it is read', async () => {
    const { pool } = fresh.db
    const statements: string[] = []
    const page = await pageOf(
      watching(pool, async (statement) => {
        statements.push(statement)
        // The embedded database has one transaction at a time, and its snapshot begins with the first that is asked.
        if (database === 'pglite' || statements.length < 2) return
        await pool.query(sql.unsafe`update task set version = version + 1`)
        await pool.query(sql.unsafe`
          insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
          values (${idOf(100 + statements.length)}, ${ours}, ${ours}, '', ${`late-${statements.length}`}, 'task', 'TASK_STATE_WORKING', 1,
            0, ${at(0)}, ${at(0)})`)
      }),
      viewer,
      { after: null, limit: 10, most: Infinity },
    )
    expect(page.tasks.map(({ localId, version }) => [localId, version])).toEqual(
      Array.from({ length: count }, (_, n) => [idOf(n + 1), 1]),
    )
    expect(page.next).toBe(null)
    expect(statements.filter((statement) => statement.includes(' as messages'))).toHaveLength(1)
  })

  test('ends where it was asked to, and the next begins behind it', async () => {
    const { pool } = fresh.db
    const first = await pageOf(pool, viewer, { after: null, limit: 2, most: Infinity })
    expect([first.tasks.map(({ localId }) => localId), first.next]).toEqual([[idOf(1), idOf(2)], idOf(2)])
    const second = await pageOf(pool, viewer, { after: first.next, limit: 1, most: Infinity })
    expect(second.tasks.map(({ localId }) => localId)).toEqual([idOf(3)])
  })
  // 128 MiB are made and read. In the short pass: that parts are cut so, and artifacts without any behind them (specs/heavy-views.spec.ts).
  test.runIf(isLong)(
    'of artifacts that have names and no parts shows so many as fit, and says once that there are more',
    { timeout: 60_000 },
    async () => {
      const { pool } = fresh.db
      const each = viewBytes.artifacts / 8
      await pool.query(sql.unsafe`
      insert into task_artifact (task_id, artifact_id, position, description, extensions, complete, update_count, part_count, parts_digest)
      select ${idOf(1)}, 'made-' || n, n, repeat('x', ${each}), '[]', false, 1, 0, '' from generate_series(1, 10) n`)
      const made = (await readView(pool, viewer, idOf(1)))?.artifacts ?? []
      expect(made.map(({ artifactId }) => artifactId)).toEqual(Array.from({ length: 8 }, (_, n) => `made-${n + 1}`))
      expect(made.flatMap(({ parts }) => parts)).toEqual([{ id: 'made-8:0', ...artifactsCut }])
      await pool.query(sql.unsafe`delete from task_artifact`)
    },
  )

  test('of events is read by so many bytes, those that are larger by themselves, and none of what a person sent', async () => {
    const { pool } = fresh.db
    const third = Math.floor(eventPageBytes / 3)
    const sizes = [10, third, third, third, third, 2 * eventPageBytes, 10, 10, eventPageBytes, third, 10]
    const own = 6
    for (const [position, size] of sizes.entries())
      await pool.query(sql.unsafe`
        insert into task_event (task_id, position, source, event, received_at)
        values (${idOf(2)}, ${position}, ${position === own ? 'sent' : 'stream'}, repeat('x', ${size}), ${at(0)})`)
    const read: number[] = []
    const pages: number[][] = []
    for (let more = true; more;) {
      const page = await readEvents(pool, viewer, { localId: idOf(2), position: read.length, limit: 4 })
      for (const { position, event, source, bytes } of page) {
        const text = event ?? (source === 'sent' ? '' : await readEvent(pool, viewer, { localId: idOf(2), position }))
        expect([position, bytes]).toEqual([read.length, text?.length])
        read.push(bytes)
      }
      pages.push(page.map(({ event }) => event?.length ?? 0))
      more = page.at(-1)?.more ?? false
    }
    expect(read).toEqual(sizes.map((size, position) => (position === own ? 0 : size)))
    expect(pages).toEqual([[10, third, third], [third, third], [0], [0, 10], [eventPageBytes], [third, 10]])
    expect(await readEvent(pool, { ...viewer, organizationId: idOf(9) }, { localId: idOf(2), position: 0 })).toBe(null)
  })
})
