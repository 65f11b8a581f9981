/**
 * What was committed since somebody last looked: the outbox read forward, by the numbers of its facts. Owns the proof that
 * no commit is passed over; not who is told (actors/freshness.ts).
 *
 * A number is taken before its commit, so 7 may be seen before 6: whoever remembers only the last number misses 6. So the
 * numbers in between that were not seen, the gaps, are asked for by name, until no transaction that could fill them is
 * alive. A look costs what is new and what is missing, never the length of the outbox.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './database.ts'

/** Everything up to `last` was seen, but for the gaps. */
export interface Horizon {
  readonly last: number
  /** Who wrote `last`: where another batch stands there now, the database went back in time (a restore, a failover). */
  readonly anchor: string | null
  /** Missing numbers, each with the first transaction id that was not given out when it was missed. */
  readonly gaps: ReadonlyMap<number, number>
  /** Until every transaction below this id has ended, there may be gaps that nobody remembers. */
  readonly blurredUntil: number
}

export interface ToldBy {
  readonly number: number
  readonly organizationId: string
  readonly subjectId: string
  readonly batchId: string
}

export interface Look {
  readonly news: readonly ToldBy[]
  readonly horizon: Horizon
  /** More is waiting than one look reads. */
  readonly more: boolean
  /** Something may have been committed that `news` does not hold: whoever waits reads again. */
  readonly isBlurred: boolean
}

/** Facts beyond the last that a look reads, filled gaps aside: 4,000 a second are two looks a second. */
const newsLimit = 2_000
/** Three processes at full speed have 4,800 numbers under way: four flights each at most, 100 commands a flight, four facts a command. */
const gapsLimit = 10_000

const Last = z.object({ last: z.number(), anchor: z.string().nullable(), next: z.number() })
// A left join: without news there is one row, and it has no number. Transaction ids stay below 2^53 for our lifetimes.
const Row = z.custom<{ [K in keyof ToldBy]: ToldBy[K] | null } & { isSame: boolean; oldest: number; next: number }>()

/** Where reading begins. What was under way at this moment makes the first looks blurred. */
export async function openHorizon(db: Connection): Promise<Horizon> {
  const { last, anchor, next } = await db.one(sql.type(Last)`
    select coalesce(f.number, 0) as last, f.batch_id as anchor, pg_snapshot_xmax(s)::text::int8 as next
    from pg_current_snapshot() s left join (select number, batch_id from fact order by number desc limit 1) f on true`)
  return { last, anchor, gaps: new Map(), blurredUntil: next }
}

const told = sql.fragment`number, organization_id as "organizationId", subject_id as "subjectId", batch_id as "batchId"`

/**
 * One look. A gap is closed by its fact, or given up when every transaction that was alive when it was missed has ended and
 * the same snapshot still does not show it: then it was rolled back. (A transaction has its id before it takes a number,
 * for it has locked or written rows by then.) Two ranges of one index: both conditions in one clause read the outbox from
 * its beginning, 10 ms a look after ten thousand commands.
 */
export async function lookFrom(db: Connection, horizon: Horizon): Promise<Look> {
  const { last, anchor, gaps, blurredUntil } = horizon
  const rows = await db.any(sql.type(Row)`
    select f.*, pg_snapshot_xmin(s)::text::int8 as oldest, pg_snapshot_xmax(s)::text::int8 as next,
      ${anchor}::uuid is null or exists (select 1 from fact where number = ${last} and batch_id = ${anchor}) as "isSame"
    from pg_current_snapshot() s left join lateral (
      (select ${told} from fact where number = any(${sql.array([...gaps.keys()], 'int8')}))
      union all (select ${told} from fact where number > ${last} order by number limit ${newsLimit})
      order by number) f on true`)
  const [{ isSame, oldest, next } = { isSame: false, oldest: 0, next: 0 }] = rows
  if (!isSame) return { news: [], horizon: await openHorizon(db), more: false, isBlurred: true }
  const news = rows.filter((row): row is typeof row & ToldBy => row.number !== null)
  const newest = news.at(-1)
  const to = newest !== undefined && newest.number > last ? newest : { number: last, batchId: anchor }
  const open = new Map([...gaps].filter(([, since]) => oldest < since))
  // A sequence jumps when a server crashes, or when somebody sets it: only so many numbers are worth remembering.
  for (let number = Math.max(last, to.number - gapsLimit) + 1; number <= to.number; number++) open.set(number, next)
  for (const { number } of news) open.delete(number)
  const forgets = open.size > gapsLimit || to.number - last > gapsLimit
  const kept = forgets ? new Map([...open].slice(-gapsLimit)) : open
  const stillBlurred = oldest < blurredUntil ? blurredUntil : 0
  return {
    news,
    horizon: { last: to.number, anchor: to.batchId, gaps: kept, blurredUntil: forgets ? next : stillBlurred },
    more: news.length >= newsLimit,
    isBlurred: blurredUntil > 0 || forgets,
  }
}
