/**
 * What a scrape asks of the database: how many actors of each kind live, wait and are held, over all organizations. Counts
 * only, no ids: metrics leave the house. Does not answer a person (queue-views.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'

/** Rows of one kind looked at for one count of a scrape. The table holds what lives; beyond this a count says "at least". */
const lookLimit = 100_000

const KindGauge = z.object({
  kind: z.string(),
  live: z.number(),
  /** Due and held by nobody. */
  due: z.number(),
  leased: z.number(),
  /** Seconds that the oldest of the due ones waits; null when none is due. */
  oldestDueSeconds: z.nullable(z.number()),
})
export type KindGauge = z.infer<typeof KindGauge>

/** Each kind by itself, in the order of the index: whatever else waits, a kind is there, and its oldest is the oldest. */
export function readGauges(db: Connection, kinds: readonly string[], limit = lookLimit): Promise<readonly KindGauge[]> {
  return db.any(sql.type(KindGauge)`
    select k.kind, l.live, d.due, d.expired + f.leased as leased, d.seconds as "oldestDueSeconds"
    from unnest(${sql.array([...kinds], 'text')}) as k(kind)
    cross join lateral (
      select count(*)::int as live from (select 1 from actor where kind = k.kind limit ${limit}) a) l
    cross join lateral (
      select (count(*) filter (where lease_token is null))::int as due,
        (count(*) filter (where lease_token is not null))::int as expired,
        extract(epoch from now() - min(wake_at) filter (where lease_token is null))::float8 as seconds
      from (select wake_at, lease_token from actor where kind = k.kind and wake_at <= now()
        order by wake_at limit ${limit}) a) d
    cross join lateral (
      select (count(*) filter (where lease_token is not null))::int as leased
      from (select lease_token from actor where kind = k.kind and wake_at > now() order by wake_at limit ${limit}) a) f
    order by k.kind`)
}

const unlinkedLimit = 10_000
const ChainGauge = z.object({
  /** Audit rows without a link; one more than ten thousand stands for more. */
  unlinked: z.number(),
  /** Organizations whose chain did not hold when it was last followed. */
  faults: z.number(),
})
type ChainGauge = z.infer<typeof ChainGauge>

export function readChainGauge(db: Connection): Promise<ChainGauge> {
  return db.one(sql.type(ChainGauge)`
    select (select count(*)::int from (
        select 1 from audit where place > coalesce((select place from audit_linking), 0) limit ${unlinkedLimit + 1}) w) as unlinked,
      (select count(*)::int from audit_check where fault is not null) as faults`)
}

/** Whether the database answers at all. */
export async function ping(db: Connection): Promise<void> {
  await db.query(sql.unsafe`select 1`)
}
