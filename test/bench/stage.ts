/**
 * Where a bench plays: a real PostgreSQL with durability ON and its data on the temporary directory's disk, empty migrated
 * databases on it, and folders for the embedded one. Everything is removed at the end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openDatabase, type Profile } from '../../persistence/database.ts'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { startPostgres } from '../support/postgres.ts'

/** The tests' server turns durability off; a later `-c` wins. */
const durable = ['fsync=on', 'synchronous_commit=on', 'full_page_writes=on', 'shared_buffers=512MB', 'max_wal_size=4GB']

export interface Stage {
  /** A new database, migrated when it is for a console. */
  database(kind: 'console' | 'peer'): Promise<string>
  folder(name: string): string
  close(): Promise<void>
}

export async function openStage(): Promise<Stage> {
  const server = await startPostgres({ settings: durable })
  const root = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
  let databases = 0
  return {
    database: async (kind) => {
      const name = `bench_${++databases}`
      await query(server.url, `create database ${name}`)
      const url = new URL(server.url)
      url.pathname = `/${name}`
      if (kind === 'console') await migrated({ kind: 'postgresql', url: url.href })
      return url.href
    },
    folder: (name) => join(root, name),
    close: async () => {
      await server.stop()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

export async function migrated(profile: Profile): Promise<void> {
  const db = await openDatabase(profile)
  try {
    await db.raw((client) => migrateUp(client, migrations))
  } finally {
    await db.close()
  }
}

export async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const result = await client.query<Record<string, unknown>>(text)
    return result.rows
  } finally {
    await client.end()
  }
}
