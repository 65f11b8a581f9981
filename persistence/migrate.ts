/**
 * Schema migrations, on both databases. A migration is one transaction; an advisory lock keeps two processes from applying
 * the same one; a checksum notices that a shipped migration was edited. It prints nothing: bin/database.ts does.
 */
import { createHash } from 'node:crypto'
import type { RawClient } from './drivers/backend.ts'
import { beginReadCommitted } from './drivers/session-settings.ts'

export interface Migration {
  /** 1, 2, 3 …: the schema's version once this one is applied. */
  readonly version: number
  readonly name: string
  /** SQL, several statements. Shipped text is never edited: its checksum is stored. */
  readonly up: string
  readonly down: string
}

export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly checksum: string
  /** ISO 8601, UTC. */
  readonly appliedAt: string
}

export interface SchemaStatus {
  /** 0: nothing applied yet. */
  readonly current: number
  readonly latest: number
  readonly applied: readonly AppliedMigration[]
  readonly pending: readonly Migration[]
}

/** The database's schema and this release's don't fit together; the sentence is for the operator. */
export class SchemaMismatch extends Error {
  override readonly name = 'SchemaMismatch'
}

/** Any constant of ours that nothing else in the database uses: "Signalbox" has no meaning to PostgreSQL. */
const ADVISORY_LOCK = 0x51_6e_a1_b0

const journal = `create table if not exists schema_migration (
  version int primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default now()
)`

const checksumOf = (migration: Migration): string => createHash('sha256').update(migration.up).digest('hex')

/** Reads only. Throws SchemaMismatch when the database is newer than this release, or was built from other text. */
export async function schemaStatus(client: RawClient, all: readonly Migration[]): Promise<SchemaStatus> {
  const applied = await appliedMigrations(client)
  const latest = all.at(-1)?.version ?? 0
  const current = applied.at(-1)?.version ?? 0
  if (current > latest) {
    throw new SchemaMismatch(`This database is at schema v${current}, but this version only knows schema v${latest}.`)
  }
  for (const row of applied) {
    const known = all.find(({ version }) => version === row.version)
    if (!known || checksumOf(known) !== row.checksum) {
      throw new SchemaMismatch(
        `Migration ${row.version} (${row.name}) differs from the one this database was built with.`,
      )
    }
  }
  const done = new Set(applied.map(({ version }) => version))
  return { current, latest, applied, pending: all.filter(({ version }) => !done.has(version)) }
}

/** Throws SchemaMismatch unless the schema is exactly this release's: what a process asks before it serves. */
export async function requireSchema(client: RawClient, all: readonly Migration[]): Promise<void> {
  const { current, latest, pending } = await schemaStatus(client, all)
  if (pending.length > 0) {
    throw new SchemaMismatch(
      `This database is at schema v${current}, but this version needs schema v${latest}. Run db:migrate.`,
    )
  }
}

/** Applies what is pending, up to `to`. Safe to call from several processes at once. Returns what it applied. */
export async function migrateUp(
  client: RawClient,
  all: readonly Migration[],
  to = Infinity,
): Promise<readonly Migration[]> {
  const done: Migration[] = []
  // Each round applies one or is the last.
  for (let round = 0; round <= all.length; round++) {
    const applied = await locked(client, async () => {
      await client.query(journal)
      const [next] = (await schemaStatus(client, all)).pending
      if (!next || next.version > to) return null
      await client.query(next.up)
      await client.query('insert into schema_migration (version, name, checksum) values ($1, $2, $3)', [
        next.version,
        next.name,
        checksumOf(next),
      ])
      return next
    })
    if (!applied) break
    done.push(applied)
  }
  return done
}

/** Takes back the last `count` migrations, newest first. Returns them. */
export async function migrateDown(
  client: RawClient,
  all: readonly Migration[],
  count = 1,
): Promise<readonly Migration[]> {
  const done: Migration[] = []
  for (let round = 0; round < Math.min(count, all.length); round++) {
    const taken = await locked(client, async () => {
      const { current } = await schemaStatus(client, all)
      const last = all.find(({ version }) => version === current)
      if (!last) return null
      await client.query(last.down)
      await client.query('delete from schema_migration where version = $1', [last.version])
      return last
    })
    if (!taken) break
    done.push(taken)
  }
  return done
}

async function appliedMigrations(client: RawClient): Promise<AppliedMigration[]> {
  const { rows } = await client.query<{ known: boolean }>("select to_regclass('schema_migration') is not null as known")
  if (!rows[0]?.known) return []
  const applied = await client.query<AppliedMigration>(
    'select version, name, checksum, applied_at as "appliedAt" from schema_migration order by version',
  )
  return applied.rows
}

/**
 * A transaction that nobody else's migration overlaps. The lock is the transaction's, not the session's: behind a pooler in
 * transaction mode a session's lock would stay on whichever connection took it, and the next migrator would wait for ever.
 */
async function locked<T>(client: RawClient, work: () => Promise<T>): Promise<T> {
  // Who waited for the lock is to read what its holder has applied, whatever the database's own isolation is.
  await client.query(beginReadCommitted)
  try {
    await client.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const result = await work()
    await client.query('commit')
    return result
  } catch (error) {
    // Over a connection that is gone nothing can be said, and nothing need be: the first error is the one to be told.
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}
