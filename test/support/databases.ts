/** A migrated, empty database of either kind for one test file. */
import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { inject } from 'vitest'
import { openDatabase, type Database, type Profile } from '../../persistence/database.ts'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { startPglite } from '../../persistence/pglite.ts'

export const bothDatabases = ['pglite', 'postgresql'] as const

export interface FreshDatabase {
  readonly db: Database
  /** PostgreSQL: its URL opens it from another pool or process. Embedded: the same start, another database. */
  readonly profile: Profile
  close(): Promise<void>
}

export function freshDatabase(kind: (typeof bothDatabases)[number]): Promise<FreshDatabase> {
  return kind === 'pglite' ? freshPglite() : freshPostgres()
}

async function freshPglite(): Promise<FreshDatabase> {
  const profile: Profile = { kind: 'pglite', template: await migratedDump() }
  const db = await openDatabase(profile)
  return { db, profile, close: () => db.close() }
}

async function freshPostgres(): Promise<FreshDatabase> {
  const name = `signalbox_test_${randomBytes(8).toString('hex')}`
  await administer(`create database ${name} template ${inject('pgTemplate')} strategy file_copy`)
  const url = new URL(inject('pgUrl'))
  url.pathname = `/${name}`
  const profile: Profile = { kind: 'postgresql', url: url.href }
  const db = await openDatabase(profile)
  const close = async (): Promise<void> => {
    await db.close()
    await administer(`drop database if exists ${name} with (force)`)
  }
  return { db, profile, close }
}

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('pgUrl') })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/**
 * A new data directory takes 3 to 6 s, a dumped one 1 s, so one is made per run. Two files that need it at once both
 * make it and either's is kept: link() publishes a whole file or none, and there is no lock to wait for or to leak.
 */
export async function migratedDump(): Promise<Uint8Array> {
  const file = join(inject('runFolder'), 'migrated.tar')
  const known = readIfThere(file)
  if (known) return known
  const { server, client } = await startPglite({})
  try {
    await migrateUp(client, migrations)
    await client.query('checkpoint')
    const dump = await server.dump()
    publish(file, dump)
    return dump
  } finally {
    await client.end()
    await server.close()
  }
}

function readIfThere(file: string): Uint8Array | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function publish(file: string, bytes: Uint8Array): void {
  const draft = `${file}.${randomBytes(4).toString('hex')}`
  writeFileSync(draft, bytes)
  try {
    linkSync(draft, file)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    rmSync(draft)
  }
}
