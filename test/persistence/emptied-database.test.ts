/**
 * A test's database is often one that an earlier test left: it must be as good as new, and where it cannot be made so, it
 * must be another one (test/support/databases.ts).
 */
import { sql } from 'slonik'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sessionSettings } from '../../persistence/drivers/session-settings.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { systemOn } from '../support/system.ts'

const Named = z.object({ name: z.string() })
const Counted = z.object({ count: z.number() })

/** All rows of all tables, and where each sequence stands. */
async function contentOf({ db }: FreshDatabase): Promise<unknown> {
  const names = await db.pool.anyFirst(sql.type(Named)`
    select c.relname as name from pg_class c
    where c.relkind in ('r', 'S') and c.relnamespace = 'public'::regnamespace order by 1`)
  return db.raw(async (client) => {
    const content: unknown[] = []
    for (const name of names) content.push([name, (await client.query(`select * from ${name} order by 1`)).rows])
    return content
  })
}

const settingsOf = ({ db }: FreshDatabase): Promise<unknown> =>
  db.pool.any(sql.type(z.object({ name: z.string(), setting: z.string() }))`
    select name, setting from pg_settings
    where name = any(${sql.array(
      sessionSettings.map(({ name }) => name),
      'text',
    )}) order by name`)

/** The same for a database that is the same. */
const markOf = ({ db }: FreshDatabase): Promise<string> =>
  db.pool.oneFirst(sql.type(z.object({ mark: z.string() }))`
    select oid || ' ' || pg_postmaster_start_time() as mark from pg_database where datname = current_database()`)

async function used(fresh: FreshDatabase): Promise<void> {
  const running = await systemOn(fresh.db, { works: false })
  const { id } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
  await running.send(id, { text: 'hello' })
  await running.close()
}

describe.each(bothDatabases)('a database that a test left on %s', (kind) => {
  it('is as new for the next: rows, sequences, and what its session is told', async () => {
    const first = await freshDatabase(kind)
    const [content, settings, mark] = [await contentOf(first), await settingsOf(first), await markOf(first)]
    await used(first)
    expect(await contentOf(first)).not.toEqual(content)
    await first.db.raw((client) => client.query("set session timezone = 'Asia/Tokyo'; prepare s0 as select 1"))
    await first.close()
    const second = await freshDatabase(kind)
    expect(await markOf(second)).toBe(mark)
    expect(await contentOf(second)).toEqual(content)
    expect(await settingsOf(second)).toEqual(settings)
    // Its triggers are on again: what is only ever added to refuses to be emptied.
    await used(second)
    for (const table of ['fact', 'audit', 'actor_log'])
      await expect(second.db.raw((client) => client.query(`truncate ${table}`))).rejects.toThrow('append-only')
    await second.close()
  })

  const more = [
    ['a column', 'alter table command add column left_behind int'],
    ['a trigger that is off', 'alter table audit disable trigger audit_append_only'],
    ['a function', "create function left_behind() returns int language sql as 'select 1'"],
    ['a setting of a table', 'alter table command set (fillfactor = 50)'],
    ['what the planner knows', 'analyze schema_migration'],
    ['security of rows', 'alter table command enable row level security'],
  ] as const
  // One statement of the tests' own finds them all, on both, and each costs a start: half a second on the embedded database.
  it.each([['a table', 'create table left_behind (n int)'], ...(kind === 'postgresql' ? more : [])] as const)(
    'is nobody’s any more where more than rows is different: %s',
    async (_what, statement) => {
      const first = await freshDatabase(kind)
      const mark = await markOf(first)
      await first.db.raw((client) => client.query(statement))
      await first.close()
      const second = await freshDatabase(kind)
      const left = await second.db.pool.oneFirst(sql.type(Counted)`
      select ((select count(*) from pg_class where relname = 'left_behind')
        + (select count(*) from pg_attribute where attname = 'left_behind')
        + (select count(*) from pg_proc where proname = 'left_behind')
        + (select count(*) from pg_trigger where not tgisinternal and tgenabled = 'D')
        + (select count(*) from pg_class where relname = 'command' and 'fillfactor=50' = any(reloptions))
        + (select count(*) from pg_statistic where starelid = 'schema_migration'::regclass)
        + (select count(*) from pg_class where relname = 'command' and relrowsecurity))::int as count`)
      expect(left).toBe(0)
      expect(await markOf(second)).not.toBe(mark)
      await second.close()
    },
  )
})

it('a database that cannot even be asked any more is nobody’s, and nobody notices', async () => {
  const first = await freshDatabase('postgresql')
  await first.db.raw(async (client) => {
    await client.query(`create schema refusing`)
    await client.query(
      `create function refusing.pg_backend_pid() returns int language plpgsql as $$ begin raise 'no'; end $$`,
    )
    await client.query(
      `do $$ begin execute format('alter database %I set search_path = refusing, pg_catalog, public', current_database()); end $$`,
    )
  })
  await first.close()
  await first.close()
  const second = await freshDatabase('postgresql')
  await used(second)
  await second.close()
})
