/**
 * What a server does by itself and an embedded database does not: cut the log, vacuum what is dead, refresh what the
 * planner knows, freeze before transaction numbers run out. PGlite says `autovacuum = on` and has no process to do it.
 * Called between turns (persistence/drivers/pglite.ts); every call is bounded, for the only session waits for it.
 */
import type pg from 'pg'

/** A CHECKPOINT (85 ms) every 20 MB kept the log at 65 MB where none left 609; a kill with 400 MB cost 6 s at the next start. */
const CHECKPOINT_BYTES = 20 * 1024 * 1024
const CHECKPOINT_MS = 5 * 60_000
/** Pages of 8 KB that no VACUUM has seen (16 MB; 20 ms where nothing is dead); 400 MB at once held the only session for two seconds. */
const GROWN_PAGES = 2_048
/**
 * ANALYZE reads 300 pages for each unit of its target while everybody waits: 0.7 s of 234 MB at the usual 100, 24 ms at 10. Tables of
 * more than 32 MB hold events, parts and logs, and are asked for by their keys: ten common values are as good as a hundred.
 */
const LARGE_PAGES = 4_096
const LARGE_TARGET = 10
/** One table takes 5 to 150 ms; after this long the rest waits for the next call. */
const VACUUM_BUDGET_MS = 250
const TABLES_LIMIT = 20
/** Autovacuum's own limit is 200 million: by then a table is frozen whether or not it changed. */
const FREEZE_AGE = 200_000_000

/** The database as its keeper sees it. */
export interface Kept {
  readonly client: Pick<pg.ClientBase, 'query'>
  /** Bytes of statements since the last checkpoint: a lower bound of what was written to the log. */
  readonly server: { unflushedBytes: number }
}

/**
 * Autovacuum's own rule, table by table, with the settings that each table has for it: dead rows, or rows that came since
 * (so that their pages are known to be visible to all), or too many changes for the planner's numbers to be right.
 */
const dueTables = `
  select format('%I.%I', n.nspname, c.relname) as name,
    s.n_dead_tup > coalesce(o.threshold, 50) + coalesce(o.scale, 0.2) * greatest(c.reltuples, 0)
      or s.n_ins_since_vacuum > 1000 + 0.2 * greatest(c.reltuples, 0) as vacuum,
    s.n_mod_since_analyze > 500 + 0.1 * greatest(c.reltuples, 0) as analyze,
    age(c.relfrozenxid) > $1 as freeze, pg_relation_size(c.oid) / 8192 > ${LARGE_PAGES} as large
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_stat_all_tables s on s.relid = c.oid
  left join lateral (
    select max(option_value::float) filter (where option_name = 'autovacuum_vacuum_threshold') as threshold,
      max(option_value::float) filter (where option_name = 'autovacuum_vacuum_scale_factor') as scale
    from pg_options_to_table(c.reloptions) where option_name like 'autovacuum_vacuum_%'
  ) o on true
  where c.relkind in ('r', 'm')
  order by age(c.relfrozenxid) > $1 desc, s.n_dead_tup desc nulls last`

/**
 * The table that has grown most since its last VACUUM, large texts kept apart included. What it changed in place is not seen
 * here, and need not be: that is counted as dead rows.
 */
const grownTable = `
  select g.name from (
    select format('%I.%I', n.nspname, c.relname) as name,
      pg_relation_size(c.oid) / 8192 - c.relallvisible
        + coalesce(pg_relation_size(t.oid) / 8192 - t.relallvisible, 0) as pages
    from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_class t on t.oid = c.reltoastrelid
    where c.relkind = 'r'
  ) g where g.pages > $1 order by g.pages desc limit 1`

interface DueTable {
  readonly name: string
  readonly vacuum: boolean | null
  readonly analyze: boolean | null
  readonly freeze: boolean
  readonly large: boolean
}

export class PgliteHousekeeping {
  readonly #kept: Kept
  readonly #freezeAge: number
  #checkpointAt = performance.now()
  #checkpointLsn = '0/0'
  /** Of a burst, which tells nobody: the next `run` does. */
  #failure: Error | null = null

