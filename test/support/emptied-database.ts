/**
 * A migrated database that a test is done with, made as if it were new: its rows, sequences and counters go, those of the
 * migrations come back. Whoever left anything else behind (a changed schema, a setting, what the planner knows) has a database
 * that nobody uses again. Owns the statements alone; which database waits for whom is databases.ts.
 */
import type { RawClient } from '../../persistence/drivers/backend.ts'

/** What a migrated database is, as its first user found it. */
export interface Untouched {
  readonly schema: string
  /** JSON of the rows that the migrations put into a table, by its name. */
  readonly rows: ReadonlyMap<string, string>
  readonly sequences: readonly Sequence[]
  /** What is only ever added to refuses to be emptied, by triggers. */
  readonly guards: { readonly off: string; readonly on: string }
}

interface Sequence {
  readonly name: string
  readonly value: string
  readonly isCalled: boolean
}

/** Every change of these is a row that another transaction wrote, or one more or fewer. */
const catalogs = [
  'attribute',
  'attrdef',
  'proc',
  'constraint',
  'index',
  'type',
  'namespace',
  'sequence',
  'rewrite',
  'policy',
  'event_trigger',
  'default_acl',
  'statistic_ext',
  'publication',
  'largeobject_metadata',
  'db_role_setting',
]
const writtenIn = (from: string): string => `(select count(*) || ' ' || max(xmin::text::bigint) from ${from})`
/** What the planner knows of the catalogs themselves, PostgreSQL's own vacuum finds out at its own times. */
const written = [...catalogs.map((name) => `pg_${name}`), 'pg_statistic where starelid >= 16384'].map(writtenIn)

/**
 * All that statements can change but rows, sequences and counters. By content where emptying writes it: a truncated table has other
 * files, and its triggers were off. A table without pages has no number of rows that anybody estimated.
 */
const schemaNow = `
  select concat_ws(' ',
    (select md5(string_agg(concat_ws(' ', oid, relname, relkind, relowner, relacl, reloptions, relpersistence, relchecks,
        relrowsecurity, relforcerowsecurity), ',' order by oid)) from pg_class where relkind <> 't' and oid >= 16384),
    (select count(*) from pg_class
      where relkind = 'r' and oid >= 16384 and pg_relation_size(oid) = 0 and reltuples <> -1),
    (select md5(string_agg(concat_ws(' ', oid, tgname, tgenabled, tgfoid, tgtype, tgqual, tgargs), ',' order by oid))
      from pg_trigger),
    ${written.join(', ')},
    (select concat_ws(' ', datconnlimit, dattablespace, datdba, datacl) from pg_database where datname = current_database())
  ) as schema`

/** Those that ever had a row: a table without pages is as it was made. */
const writtenTables = `
  select c.oid::regclass::text as name from pg_class c
  where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and pg_relation_size(c.oid) > 0 order by 1`

const sequenceNames = `
  select c.oid::regclass::text as name from pg_class c
  where c.relkind = 'S' and c.relnamespace = 'public'::regnamespace order by 1`

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

const namesOf = async (client: RawClient, statement: string): Promise<readonly string[]> =>
  (await client.query<{ name: string }>(statement)).rows.map(({ name }) => name)

const rowsOf = async (client: RawClient, table: string): Promise<string> => {
  const all = `select coalesce(json_agg(to_json(t) order by t::text), '[]')::text as rows from ${table} t`
  return (await only<{ rows: string }>(client, all)).rows
}

async function sequencesOf(client: RawClient): Promise<readonly Sequence[]> {
  const sequences: Sequence[] = []
  for (const name of await namesOf(client, sequenceNames)) {
    const now = `select '${name}' as name, last_value::text as value, is_called as "isCalled" from ${name}`
    sequences.push(await only<Sequence>(client, now))
  }
  return sequences
}

export async function remember(client: RawClient): Promise<Untouched> {
  const rows = new Map<string, string>()
  for (const table of await namesOf(client, writtenTables)) rows.set(table, await rowsOf(client, table))
  return {
    schema: await schemaOf(client),
    rows,
    sequences: await sequencesOf(client),
    guards: await only(client, truncateGuards),
  }
}

/** False: more than rows is different, and the database is for nobody. */
export async function empty(client: RawClient, untouched: Untouched): Promise<boolean> {
  if ((await schemaOf(client)) !== untouched.schema) return false
  const tables = await namesOf(client, writtenTables)
  const emptied = tables.filter((table) => !untouched.rows.has(table))
  const { off, on } = untouched.guards
  await client.query('begin')
  await client.query(off)
  if (emptied.length > 0) await client.query(`truncate ${emptied.join(', ')} cascade`)
  for (const [table, first] of untouched.rows) {
    if ((await rowsOf(client, table)) === first) continue
    await client.query(`truncate ${table} cascade`)
    const all = `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1)`
    await client.query(all, [first])
  }
  await client.query(on)
  for (const { name, value, isCalled } of untouched.sequences) {
    await client.query('select setval($1::regclass, $2, $3)', [name, value, isCalled])
  }
  await client.query('commit')
  // What was counted and not told yet would be told afterwards.
  await client.query('select pg_stat_force_next_flush()')
  await client.query('select pg_stat_reset()')
  return true
}
