/**
 * Once per run: a PostgreSQL for each of Vitest's workers (or the one that A2A_TEST_DATABASE_URL names, for all of them),
 * with a migrated template database. One for all would show a file the transactions that others have open: what waits for
 * the oldest of them would wait for a stranger's. The embedded database's dump is made, too, where a
 * run before this one has not (migrated-dump.ts). What is stale of the build is built first: processes are started from it (child.ts).
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type pg from 'pg'
import type { TestProject } from 'vitest/node'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { migratedDump } from './migrated-dump.ts'
import { databaseUrl, withClient } from './pg-client.ts'
import { startPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's URLs of databases to connect to for creating others: a server each. */
    pgUrls: readonly string[]
    /** The migrated database that `freshDatabase` copies, on each server. */
    pgTemplate: string
    /** Whether the files of a worker share their modules, and with them what an earlier file left. */
    sharesModules: boolean
  }
}

const root = resolve(import.meta.dirname, '../..')

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  execFileSync(process.execPath, ['bin/build.ts', '--if-stale'], { cwd: root, stdio: 'inherit' })
  const given = process.env['A2A_TEST_DATABASE_URL']
  const workers = project.vitest.config.maxWorkers
  const servers = given === undefined ? await Promise.all(Array.from({ length: workers }, () => startPostgres())) : []
  const urls = given === undefined ? servers.map(({ url }) => url) : [given]
  const template = `signalbox_test_${randomBytes(8).toString('hex')}`
  // Where it is not there yet, it is made here: workers would each make it.
  await Promise.all([migratedDump(), ...urls.map((url) => migrated(url, template))])
  project.provide('pgUrls', urls)
  project.provide('pgTemplate', template)
  return async () => {
    await Promise.all(servers.map((server) => server.stop()))
    if (given !== undefined) await withClient(given, (client) => leaveNothing(client, template))
  }
}

async function migrated(url: string, template: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`drop database if exists ${template}`)
    // The builtin provider came with PostgreSQL 17; a server of one's own may be 15 or 16.
    const { rows } = await client.query<{ version: number }>(
      "select current_setting('server_version_num')::int as version",
    )
    const locale = (rows[0]?.version ?? 0) >= 170_000 ? "locale_provider builtin builtin_locale 'C.UTF-8'" : ''
    await client.query(`create database ${template} template template0 encoding 'UTF8' ${locale}`)
  })
  await withClient(databaseUrl(url, template), (client) => migrateUp(client, migrations))
  // PostgreSQL's own vacuum would come within the minute, and later copies would differ from earlier ones (emptied-database.ts).
  await withClient(url, (client) => client.query(`alter database ${template} allow_connections false`))
}

/** The template and its copies (databases.ts), which wait for whoever comes next. */
async function leaveNothing(client: pg.Client, template: string): Promise<void> {
  const made = `
    select format('drop database if exists %I with (force)', datname) as drop from pg_database
    where datname = $1 or starts_with(datname, $1 || '_')`
  const { rows } = await client.query<{ drop: string }>(made, [template])
  for (const row of rows) await client.query(row.drop)
}
