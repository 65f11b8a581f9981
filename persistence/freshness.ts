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
import type { Connection } from './connection.ts'
import { drawnId, oldestAlive } from './transaction-ids.ts'

/** Everything up to `last` was seen, but for the gaps. Whoever holds a number has drawn a transaction id before it. */
export interface Horizon {
  readonly last: number
  /** Who wrote `last`: where another batch stands there now, the database went back in time (a restore, a failover). */
  readonly anchor: string | null
  /** Missing numbers, each with a transaction id that was drawn after it was missed: who may fill it has a smaller one. */
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

const Last = z.object({ last: z.number(), anchor: z.string().nullable(), missing: z.array(z.number()) })
// A left join: without news there is one row, and it has no number.
const Row = z.custom<{ [K in keyof ToldBy]: ToldBy[K] | null } & { isSame: boolean; oldest: number }>()
const Drawn = z.object({ id: z.number() })

/**
 * An id greater than that of everybody who holds a number which was seen, or was seen to be missing, before this is called: a
 * statement of its own, for that order is the proof.
 */
const drawId = (db: Connection): Promise<number> => db.oneFirst(sql.type(Drawn)`select ${drawnId}::text::int8 as id`)

/** Numbers below the first that is there belong to facts that were forgotten, where that one is as old as no transaction gets. */
const firstNumber = sql.fragment`(select case when at < now() - interval '1 hour' then number else 1 end from fact order by number limit 1)`

/**
 * Where reading begins. What is under way at this moment may fill any number that is missing among the last; who holds an older one
 * took it ten thousand numbers ago. Not a blur until all who live now have ended: on a busy server somebody else's may live for hours.
 */
export async function openHorizon(db: Connection): Promise<Horizon> {
  const { last, anchor, missing } = await db.one(sql.type(Last)`
    select coalesce(f.number, 0) as last, f.batch_id as anchor, (
        select coalesce(json_agg(m.number), '[]') from (
          select generate_series(greatest(f.number - ${gapsLimit} + 1, ${firstNumber}), f.number) as number
          except select number from fact where number > f.number - ${gapsLimit}) m) as missing
    from (select) one left join (select number, batch_id from fact order by number desc limit 1) f on true`)
  const since = missing.length > 0 ? await drawId(db) : 0
  return { last, anchor, gaps: new Map(missing.map((number) => [number, since])), blurredUntil: 0 }
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
    select f.*, ${oldestAlive} as oldest,
      ${anchor}::uuid is null or exists (select 1 from fact where number = ${last} and batch_id = ${anchor}) as "isSame"
    from (select) one left join lateral (
      (select ${told} from fact where number = any(${sql.array([...gaps.keys()], 'int8')}))
      union all (select ${told} from fact where number > ${last} order by number limit ${newsLimit})
      order by number) f on true`)
  const [{ isSame, oldest } = { isSame: false, oldest: 0 }] = rows
  if (!isSame) return { news: [], horizon: await openHorizon(db), more: false, isBlurred: true }
  const news = rows.filter((row): row is typeof row & ToldBy => row.number !== null)
  const newest = news.at(-1)
  const to = newest !== undefined && newest.number > last ? newest : { number: last, batchId: anchor }
  const seen = new Set(news.map(({ number }) => number))
  const still = [...gaps].filter(([number, since]) => oldest < since && !seen.has(number))
  // A sequence jumps when a server crashes, or when somebody sets it: only so many numbers are worth remembering.
  const missed: number[] = []
  for (let number = Math.max(last, to.number - gapsLimit) + 1; number <= to.number; number++)
    if (!seen.has(number)) missed.push(number)
  const forgets = still.length + missed.length > gapsLimit || to.number - last > gapsLimit
  const next = missed.length > 0 || forgets ? await drawId(db) : 0
  const open = [...still, ...missed.map((number) => [number, next] as const)].slice(-gapsLimit)
  const stillBlurred = oldest < blurredUntil ? blurredUntil : 0
  return {
    news,
    horizon: { last: to.number, anchor: to.batchId, gaps: new Map(open), blurredUntil: forgets ? next : stillBlurred },
    more: news.length >= newsLimit,
    isBlurred: blurredUntil > 0 || forgets,
  }
}
