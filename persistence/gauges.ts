/**
 * What a scrape asks of the database: how many actors of each kind live, wait and are held, over all organizations. Counts
 * only, no ids: metrics leave the house. Does not answer a person (queue-views.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'

/** Rows looked at for one scrape. The table holds what lives; beyond this a count says "at least". */
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

export function readGauges(db: Connection): Promise<readonly KindGauge[]> {
  return db.any(sql.type(KindGauge)`
    select kind, count(*)::int as live,
      (count(*) filter (where wake_at <= now() and lease_token is null))::int as due,
      (count(*) filter (where lease_token is not null))::int as leased,
      extract(epoch from now() - min(wake_at) filter (where wake_at <= now() and lease_token is null))::float8 as "oldestDueSeconds"
    from (select kind, wake_at, lease_token from actor limit ${lookLimit}) a group by kind order by kind`)
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
