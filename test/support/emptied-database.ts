/**
 * A migrated database that a test is done with, made as if it were new: its rows go, those of the migrations come back. Only
 * rows: whoever left anything else behind (a changed schema, a setting, what the planner knows) has a database that nobody
 * uses again. Owns the statements alone; which database waits for whom is databases.ts.
 */
import type { RawClient } from '../../persistence/drivers/backend.ts'

/** What a migrated database is, as its first user found it. */
export interface Untouched {
  readonly schema: string
  /** JSON of the rows that the migrations put into a table, by its name. */
  readonly rows: ReadonlyMap<string, string>
  readonly sequences: string
  /** What is only ever added to refuses to be emptied, by triggers. */
  readonly guards: { readonly off: string; readonly on: string }
}

/**
 * All that statements can change but rows: by the transaction that wrote it last, or by its content where emptying writes it. What the
 * planner knows counts, too: it is of rows that are gone.
 */
const schemaNow = `
  select concat_ws(' ',
    (select md5(string_agg(concat_ws(' ', oid, relname, relkind, reloptions, relpersistence, relchecks), ',' order by oid))
      from pg_class where relkind <> 't' and oid >= 16384),
    (select md5(string_agg(concat_ws(' ', oid, tgname, tgenabled, tgfoid), ',' order by oid)) from pg_trigger),
    (select count(*) || ' ' || max(xmin::text::bigint) from pg_attribute where attrelid >= 16384),
    (select count(*) || ' ' || max(xmin::text::bigint) from pg_proc),
    (select count(*) || ' ' || max(xmin::text::bigint) from pg_constraint),
    (select count(*) || ' ' || max(xmin::text::bigint) from pg_index),
    (select count(*) || ' ' || max(xmin::text::bigint) from pg_type),
    (select count(*) || ' ' || max(xmin::text::bigint) from pg_namespace),
    (select count(*) from pg_event_trigger),
    (select count(*) from pg_statistic where starelid >= 16384),
    (select count(*) from pg_db_role_setting where setdatabase in (0, d.oid)),
    d.datconnlimit, d.dattablespace) as schema
  from pg_database d where d.datname = current_database()`

/** Those that ever had a row: a table without pages is as it was made. */
const writtenTables = `
  select c.oid::regclass::text as name from pg_class c
  where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and pg_relation_size(c.oid) > 0 order by 1`

const sequencesNow = `
  select coalesce(json_object_agg(sequencename, last_value order by sequencename), '{}')::text as sequences
  from pg_sequences where schemaname = 'public'`

const truncateGuards = `
  select coalesce(string_agg(format('alter table %s disable trigger %I', tgrelid::regclass, tgname), ';'), '') as off,
    coalesce(string_agg(format('alter table %s enable %s trigger %I', tgrelid::regclass,
      case tgenabled when 'A' then 'always' end, tgname), ';'), '') as on
  from pg_trigger where not tgisinternal and tgtype & 32 > 0 and tgenabled in ('A', 'O')`

/** The one row of a statement that has one. */
async function only<Row extends object>(client: RawClient, statement: string): Promise<Row> {
  const { rows } = await client.query<Row>(statement)
  const [row] = rows
  if (!row || rows.length > 1) throw new Error(`${rows.length} rows of ${statement}`)
  return row
}

const schemaOf = async (client: RawClient): Promise<string> =>
  (await only<{ schema: string }>(client, schemaNow)).schema

const writtenOf = async (client: RawClient): Promise<readonly string[]> =>
  (await client.query<{ name: string }>(writtenTables)).rows.map(({ name }) => name)

const rowsOf = async (client: RawClient, table: string): Promise<string> => {
  const all = `select coalesce(json_agg(to_json(t) order by t::text), '[]')::text as rows from ${table} t`
  return (await only<{ rows: string }>(client, all)).rows
}

export async function remember(client: RawClient): Promise<Untouched> {
  const rows = new Map<string, string>()
  for (const table of await writtenOf(client)) rows.set(table, await rowsOf(client, table))
  const { sequences } = await only<{ sequences: string }>(client, sequencesNow)
  return { schema: await schemaOf(client), rows, sequences, guards: await only(client, truncateGuards) }
}

/** False: more than rows is different, and the database is for nobody. */
export async function empty(client: RawClient, untouched: Untouched): Promise<boolean> {
  await client.query('discard all')
  if ((await schemaOf(client)) !== untouched.schema) return false
  const changed: string[] = []
  for (const table of await writtenOf(client)) {
    const first = untouched.rows.get(table)
    if (first === undefined || first !== (await rowsOf(client, table))) changed.push(table)
  }
  if (changed.length > 0) {
    const { off, on } = untouched.guards
    await client.query(`begin; ${off}; truncate ${changed.join(', ')} cascade; ${on}; commit`)
  }
  for (const table of changed) {
    const first = untouched.rows.get(table)
    if (first === undefined) continue
    await client.query(
      `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1)`,
      [first],
    )
  }
  await client.query(
    `select setval(format('%I', s.sequencename)::regclass, coalesce(v.value::bigint, s.start_value), v.value is not null)
     from pg_sequences s join json_each_text($1) v on v.key = s.sequencename
     where s.schemaname = 'public' and s.last_value is distinct from v.value::bigint`,
    [untouched.sequences],
  )
  await client.query('select pg_stat_reset()')
  return true
}
