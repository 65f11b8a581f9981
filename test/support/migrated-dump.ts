/**
 * The embedded database as a test finds it: migrated, empty, and kept as a dump for all runs, for to make one takes seconds. Owns
 * the dump and how it gets into a console's data directory; databases are opened by databases.ts.
 */
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
import { extract, pack } from 'tar-fs'
import { migrateUp } from '../../persistence/migrate.ts'
import { migrations } from '../../persistence/migrations/all.ts'
import { startPglite } from '../../persistence/drivers/pglite.ts'

const repository = new URL('../../', import.meta.url)
const cache = fileURLToPath(new URL('node_modules/.cache/signalbox/', repository))

const sources = [
  'node_modules/@electric-sql/pglite/package.json',
  'persistence/drivers/pglite-thread.ts',
  'test/support/migrated-dump.ts',
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
 * A new data directory takes 3 to 6 s of a processor, a dumped one 0.5 s, so one dump is kept for all runs. Two runs that need it at once
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
