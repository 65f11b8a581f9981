/**
 * Who a command is presumed to be sent by, held against what is there in the exchange that accepts it: the session, the
 * membership and its role as they are now, and a place in the person's window. A transaction of its own goes before the commit's:
 * a window's row is locked for a statement, and not until a commit is on disk. What stands is told to the statement behind it by a
 * setting of the session, by the commands' own ids. Does not own sessions (sessions.ts), windows (rate-limits.ts) or commands.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { Connection } from './connection.ts'
import { addPlaces, presentWindow } from './rate-limits.ts'
import { isGood, type GoodSessions } from './sessions.ts'

export interface Presumption {
  readonly viewer: Viewer
  /** By which they came, and which ones are good; null: nobody signs in here. */
  readonly session: { readonly tokenHash: string; readonly good: GoodSessions } | null
  /** In which they are counted, and its places in each window. */
  readonly bucket: string
  readonly limit: number
}

/** A command by its id, and what it presumes. */
export interface Presumed extends Presumption {
  readonly id: string
}

const Standing = z.object({ ids: z.string() })

/**
 * Takes a place for each whose session and membership are as presumed, and returns the ids of those that had one: earlier ids
 * first. Rows of windows are locked in the order of their names, as by takePlaces.
 */
export async function holdPresumptions(
  db: Pick<Connection, 'any'>,
  presumed: readonly Presumed[],
): Promise<ReadonlySet<string>> {
  const [row] = await db.any(sql.type(Standing)`
    with asked as (
      select * from ${sql.unnest(
        presumed.map(({ id, viewer, session, bucket, limit }) => {
          const good = session?.good
          const asKnown = [session?.tokenHash ?? null, viewer.membershipId, viewer.role]
          return [id, bucket, limit, ...asKnown, good?.slug ?? null, good?.at ?? null, good?.idleSince ?? null]
        }),
        ['uuid', 'text', 'int4', 'text', 'uuid', 'text', 'text', 'timestamptz', 'timestamptz'],
      )} as q(id, bucket, places, token_hash, membership_id, role, slug, at, idle_since)
    ), known as (
      select q.id, q.bucket, q.places, row_number() over (partition by q.bucket order by q.id) as nth,
        count(*) over (partition by q.bucket) as wanted
      from asked q where q.token_hash is null or exists (
        select from session s join membership m on m.id = s.membership_id join organization o on o.id = m.organization_id
        where s.token_hash = q.token_hash and m.id = q.membership_id and m.role = q.role
          and ${isGood({ slug: sql.fragment`q.slug`, at: sql.fragment`q.at`, idleSince: sql.fragment`q.idle_since` })})
    ), counted as (
      insert into rate_window as w (bucket, starts_at, taken)
      select bucket, ${presentWindow}, count(*) from known group by bucket order by bucket
      ${addPlaces}
      returning bucket, taken
    )
    select set_config('signalbox.standing', coalesce(string_agg(k.id::text, ' '), ''), false) as ids
    from known k join counted c on c.bucket = k.bucket where c.taken - k.wanted + k.nth <= k.places`)
  return new Set(row?.ids.split(' ').filter((id) => id !== '') ?? [])
}

/** Of `q(id, presumes)`: it presumes nothing, or what it presumes was found to stand in the same exchange. */
export const stands = sql.fragment`
  (not q.presumes or q.id::text = any(string_to_array(current_setting('signalbox.standing', true), ' ')))`
