/** A migrated, empty database of either kind for a test: made, or one that an earlier test of this worker left (emptied-database.ts). */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { openDatabase, type Database, type Profile } from '../../persistence/database.ts'
import { PgliteServer } from '../../persistence/drivers/pglite-server.ts'
import { empty, remember, type Untouched } from './emptied-database.ts'
import { migratedDump } from './migrated-dump.ts'
import { isLong } from './pass.ts'
import { databaseUrl, withClient } from './pg-client.ts'

export const bothDatabases = ['pglite', 'postgresql'] as const

/**
 * Where what is looked at is an agent, a reader or the network, and what the databases have to do with it is proven on both elsewhere:
 * the test command takes the cheaper one, the long pass both.
 */
export const eitherDatabase: readonly (typeof bothDatabases)[number][] = isLong ? bothDatabases : ['postgresql']

export interface FreshDatabase {
  readonly db: Database
  /** PostgreSQL: its URL opens it from another pool or process. Embedded: the same start, another database. */
  readonly profile: Profile
  close(): Promise<void>
}

/** A superuser's URL on the PostgreSQL of this worker: no other test file uses the server meanwhile. */
export function pgUrl(): string {
  const urls = inject('pgUrls')
  const url = urls[Number(process.env['VITEST_POOL_ID'] ?? 0) % urls.length]
  if (url === undefined) throw new Error('The run has no PostgreSQL: test/support/global.ts starts it.')
  return url
}

export function freshDatabase(kind: (typeof bothDatabases)[number]): Promise<FreshDatabase> {
  return kind === 'pglite' ? freshPglite() : freshPostgres()
}

/** Whether a later file of this worker finds what an earlier one left: with modules of its own, it would not (vitest.config.ts). */
const isShared = (): boolean => inject('sharesModules')

/** An embedded database costs half a second of a processor to start, and a fiftieth of it to empty. */
interface EmbeddedServer {
  readonly server: PgliteServer
  readonly untouched: Untouched
  uses: number
}

interface OpenedServer {
  readonly db: Database
  readonly embedded: EmbeddedServer
}

/** One in each worker, for each takes half a GB: whoever comes next empties it. */
let restingServer: EmbeddedServer | null = null
/** WebAssembly's memory grows and never shrinks. */
const USES_LIMIT = 40

async function freshPglite(): Promise<FreshDatabase> {
  const profile = { kind: 'pglite', template: await migratedDump() } as const
  const { db, embedded } = (await emptiedPglite()) ?? (await startedPglite(profile.template))
  embedded.uses += 1
  let closing: Promise<void> | undefined
  return { db, profile, close: () => (closing ??= rest(db, embedded)) }
}

async function rest(db: Database, embedded: EmbeddedServer): Promise<void> {
  const { server, uses } = embedded
  await db.close().catch((error: unknown) => server.close().then(() => Promise.reject(error)))
  if (isShared() && restingServer === null && uses < USES_LIMIT && !server.lost.aborted) restingServer = embedded
  else await server.close()
}

async function startedPglite(template: Uint8Array): Promise<OpenedServer> {
  const server = new PgliteServer({ template })
  try {
    const db = await openDatabase({ kind: 'pglite', running: server })
    return { db, embedded: { server, untouched: await db.raw(remember), uses: 0 } }
  } catch (error) {
    await server.close()
    throw error
  }
}

/** Null: there is none, or it is no longer what it was, whatever was done to it. */
async function emptiedPglite(): Promise<OpenedServer | null> {
  const embedded = restingServer
  restingServer = null
  if (!embedded) return null
  const { server, untouched } = embedded
  const db = await openDatabase({ kind: 'pglite', running: server }).catch(() => null)
  const isEmpty = await db?.raw((client) => empty(client, untouched)).catch(() => false)
  if (db && isEmpty) return { db, embedded }
  await db?.close().catch(() => undefined)
  await server.close()
  return null
}

/** Names of databases on this worker's server: to make one and to drop it takes thrice what emptying takes. */
const restingNames: string[] = []
const RESTING_LIMIT = 4
/** All are copies of the same one. */
let untouchedCopy: Untouched | null = null

async function freshPostgres(): Promise<FreshDatabase> {
  const name = (await emptiedPostgres()) ?? (await copiedPostgres())
  const profile: Profile = { kind: 'postgresql', url: urlOf(name) }
  const db = await openDatabase(profile)
  const rest = async (): Promise<void> => {
    await db.close()
    if (isShared() && restingNames.length < RESTING_LIMIT) restingNames.push(name)
    else await dropped(name)
  }
  let closing: Promise<void> | undefined
  return { db, profile, close: () => (closing ??= rest()) }
}

const newName = (): string => `${inject('pgTemplate')}_${randomBytes(8).toString('hex')}`

async function copiedPostgres(): Promise<string> {
  const name = newName()
  await administer(`create database ${name} template ${inject('pgTemplate')} strategy wal_log`)
  if (isShared()) untouchedCopy ??= await withClient(urlOf(name), remember)
  return name
}

/**
 * Under a new name: a process or a pool that was left behind finds nothing under the old one. Null: there is none, or it is no
 * longer what it was, whatever was done to it.
 */
async function emptiedPostgres(): Promise<string | null> {
  const [name, untouched] = [restingNames.pop(), untouchedCopy]
  if (name === undefined || untouched === null) return null
  const next = newName()
  const renewed = async (): Promise<boolean> => {
    if (!(await withClient(urlOf(name), (client) => emptyAlone(client, untouched)))) return false
    await administer(`alter database ${name} rename to ${next}`)
    return true
  }
  if (await renewed().catch(() => false)) return next
  await dropped(name)
  return null
}

/** Once everybody else has left it, or has been made to: a killed process is one that the server has not missed yet. */
async function emptyAlone(client: pg.Client, untouched: Untouched): Promise<boolean> {
  await client.query(`
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`)
  return empty(client, untouched)
}

const dropped = (name: string): Promise<void> => administer(`drop database if exists ${name} with (force)`)

const urlOf = (name: string): string => databaseUrl(pgUrl(), name)

/** One session of a worker's for all of them, for a server forks a process for each that begins. It keeps nobody alive. */
let administrators: pg.Pool | null = null

function administratorsOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 1, allowExitOnIdle: true })
  // One that was lost while nobody used it is made anew by whoever does.
  pool.on('error', () => undefined)
  return pool
}

async function administer(statement: string): Promise<void> {
  administrators ??= administratorsOf(pgUrl())
  await administrators.query(statement)
}
