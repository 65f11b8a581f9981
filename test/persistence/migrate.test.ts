/** The migrator on both databases: up, down, what it refuses, and that this release's own migrations can be undone. */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { RawClient } from '../../persistence/drivers/backend.ts'
import type { Database } from '../../persistence/database.ts'
import {
  migrateDown,
  migrateUp,
  requireSchema,
  schemaStatus,
  SchemaMismatch,
  type Migration,
} from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'

const one: Migration = {
  version: 1,
  name: 'one',
  up: 'create table one (id int); insert into one values (1);',
  down: 'drop table one',
}
const two: Migration = {
  version: 2,
  name: 'two',
  up: `create function answer() returns int language plpgsql as $$ begin return 42; end $$;
       alter table one add column text text;`,
  down: 'alter table one drop column text; drop function answer()',
}
const broken: Migration = { version: 3, name: 'broken', up: 'create table three (id int); select 1 / 0;', down: '' }
const names = (list: readonly Migration[]): string[] => list.map(({ name }) => name)

/** Everything of ours that the catalogue knows, as text: what must be the same after down and up. */
async function catalogue(client: RawClient): Promise<unknown[]> {
  const { rows } = await client.query(`
    select 'column' as kind, table_name || '.' || column_name as name,
           concat_ws(' ', data_type, is_nullable, column_default, generation_expression) as text
      from information_schema.columns where table_schema = 'public' and table_name <> 'schema_migration'
    union all select 'index', indexname, indexdef from pg_indexes where schemaname = 'public' and tablename <> 'schema_migration'
    union all select 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
      from pg_constraint where connamespace = 'public'::regnamespace and conrelid::regclass::text <> 'schema_migration'
    union all select 'trigger', tgrelid::regclass || '.' || tgname, concat_ws(' ', tgenabled, pg_get_triggerdef(oid)) from pg_trigger where not tgisinternal
    union all select 'function', proname, pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
    union all select 'sequence', sequencename, data_type::text from pg_sequences where schemaname = 'public'
    order by 1, 2, 3`)
  return rows
}

/** Two tasks of one member, as a release before 0006 left them. */
const someId = '00000000-0000-7000-8000-0000000000aa'

const ownedTasks = `
  insert into organization (id, slug, name) values ('00000000-0000-7000-8000-000000000001', 'o', 'o');
  insert into agent (id, organization_id, card_url, source, name)
    values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'https://a', 'managed', 'a');
  insert into task (id, organization_id, agent_id, tenant, kind, state, version, events, created_at, updated_at)
    select gen_random_uuid(), '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002', '', 'task',
      state, 1, 1, now() - interval '1 day', now() from unnest(array['TASK_STATE_COMPLETED', 'TASK_STATE_WORKING']) as state;
  insert into ownership (task_id, due_at, escalation_level, updated_at) select id, now(), 0, now() from task`

