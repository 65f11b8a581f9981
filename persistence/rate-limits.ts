/**
 * Counting callers in fixed windows of sixty seconds, in the database, so that replicas share one count. One statement a
 * call. A bucket names who is counted and for what, widest first: `push`, `push/<registration>`. Owns the counting; what a
 * limit is, and what is answered beyond it, is the caller's.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './database.ts'

export const windowSeconds = 60

const Counted = z.object({ taken: z.nullable(z.number()), leftMs: z.number() })

export interface Places {
  /** How many of the wanted places there were. */
  readonly granted: number
  /** Milliseconds until the next window. */
  readonly leftMs: number
}

/**
 * Takes places of a bucket that has `limit` of them in each window, by the database's clock: for one caller, or for as many
 * as have come at once. Beyond the limit nothing is counted any more.
 */
export async function takePlaces(db: Connection, bucket: string, wanted: number, limit: number): Promise<Places> {
  const length = sql.fragment`${windowSeconds} * interval '1 second'`
  const window = sql.fragment`date_bin(${length}, now(), 'epoch')`
  const { taken, leftMs } = await db.one(sql.type(Counted)`
    with counted as (
      insert into rate_window as w (bucket, starts_at, taken) values (${bucket}, ${window}, ${wanted})
      on conflict (bucket) do update set
        starts_at = greatest(w.starts_at, excluded.starts_at),
        taken = case when w.starts_at < excluded.starts_at then excluded.taken else w.taken + excluded.taken end
      where w.starts_at < excluded.starts_at or w.taken < ${limit}
      returning w.taken
    )
    select (select taken from counted) as taken,
      ceil(extract(epoch from ${window} + ${length} - now()) * 1000)::int as "leftMs"`)
  const before = taken === null ? limit : taken - wanted
  return { granted: Math.max(0, Math.min(wanted, limit - before)), leftMs }
}

/** Forgets buckets whose window is over: nobody will ask for them, or whoever does begins a new one. */
export async function forgetWindows(db: Connection): Promise<void> {
  await db.query(
    sql.unsafe`delete from rate_window where starts_at < now() - ${2 * windowSeconds} * interval '1 second'`,
  )
}
