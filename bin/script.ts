/**
 * What the database scripts share: opening the database that the environment names, under the embedded one's directory lock,
 * and ending with one line on stderr and exit code 1 where an operator can act on it. Does not know what a script does.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase, type Database } from '../persistence/database.ts'
import { SchemaMismatch } from '../persistence/migrate.ts'
import { isDatabaseOutage } from '../persistence/outage.ts'
import { ConfigError, type DatabaseConfig } from './config.ts'
import { DirectoryLocked, lockDataDirectory } from './directory-lock.ts'
import { rootOf } from './root-cause.ts'

/** What was asked for makes no sense, or is not there; the sentence is for the operator. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/**
 * The database that is there. Opening an embedded one makes it where there is none: with a mistyped directory a script would
 * leave a new database behind and say of it that all is well.
 */
export async function withDatabase<T>(config: DatabaseConfig, work: (db: Database) => Promise<T>): Promise<T> {
  if (config.profile === 'pglite' && !existsSync(join(config.directory, 'PG_VERSION')))
    throw new UsageError(
      `There is no database in ${config.directory}; A2A_DATA_DIR says where, and db:migrate makes one.`,
    )
  return withAnyDatabase(config, work)
}

/** The same, made where there is none. */
export async function withAnyDatabase<T>(config: DatabaseConfig, work: (db: Database) => Promise<T>): Promise<T> {
  const lock = config.profile === 'pglite' ? lockDataDirectory(config.directory) : undefined
  try {
    const db = await openDatabase(
      config.profile === 'pglite'
        ? { kind: 'pglite', dataDir: config.directory }
        : { kind: 'postgresql', url: config.url, maxConnections: 1 },
    )
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  } finally {
    lock?.release()
  }
}

/** What an operator can act on is one line; anything else is a defect and keeps its stack. */
function explain(error: unknown): string {
  const expected = [UsageError, ConfigError, DirectoryLocked, SchemaMismatch].some((kind) => error instanceof kind)
  if (expected && error instanceof Error) return error.message
  if (error instanceof Error && 'code' in error) return `The database failed: ${error.message} (${String(error.code)})`
  // What cut a connection has no code of its own.
  if (isDatabaseOutage(error)) return `The database cannot be reached: ${rootOf(error)}`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Whether an argument asks for the usage instead. */
export const asksForHelp = (args: readonly string[]): boolean => args.includes('--help') || args.includes('-h')

/** Runs a script to its end; a failure is told on stderr. */
export async function runScript(main: () => Promise<void>): Promise<void> {
  try {
    await main()
  } catch (error) {
    process.stderr.write(`${explain(error)}\n`)
    process.exitCode = 1
  }
}
