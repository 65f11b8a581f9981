/**
 * Once per run: one PostgreSQL (or the one that A2A_TEST_DATABASE_URL names) with a migrated template database. The
 * embedded database's dump is made by the first file that needs it (test/support/databases.ts).
 */
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { startPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's URL of a database to connect to for creating others. */
    pgUrl: string
    /** The migrated database that `freshDatabase` copies. */
    pgTemplate: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['A2A_TEST_DATABASE_URL']
  const server = given === undefined ? await startPostgres() : undefined
  const url = server?.url ?? given ?? ''
  const template = `signalbox_template_${process.pid}`
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
  project.provide('pgUrl', url)
  project.provide('pgTemplate', template)
  return async () => {
    if (server) return server.stop()
    return withClient(url, async (client) => void (await client.query(`drop database if exists ${template}`)))
  }
}

async function withClient(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

function databaseUrl(url: string, name: string): string {
  const other = new URL(url)
  other.pathname = `/${name}`
  return other.href
}
