/**
 * Counting callers in fixed windows of sixty seconds, in the database, so that replicas share one count. One statement a
 * call, for any number of buckets. A bucket names who is counted and for what, widest first: `push`, `registration/<its id>`,
 * `read/<person>`. Owns the counting; what a limit is, and what is answered beyond it, is the caller's.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'

const length = sql.fragment`interval '60 seconds'`
/** When the present window began, by the database's clock. */
export const presentWindow = sql.fragment`date_bin(${length}, now(), 'epoch')`
/**
 * Whether a window counts now: the present one, or the next, which a statement began that overtook this one. Further ahead are
 * only those of a clock that was set back since: nobody waits until it has come to where it was.
 */
export const isPresent = (startsAt: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`${startsAt} between ${presentWindow} and ${presentWindow} + 2 * ${length}`
const counts = isPresent(sql.fragment`w.starts_at`)
/** Into `rate_window as w`: a bucket whose window does not count any more begins anew. */
export const addPlaces = sql.fragment`
  on conflict (bucket) do update set
    starts_at = case when ${counts} then w.starts_at else excluded.starts_at end,
    taken = case when ${counts} then w.taken + excluded.taken else excluded.taken end`

/** One person's, or one registration's; meetArrivals (sessions.ts) writes the same in its statement. */
export const bucketOf = (what: string, whose: string): string => `${what}/${whose}`

/** Callers who have come at once for one bucket, which has `limit` places in each window. */
export interface Wish {
  readonly bucket: string
  readonly wanted: number
  readonly limit: number
}

const Counted = z.object({ bucket: z.string(), taken: z.number(), leftMs: z.number() })

export interface Places {
  /** How many of the wanted places there were. */
  readonly granted: number
  /** Milliseconds until the next window. */
  readonly leftMs: number
}

/**
 * Takes places, by the database's clock; answers in the order of the wishes, whose buckets are all different. Rows are taken
 * in the order of their names, so that two replicas that count the same people wait for each other and never in a circle.
 */
export async function takePlaces(db: Pick<Connection, 'any'>, wishes: readonly Wish[]): Promise<readonly Places[]> {
  const buckets = wishes.map(({ bucket }) => bucket)
  const wanted = wishes.map((wish) => wish.wanted)
  const rows = await db.any(sql.type(Counted)`
    insert into rate_window as w (bucket, starts_at, taken)
    select bucket, ${presentWindow}, wanted
    from unnest(${sql.array(buckets, 'text')}, ${sql.array(wanted, 'int4')}) as wish(bucket, wanted) order by bucket
    ${addPlaces}
    returning bucket, taken, ceil(extract(epoch from ${presentWindow} + ${length} - now()) * 1000)::int as "leftMs"`)
  const counted = new Map(rows.map((row) => [row.bucket, row]))
  return wishes.map((wish) => {
    const row = counted.get(wish.bucket)
    if (!row) throw new Error(`The bucket ${wish.bucket} was not counted.`)
    return { granted: grantedOf(wish, row.taken), leftMs: row.leftMs }
  })
}

/** `taken`: with the wanted ones. */
export const grantedOf = ({ wanted, limit }: Omit<Wish, 'bucket'>, taken: number): number =>
  Math.max(0, Math.min(wanted, limit - (taken - wanted)))

/** Rows in one pass: some tens of milliseconds. What is left over is for the next round. */
const forgottenAtOnce = 10_000

/**
 * Forgets buckets whose window is over: nobody will ask for them, or whoever does begins a new one. It waits for nobody who counts,
 * so that the two never wait for each other.
 */
export async function forgetWindows(db: Connection): Promise<void> {
  await db.query(sql.unsafe`
    delete from rate_window where bucket in (
      select bucket from rate_window where starts_at < now() - 2 * ${length} order by bucket limit ${forgottenAtOnce}
      for update skip locked)`)
}
