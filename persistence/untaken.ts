/**
 * Why nobody has taken up what is due, for reading: that no process works, or that those which do have all their places of a kind taken.
 * By what processes told and by leases, whichever organization's. Whose places they are is queue-views.ts; says nothing
 * (domain/untaken.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Untaken } from '../domain/untaken.ts'
import type { Connection } from './connection.ts'
import { nobodyWorks, working } from './processes.ts'

const Counts = z.object({ nobody: z.boolean(), working: z.number(), full: z.number() })

/** `places`: of one process for the kind. Who drains takes nothing up, however many of its places are free, and counts for nothing. */
export async function readUntaken(db: Connection, kind: string, places: number): Promise<Untaken> {
  const counts = await db.one(sql.type(Counts)`
    with held as (
      select lease_owner as owner, count(*)::int as taken from actor
      where kind = ${kind} and wake_at is not null and lease_until > now() group by lease_owner
    ), works as (
      ${working}
      union all select h.owner from held h where not exists (select 1 from process p where p.owner = h.owner)
    )
    select ${nobodyWorks} as nobody, count(*)::int as working, (count(*) filter (where held.taken >= ${places}))::int as full
    from works left join held on held.owner = works.owner`)
  if (counts.nobody) return 'nobody'
  return counts.full > 0 && counts.full === counts.working ? 'full' : 'free'
}
