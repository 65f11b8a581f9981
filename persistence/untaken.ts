/**
 * Why nobody has taken up what is due, for reading: that no process works, or that those which do have all their places of a kind taken.
 * By what processes told and by leases, whichever organization's. Whose places they are is queue-views.ts; says nothing
 * (domain/unread-agent.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Untaken } from '../domain/unread-agent.ts'
import type { Connection } from './connection.ts'
import { countingWorking, isHeardOf, nobodyWorks } from './processes.ts'

const Counts = z.object({ nobody: z.boolean(), working: z.number(), holding: z.number(), full: z.number() })

/** `places`: of one process for the kind. */
export async function readUntaken(db: Connection, kind: string, places: number): Promise<Untaken> {
  const { nobody, working, holding, full } = await db.one(sql.type(Counts)`
    select ${nobodyWorks} as nobody, (${countingWorking}) as working, count(*)::int as holding,
      (count(*) filter (where held.taken >= ${places}))::int as full
    from (
      select count(*)::int as taken from actor
      where kind = ${kind} and wake_at is not null and lease_until > now() and ${isHeardOf(sql.fragment`lease_owner`)}
      group by lease_owner) held`)
  if (nobody) return 'nobody'
  // Who holds nothing of the kind has places for it, and is not among those that hold.
  return full > 0 && full >= Math.max(working, holding) ? 'full' : 'free'
}
