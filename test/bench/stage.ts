/**
 * Where a bench plays: a real PostgreSQL with durability ON and its data on the temporary directory's disk, empty
 * databases on it, and folders for the embedded one. Everything is removed at the end.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../support/postgres.ts'

/** The tests' server turns durability off; a later `-c` wins. */
const durable = ['fsync=on', 'synchronous_commit=on', 'full_page_writes=on', 'shared_buffers=512MB', 'max_wal_size=4GB']

export interface Stage {
  /** The URL of a new, empty database; whoever opens it migrates it. */
  database(): Promise<string>
  folder(name: string): string
  /** CPU time of the server and all its backends so far, milliseconds; NaN where there is no /proc. */
  databaseCpuMs(): number
  close(): Promise<void>
}

export async function openStage(settings: readonly string[] = []): Promise<Stage> {
  const server = await startPostgres({ settings: [...durable, ...settings] })
  const [lock] = await query(server.url, "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int as pid")
  const postmaster = Number(lock?.['pid'])
  const root = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
  let databases = 0
  return {
    database: async () => {
      const name = `bench_${++databases}`
      await query(server.url, `create database ${name}`)
      const url = new URL(server.url)
      url.pathname = `/${name}`
      return url.href
    },
    folder: (name) => join(root, name),
    databaseCpuMs: () => (process.platform === 'linux' ? familyCpuMs(postmaster) : Number.NaN),
    close: async () => {
      await server.stop()
      rmSync(root, { recursive: true, force: true })
    },
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

/** Linux counts processor time in hundredths of a second [proc(5), USER_HZ]. */
const tickMs = 10

interface ProcessTimes {
  readonly parent: number
  readonly ownMs: number
  /** Of children that have ended. */
  readonly childrenMs: number
}

function statOf(pid: number): ProcessTimes | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = (from: number): number => (Number(fields[from]) + Number(fields[from + 1])) * tickMs
    return { parent: Number(fields[1]), ownMs: ticks(11), childrenMs: ticks(13) }
  } catch (error) {
    // Another system, or a process that has ended since it was listed.
    if (error instanceof Error && 'code' in error) return null
    throw error
  }
}

function familyCpuMs(postmaster: number): number {
  const own = statOf(postmaster)
  const living = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (statOf(Number(name)) ?? []) : []))
  const children = living.filter(({ parent }) => parent === postmaster)
  return (own?.ownMs ?? Number.NaN) + (own?.childrenMs ?? 0) + children.reduce((sum, { ownMs }) => sum + ownMs, 0)
}