describe.each(bothDatabases)('%s', (kind) => {
  let fresh: FreshDatabase
  let db: Database
  beforeAll(async () => {
    fresh = await freshDatabase(kind)
    db = fresh.db
  })
  afterAll(() => fresh.close())

  it('undoes and redoes this release’s schema without a trace', async () => {
    await db.raw(async (client) => {
      const before = await catalogue(client)
      expect(before.length).toBeGreaterThan(10)
      await migrateDown(client, migrations, migrations.length)
      expect(await catalogue(client)).toEqual([])
      await migrateUp(client, migrations)
      expect(await catalogue(client)).toEqual(before)
    })
  })

  it('undoes each migration to what the one before it left', async () => {
    await db.raw(async (client) => {
      await migrateDown(client, migrations, migrations.length)
      for (const count of migrations.map((_, i) => i + 1)) {
        const before = await catalogue(client)
        await migrateUp(client, migrations.slice(0, count))
        await migrateDown(client, migrations.slice(0, count), 1)
        expect(await catalogue(client), migrations[count - 1]?.name).toEqual(before)
        await migrateUp(client, migrations.slice(0, count))
      }
    })
  })

  it('carries owned tasks over to the hot path and back: whose they are, since when, and whether they can be overdue', async () => {
    await db.raw(async (client) => {
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 6).length)
      await client.query(ownedTasks)
      await migrateUp(client, migrations)
      const { rows } = await client.query(`
        select o.organization_id = t.organization_id and o.task_created_at = t.created_at as same, o.open, t.state
        from ownership o join task t on t.id = o.task_id order by t.state`)
      expect(rows).toEqual([
        { same: true, open: false, state: 'TASK_STATE_COMPLETED' },
        { same: true, open: true, state: 'TASK_STATE_WORKING' },
      ])
      const before = await catalogue(client)
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 6).length)
      await migrateUp(client, migrations)
      expect(await catalogue(client)).toEqual(before)
      await client.query('truncate organization, task cascade')
    })
  })

  it('carries commands that need a person over, and no others', async () => {
    await db.raw(async (client) => {
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 11).length)
      await client.query(`
        insert into command (id, organization_id, agent_id, person_id, idempotency_key, content_digest, action, tenant, message_id,
            body, status, created_at, updated_at)
          select gen_random_uuid(), o, o, o, status, 'd', 'send', '', status, '{}', status, now() - interval '1 day', now()
          from unnest(array['pending', 'dispatching', 'succeeded', 'failed', 'uncertain']) as status,
            (values ('00000000-0000-7000-8000-000000000001'::uuid)) as ids(o)`)
      await migrateUp(client, migrations)
      const { rows } = await client.query(
        'select status, unsettled_at = updated_at as same from command where unsettled_at is not null order by status',
      )
      expect(rows).toEqual([
        { status: 'failed', same: true },
        { status: 'uncertain', same: true },
      ])
      await client.query('delete from command')
    })
  })

  it('takes settled commands back to where they need a person, and knows no settlement then', async () => {
    await db.raw(async (client) => {
      await migrateUp(client, migrations)
      const before = await catalogue(client)
      await client.query(`
        insert into organization (id, slug, name) values ('${someId}', 'some', 'Some');
        insert into person (id, display_name) values ('${someId}', 'Ada');
        insert into agent (id, organization_id, card_url, source, name) values ('${someId}', '${someId}', 'http://agent.example/', 'managed', 'a');
        insert into command (id, organization_id, agent_id, person_id, idempotency_key, content_digest, action, tenant, message_id,
            body, status, created_at, updated_at, unsettled_at)
          values ('${someId}', '${someId}', '${someId}', '${someId}', 'k', 'd', 'send', '', 'm', '{}', 'uncertain', now(), now(), null);
        insert into actor_archive (kind, id, organization_id, machine_version, revision, snapshot, created_at, updated_at, settled_at)
          values ('command', '${someId}', '${someId}', '1', 1, '{"value": "uncertain"}', now(), now(), now());
        insert into command_settlement (command_id, organization_id, person_id, decision, at)
          values ('${someId}', '${someId}', '${someId}', 'arrived', now())`)
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 14).length)
      const { rows } = await client.query('select unsettled_at = updated_at as same from command')
      expect(rows).toEqual([{ same: true }])
      await migrateUp(client, migrations)
      expect(await catalogue(client)).toEqual(before)
      const { rows: archived } = await client.query('select settled_at from actor_archive')
      expect(archived).toEqual([{ settled_at: null }])
      await client.query(
        'delete from command; delete from actor_archive; delete from agent; delete from person; delete from organization',
      )
    })
  })

  it('keeps agents’ words by lz4 where the server has it, else as they are, and takes that back', async () => {
    await db.raw(async (client) => {
      const kept = async () => {
        const { rows } = await client.query<{ how: string }>(`
          select concat(attstorage::text, attcompression::text) as how from pg_attribute
          where (attrelid, attname) in (values ('task_event'::regclass, 'event'), ('task_artifact_part'::regclass, 'part'),
            ('task_message'::regclass, 'parts'), ('command'::regclass, 'reply'))`)
        return rows.map(({ how }) => how)
      }
      const { rows } = await client.query<{ quick: boolean }>(`
        select 'lz4' = any(enumvals) as quick from pg_settings where name = 'default_toast_compression'`)
      await migrateUp(client, migrations)
      const how = rows[0]?.quick === true ? 'xl' : 'e'
      expect(await kept()).toEqual([how, how, how, how])
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 16).length)
      expect(await kept()).toEqual(['x', 'x', 'x', 'x'])
      await migrateUp(client, migrations)
    })
  })

  it('puts values that stand in events back into their parts when it is taken back', async () => {
    await db.raw(async (client) => {
      await migrateUp(client, migrations)
      const before = await catalogue(client)
      const event = '{"artifactUpdate":{"artifact":{"parts":[{"text":"😀 \\u0000"}]}}}'
      const value = '"😀 \\u0000"'
      const from = Buffer.byteLength(event.slice(0, event.indexOf(value)))
      await client.query(`
        insert into task_event (task_id, position, source, event, received_at)
          values ('${someId}', 3, 'stream', '${event}', now());
        insert into task_artifact_part (task_id, artifact_id, position, part, value_event, value_from, value_bytes) values
          ('${someId}', 'a', 0, ' {"kind":"text","value":"","mediaType":"text/plain"}', 3, ${from}, ${Buffer.byteLength(value)}),
          ('${someId}', 'a', 2, '{"kind":"text","value":"","mediaType":"text/plain"}', 3, ${from}, ${Buffer.byteLength(value)}),
          ('${someId}', 'a', 1, '{"kind":"text","value":"","mediaType":"text/plain"}', null, null, null)`)
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 17).length)
      const { rows } = await client.query<{ part: string }>('select part from task_artifact_part order by position')
      expect(rows.map(({ part }) => (JSON.parse(part) as { value: unknown }).value)).toEqual(['😀 \0', '', ''])
      await migrateUp(client, migrations)
      expect(await catalogue(client)).toEqual(before)
      await client.query(`
        alter table task_event disable trigger user; truncate task_event, task_artifact_part;
        alter table task_event enable trigger user`)
    })
  })

  it('knows by its version which task was lost and not heard of since', async () => {
    await db.raw(async (client) => {
      await migrateUp(client, migrations)
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 19).length)
      const tasks = [`${someId.slice(0, -1)}b`, `${someId.slice(0, -1)}c`]
      await client.query(`
        insert into organization (id, slug, name) values ('${someId}', 'some', 'Some');
        insert into agent (id, organization_id, card_url, source, name) values ('${someId}', '${someId}', 'http://agent.example/', 'managed', 'a');
        insert into task (id, organization_id, agent_id, tenant, kind, state, version, events, created_at, updated_at)
          select id::uuid, '${someId}', '${someId}', '', 'task', 'TASK_STATE_WORKING', 7, 7, now(), now()
          from unnest(array['${tasks.join("','")}']) as id;
        insert into lost_task (task_id, organization_id, since, looks, looked_at) values
          ('${tasks[0]}', '${someId}', now(), 5, now() + interval '1 second'),
          ('${tasks[1]}', '${someId}', now(), 5, now() - interval '1 second')`)
      await migrateUp(client, migrations)
      const { rows } = await client.query('select task_version as version from lost_task order by task_id')
      expect(rows).toEqual([{ version: 7 }, { version: null }])
      await client.query('delete from lost_task; delete from task; delete from agent; delete from organization')
    })
  })

  it('keeps in a task’s row that it was given up before, where nothing was heard since', async () => {
    await db.raw(async (client) => {
      await migrateUp(client, migrations)
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 21).length)
      await client.query(`
        insert into organization (id, slug, name) values ('${someId}', 'some', 'Some');
        insert into agent (id, organization_id, card_url, source, name) values ('${someId}', '${someId}', 'http://agent.example/', 'managed', 'a');
        insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
          select gen_random_uuid(), '${someId}', '${someId}', '', name, 'task', 'TASK_STATE_WORKING', 7, 7, now(), now()
          from unnest(array['given up', 'heard of', 'looked for']) name;
        insert into lost_task (task_id, organization_id, since, looks, looked_at, look_at, task_version)
          select id, '${someId}', now(), 5, now(), case when remote_id = 'looked for' then now() end, case when remote_id = 'heard of' then 6 else 7 end from task`)
      await migrateUp(client, migrations)
      const given = await client.query('select remote_id as name from task where given_up_version is not null')
      expect(given.rows).toEqual([{ name: 'given up' }])
      await client.query('delete from lost_task; delete from task; delete from agent; delete from organization')
    })
  })

  it('lets the release before tell of its processes: first heard of at their insert, or before anybody', async () => {
    await db.raw(async (client) => {
      const insert = (owner: string) =>
        client.query(`insert into process (owner, seen_at, told) values ('${owner}', now(), '{}')`)
      await migrateUp(client, migrations)
      await migrateDown(client, migrations, migrations.filter(({ version }) => version >= 14).length)
      await insert('there before')
      await migrateUp(client, migrations)
      await insert('new')
      const { rows } = await client.query(
        `select owner, first_seen_at = seen_at as same, first_seen_at = 'epoch' as earliest from process order by owner`,
      )
      expect(rows).toEqual([
        { owner: 'new', same: true, earliest: false },
        { owner: 'there before', same: false, earliest: true },
      ])
      await client.query('delete from process')
    })
  })

  it('carries push actors over and back: one that read the end takes the registration back', async () => {
    await db.raw(async (client) => {
      await migrateUp(client, migrations)
      await migrateDown(client, migrations, 12)
      const row = (n: number, value: string, settled: string) =>
        `('push', '00000000-0000-7000-8000-00000000000${n}', '00000000-0000-7000-8000-000000000009', '1', 3,
          '{"value": ${value}, "context": {"failures": 2, "reason": null, "settled": ${settled}}, "status": "active"}',
          'read', now(), '{"t": {}}', now() + interval '1 hour', now(), now())`
      await client.query(`
        insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
          created_at, updated_at)
        values ${row(1, '"registering"', 'null')}, ${row(2, '"registering"', '"pushed"')}, ${row(3, '{"reading": "pausing"}', 'null')}`)
      await migrateUp(client, migrations)
      const { rows } = await client.query(`
        select snapshot->'value' as value, snapshot->'context'->'settled' as settled, work, wake_at <= now() as due
        from actor where kind = 'push' order by id`)
      expect(rows).toEqual([
        { value: 'registering', settled: false, work: 'read', due: false },
        { value: 'registering', settled: true, work: 'read', due: false },
        { value: { removing: 'trying' }, settled: false, work: 'remove', due: true },
      ])
      await migrateDown(client, migrations, 12)
      const { rows: back } = await client.query(`
        select snapshot->'context'->'settled' as settled from actor where kind = 'push' order by id`)
      expect(back.map(({ settled }) => settled)).toEqual([null, 'told', null])
      await migrateUp(client, migrations)
      await client.query('delete from actor')
    })
  })

  describe('with migrations of its own', () => {
    beforeEach(() =>
      db.raw((client) => client.query('drop schema public cascade; create schema public; set search_path to public')),
    )

    it('applies what is pending, once, and up to a version', async () => {
      await db.raw(async (client) => {
        expect(await schemaStatus(client, [one, two])).toEqual({
          current: 0,
          latest: 2,
          applied: [],
          pending: [one, two],
        })
        expect(names(await migrateUp(client, [one, two], 1))).toEqual(['one'])
        expect(names(await migrateUp(client, [one, two]))).toEqual(['two'])
        expect(names(await migrateUp(client, [one, two]))).toEqual([])
        const { applied, current, pending } = await schemaStatus(client, [one, two])
        expect(applied.map(({ version, name }) => [version, name])).toEqual([
          [1, 'one'],
          [2, 'two'],
        ])
        expect(applied[0]?.appliedAt).toMatch(/^\d{4}-.*Z$/)
        expect([current, pending]).toEqual([2, []])
        expect((await client.query('select answer() as n')).rows).toEqual([{ n: 42 }])
      })
    })

    it('takes back the newest first', async () => {
      await db.raw(async (client) => {
        await migrateUp(client, [one, two])
        expect(names(await migrateDown(client, [one, two]))).toEqual(['two'])
        expect(names(await migrateDown(client, [one, two], 5))).toEqual(['one'])
        expect(names(await migrateDown(client, [one, two]))).toEqual([])
      })
    })

    it('leaves nothing of one that fails, keeps those before, and can go on afterwards', async () => {
      await db.raw(async (client) => {
        await expect(migrateUp(client, [one, two, broken])).rejects.toThrow('division by zero')
        const { current } = await schemaStatus(client, [one, two, broken])
        expect(current).toBe(2)
        expect((await client.query("select to_regclass('three') as found")).rows).toEqual([{ found: null }])
        expect(names(await migrateUp(client, [one, two, { ...broken, up: 'create table three ()' }]))).toEqual([
          'broken',
        ])
      })
    })

    it('refuses a newer schema, with the sentence', async () => {
      await db.raw(async (client) => {
        await migrateUp(client, [one, two])
        const sentence = 'This database is at schema v2, but this version only knows schema v1.'
        await expect(schemaStatus(client, [one])).rejects.toThrow(new SchemaMismatch(sentence))
        await expect(migrateUp(client, [one])).rejects.toThrow(new SchemaMismatch(sentence))
        await expect(migrateDown(client, [one])).rejects.toThrow(new SchemaMismatch(sentence))
      })
    })

    it('refuses a schema that was built from other text', async () => {
      await db.raw(async (client) => {
        await migrateUp(client, [one])
        const edited = { ...one, up: `${one.up} -- edited` }
        await expect(requireSchema(client, [edited])).rejects.toThrow(SchemaMismatch)
      })
    })

    it('asks for exactly its schema', async () => {
      await db.raw(async (client) => {
        await expect(requireSchema(client, [one])).rejects.toThrow(SchemaMismatch)
        await migrateUp(client, [one])
        await requireSchema(client, [one])
        await expect(requireSchema(client, [one, two])).rejects.toThrow(SchemaMismatch)
      })
    })

    it('is applied once by four at the same time', async () => {
      const results = await Promise.all([1, 2, 3, 4].map(() => db.raw((client) => migrateUp(client, [one, two]))))
      expect(results.flat().length).toBe(2)
    })
  })
})

it('is at most one server’s lock away: a dead migrator’s lock dies with its connection', async () => {
  const fresh = await freshDatabase('postgresql')
  if (fresh.profile.kind !== 'postgresql') throw new Error('wrong profile')
  const dying = new pg.Client({ connectionString: fresh.profile.url })
  dying.on('error', () => {})
  await dying.connect()
  const stuck = migrateUp(dying, [...migrations, { version: 900, name: 'slow', up: 'select pg_sleep(60)', down: '' }])
  const waiting = fresh.db.raw((client) => migrateUp(client, migrations))
  const ended = stuck.catch((error: unknown) => error)
  await fresh.db.raw(async (client) => {
    for (let tries = 0; tries < 500; tries += 1) {
      const { rowCount } = await client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid() and state = 'active' and datname = current_database()",
      )
      if (rowCount) return
    }
  })
  expect(await ended).toBeInstanceOf(Error)
  expect(await waiting).toEqual([])
  await fresh.close()
})