  constructor(kept: Kept, freezeAge = FREEZE_AGE) {
    this.#kept = kept
    this.#freezeAge = freezeAge
  }

  /** One look: a checkpoint if the log asks for one, and vacuum for what is due, as far as the budget goes. Rejects with what failed since the last one, too. */
  async run(): Promise<void> {
    await this.#vacuum()
    const { bytes } = await this.#log()
    const late = performance.now() - this.#checkpointAt > CHECKPOINT_MS
    if (bytes > CHECKPOINT_BYTES || (bytes > 0 && late)) await this.checkpoint()
    const failure = this.#failure
    this.#failure = null
    if (failure !== null) throw failure
  }

  async checkpoint(): Promise<void> {
    await this.#kept.client.query('checkpoint')
    this.#kept.server.unflushedBytes = 0
    this.#checkpointAt = performance.now()
    this.#checkpointLsn = (await this.#log()).lsn
  }

  /**
   * For a burst between two calls of `run`, in bites: a table that grew is vacuumed while its new pages stand in the log
   * anyway, before the CHECKPOINT after which a change of each would be written there whole. Never rejects: a failure is not the
   * failure of the statement that happened to cross the limit, which is committed. The next burst tries again, and `run` reports it.
   */
  async afterBurst(): Promise<void> {
    if (this.#kept.server.unflushedBytes <= CHECKPOINT_BYTES) return
    this.#kept.server.unflushedBytes = 0
    for (const work of [() => this.#vacuumGrown(), () => this.checkpoint()])
      await work().catch((error: unknown) => {
        this.#failure = new Error('The embedded database was not kept small in a burst.', { cause: error })
      })
  }

  async #vacuumGrown(): Promise<void> {
    const { rows } = await this.#kept.client.query<{ name: string }>(grownTable, [GROWN_PAGES])
    for (const { name } of rows) await this.#kept.client.query(`vacuum ${name}`)
  }

  async #vacuum(): Promise<void> {
    const { client } = this.#kept
    // Counts are kept back for up to a second after a transaction, and there is no other process to wait for.
    await client.query('select pg_stat_force_next_flush()')
    const { rows } = await client.query<DueTable>(dueTables, [this.#freezeAge])
    const due = rows.filter((table) => table.vacuum || table.analyze || table.freeze).slice(0, TABLES_LIMIT)
    const startedAt = performance.now()
    for (const { name, vacuum, freeze, large } of due) {
      if (performance.now() - startedAt > VACUUM_BUDGET_MS) return
      await client.query(large ? `set default_statistics_target = ${LARGE_TARGET}` : 'reset default_statistics_target')
      await client.query(
        freeze ? `vacuum (freeze, analyze) ${name}` : vacuum ? `vacuum (analyze) ${name}` : `analyze ${name}`,
      )
    }
    if (due.some(({ freeze }) => freeze)) await this.#freezeTemplates()
  }

  /**
   * Transaction numbers may not run further than two billion ahead of any database's oldest, and the two templates have
   * oldest numbers, too. initdb froze them and nobody has connected to them since, so all that is in them is frozen.
   */
  async #freezeTemplates(): Promise<void> {
    await this.#kept.client.query(`
      update pg_database t set datfrozenxid = mine.datfrozenxid
      from pg_database mine where mine.datname = current_database() and t.datname in ('template0', 'template1')
        and age(t.datfrozenxid) > age(mine.datfrozenxid)`)
  }

  async #log(): Promise<{ lsn: string; bytes: number }> {
    const { rows } = await this.#kept.client.query<{ lsn: string; bytes: number }>(
      'select pg_current_wal_lsn()::text as lsn, pg_wal_lsn_diff(pg_current_wal_lsn(), $1::pg_lsn)::int8 as bytes',
      [this.#checkpointLsn],
    )
    return rows[0] ?? { lsn: this.#checkpointLsn, bytes: 0 }
  }
}
