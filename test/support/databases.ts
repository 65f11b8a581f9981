/** A migrated, empty database of either kind for one test file. */
import { createHash, randomBytes } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { extract, pack } from 'tar-fs'
import { inject } from 'vitest'
import { openDatabase, type Database, type Profile } from '../../persistence/database.ts'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { startPglite } from '../../persistence/drivers/pglite.ts'
import { PgliteServer } from '../../persistence/drivers/pglite-server.ts'
import { empty, remember, type Untouched } from './emptied-database.ts'

export const bothDatabases = ['pglite', 'postgresql'] as const

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

function urlOf(name: string): string {
  const url = new URL(pgUrl())
  url.pathname = `/${name}`
  return url.href
}

const administer = (statement: string): Promise<void> =>
  withClient(pgUrl(), async (client) => void (await client.query(statement)))

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const repository = new URL('../../', import.meta.url)
const cache = fileURLToPath(new URL('node_modules/.cache/signalbox/', repository))

const sources = [
  'node_modules/@electric-sql/pglite/package.json',
  'persistence/drivers/pglite-thread.ts',
  'test/support/databases.ts',
]

/** What a dump is made of: PGlite's version, how we start it, how it is made, and the migrations. Another content is another file. */
function dumpName(): string {
  const content = createHash('sha256')
  for (const source of sources) {
    content.update(readFileSync(new URL(source, repository)))
  }
  for (const { version, name, up } of migrations) content.update(JSON.stringify([version, name, up]))
  return `migrated-${content.digest('hex').slice(0, 16)}.tar`
}

/**
 * A new data directory takes 3 to 6 s of a processor, a dumped one 0.5 s, so one dump is kept for all runs. Two files that need it at once
 * both make it and either's is kept: link() publishes a whole file or none, and there is no lock to wait for or to leak.
 */
export function migratedDump(): Promise<Uint8Array> {
  return (dumped ??= keptDump())
}

let dumped: Promise<Uint8Array> | undefined

async function keptDump(): Promise<Uint8Array> {
  const name = dumpName()
  const known = readIfThere(join(cache, name))
  if (known) return known
  const { server, client } = await startPglite({})
  try {
    await migrateUp(client, migrations)
    // With the checkpoint all that the log says is in the tables; a start reads the segment in which that stands.
    await client.query('select pg_switch_wal()')
    await client.query('checkpoint')
    const { rows } = await client.query<{ name: string }>('select pg_walfile_name(pg_current_wal_lsn()) as name')
    const dump = await slim(await server.dump(), rows.map((row) => row.name).join())
    publish(name, dump)
    return dump
  } finally {
    await client.end()
    await server.close()
  }
}

/** Databases that nobody connects to: initdb's two templates. */
const templates = ['base/1', 'base/4']
const page = 8192
const segment = /^[0-9A-F]{24}$/
const segmentBytes = 16 * 1024 * 1024

/**
 * A dump without what a start copies and never reads: the templates, other segments of the log than `current`, and the zeros that
 * fill that, which the database makes again where it writes. 42 MB become 10, and a start takes a third less of a processor.
 */
async function slim(dump: Uint8Array, current: string): Promise<Uint8Array> {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-dump-'))
  const inLog = (name: string): string => join(directory, 'pg_wal', name)
  try {
    await unpack(dump, directory)
    for (const name of templates) rmSync(join(directory, name), { recursive: true })
    for (const name of readdirSync(inLog('.'))) if (segment.test(name) && name !== current) rmSync(inLog(name))
    const written = readFileSync(inLog(current)).findLastIndex((byte) => byte !== 0) + 1
    truncateSync(inLog(current), Math.ceil(written / page) * page)
    return await buffer(pack(directory))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const unpack = (dump: Uint8Array, directory: string): Promise<void> =>
  pipeline(Readable.from([dump]), extract(directory, { dmode: 0o700, fmode: 0o600 }))

/**
 * Puts an empty migrated database into a console's data directory that has none: what a first start makes in 7 s of a
 * processor, for tests of what comes after it.
 */
export async function placeDatabase(dataDirectory: string): Promise<void> {
  const directory = join(dataDirectory, 'pglite')
  if (existsSync(directory)) return
  await unpack(await migratedDump(), directory)
  // A user's log has its place on the disk before it is written.
  for (const name of readdirSync(join(directory, 'pg_wal')).filter((name) => segment.test(name))) {
    const file = join(directory, 'pg_wal', name)
    appendFileSync(file, Buffer.alloc(segmentBytes - statSync(file).size))
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

/** Older contents go: 10 MB each. */
function publish(name: string, bytes: Uint8Array): void {
  mkdirSync(cache, { recursive: true })
  for (const other of readdirSync(cache)) {
    if (other.startsWith('migrated-') && other.endsWith('.tar') && other !== name)
      rmSync(join(cache, other), { force: true })
  }
  const draft = join(cache, `draft-${randomBytes(8).toString('hex')}`)
  writeFileSync(draft, bytes)
  try {
    linkSync(draft, join(cache, name))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    rmSync(draft)
  }
}
