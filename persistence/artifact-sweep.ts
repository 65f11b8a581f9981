/**
 * Removes what no task refers to from the artifact directory and its table: files whose report was never committed, rows
 * whose task is gone, temporary files of a process that died. One shard (1/256) a call. Does not decide when (actors/housekeeping.ts).
 *
 * A file goes in two steps, the grace apart and at least a settling time: it is renamed aside, later removed. Whoever opens an old dump
 * beside this directory has as long to find out that it knows nothing of newer files, and they are put back where one is wanted. Whoever writes the same
 * digest either touches the file before it is renamed, and then its time is young at the second step and it is put back, or
 * finds nothing and writes it anew (ArtifactStore.put). A reader looks in both places. So writers, readers and any number
 * of sweeps need no lock between them, also over a network file system that caches attributes for a minute.
 */
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'slonik'
import { z } from 'zod'
import { ifThere, setAside, unavailable } from './artifacts.ts'
import type { Database } from './database.ts'
import type { Connection } from './connection.ts'
import { isLockTimeout } from './drivers/sqlstate.ts'

/** A report is committed seconds after its bytes were stored, and a lease lasts a minute: a day is far from both. */
export const graceMs = 24 * 60 * 60_000
/** Longer than any cache of file attributes, and than a writer's way from its touch to its look. */
const settlingMs = 10 * 60_000

export const shardCount = 256
/** Digests asked for in one statement, and rows removed by one. */
const chunk = 500

export interface Swept {
  /** Files renamed aside: removed by a later call unless somebody wants them. */
  readonly aside: number
  readonly restored: number
  /** Files removed: set aside before, or temporary and old. */
  readonly removed: number
  /** Rows of `artifact` removed. */
  readonly rows: number
}

interface Times {
  readonly now: Date
  readonly graceMs: number
}

/** Sweeps one shard. Rejects with ArtifactsUnavailable where the directory fails; what is left is found by the next call. */
export async function sweepShard(db: Database['pool'], directory: string, shard: number, times: Times): Promise<Swept> {
  const name = shard.toString(16).padStart(2, '0')
  // Rows first: their files then have no row, and are old.
  const rows = await removeRows(db, name, new Date(times.now.getTime() - times.graceMs).toISOString())
  try {
    return { ...(await sweepFiles(db, join(directory, name), times)), rows }
  } catch (error) {
    throw unavailable(error)
  }
}

const digestShape = /^[0-9a-f]{64}$/
const temporaryShape = /^[0-9a-f]{64}\.[0-9a-z-]+$/

async function sweepFiles(
  db: Connection,
  folder: string,
  { now, graceMs: grace }: Times,
): Promise<Omit<Swept, 'rows'>> {
  const names = (await ifThere(readdir(folder))) ?? []
  const tally = { aside: 0, restored: 0, removed: 0 }
  const old = now.getTime() - grace
  const candidates: string[] = []
  const put = new Map<string, { readonly isTouched: boolean; readonly isOver: boolean }>()
  for (const name of names) {
    const path = join(folder, name)
    const bare = name.slice(0, 64)
    const found = await ifThere(stat(path))
    if (!found) continue
    if (digestShape.test(name)) {
      if (found.mtimeMs < old) candidates.push(name)
    } else if (name === bare + setAside && digestShape.test(bare)) {
      // Renaming a file sets its change time, and nothing but touching it sets its own.
      const asideMs = now.getTime() - found.ctimeMs
      if (asideMs >= settlingMs) put.set(bare, { isTouched: found.mtimeMs >= old, isOver: asideMs >= grace })
    } else if (temporaryShape.test(name) && found.mtimeMs < old) {
      await rm(path, { force: true })
      tally.removed += 1
    }
  }
  const unwanted = new Set<string>()
  for await (const digest of withoutRow(db, [...put.keys()])) unwanted.add(digest)
  for (const [digest, { isTouched, isOver }] of put) {
    const isWanted = isTouched || !unwanted.has(digest)
    if (!isWanted && !isOver) continue
    const path = join(folder, digest + setAside)
    // It may be there again: then both hold the same bytes, and either may go.
    const done = await ifThere((isWanted ? rename(path, join(folder, digest)) : rm(path)).then(() => true))
    if (done) tally[isWanted ? 'restored' : 'removed'] += 1
  }
  // After those: a file that takes the place of one that was aside has its own time there.
  for await (const digest of withoutRow(db, candidates)) {
    const path = join(folder, digest)
    if (await ifThere(rename(path, path + setAside).then(() => true))) tally.aside += 1
  }
  return tally
}

async function* withoutRow(db: Connection, digests: readonly string[]): AsyncGenerator<string> {
  for (let from = 0; from < digests.length; from += chunk) {
    const asked = digests.slice(from, from + chunk)
    const known = new Set(
      await db.anyFirst(sql.type(z.object({ digest: z.string() }))`
        select digest from artifact where digest = any(${sql.array(asked, 'text')})`),
    )
    yield* asked.filter((digest) => !known.has(digest))
  }
}

/** Digests are text of one length: a shard is a range of the primary key. ':' is the character after '9', 'g' after 'f'. */
const unreferenced = (shard: string, before: string) => sql.fragment`
  select a.digest from artifact a
  where a.digest >= ${shard} and a.digest < ${`${shard}g`} and a.stored_at < ${before}
    and not exists (select 1 from task_bytes b where b.digest = a.digest)
  order by a.digest limit ${chunk}`

/**
 * Looked for without a lock and removed under one. A batch that finds the row leaves it as it is and then refers to it; if
 * it were removed between these two, the batch would fail on its foreign key. With the lock, which waits for batches under
 * way and is held for milliseconds, a batch sees the row before it, or makes it anew after it. There is no such row unless
 * tasks were deleted, so as a rule the lock is never asked for.
 */
async function removeRows(db: Database['pool'], shard: string, before: string): Promise<number> {
  const Found = sql.type(z.object({ digest: z.string() }))
  const found = await db.anyFirst(Found`${unreferenced(shard, before)}`)
  if (found.length === 0) return 0
  try {
    return await db.transaction(async (tx) => {
      await tx.query(sql.unsafe`set local lock_timeout = '1s'`)
      await tx.query(sql.unsafe`lock table artifact in share row exclusive mode`)
      const gone = await tx.anyFirst(Found`
        delete from artifact where digest in (${unreferenced(shard, before)}) returning digest`)
      return gone.length
    })
  } catch (error) {
    // A batch takes its time, and nobody else is to wait behind this: the next look finds the same rows.
    if (isLockTimeout(error)) return 0
    throw error
  }
}
