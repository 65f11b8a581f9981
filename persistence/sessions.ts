/**
 * Sessions of people who signed in, by the SHA-256 of what their browser holds. Whoever asks who somebody is gets the
 * membership as it is now: nothing of a role or of a disabled membership is kept in a session. Does not own how a session
 * comes about (sign-in.ts) or how long one may last (actors/sessions.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import { Role, type Permission, type Viewer } from '../domain/access.ts'
import type { Connection } from './connection.ts'
import { addPlaces, grantedOf, isPresent, presentWindow } from './rate-limits.ts'

export interface SessionRow {
  readonly tokenHash: string
  readonly id: string
  readonly membershipId: string
  readonly createdAt: string
  readonly expiresAt: string
}

export async function insertSession(tx: Connection, session: SessionRow): Promise<void> {
  await tx.query(sql.unsafe`
    insert into session (token_hash, id, membership_id, created_at, seen_at, expires_at)
    values (${session.tokenHash}, ${session.id}, ${session.membershipId}, ${session.createdAt}, ${session.createdAt},
      ${session.expiresAt})`)
}

const EndedSession = z.object({
  id: z.string(),
  organizationId: z.string(),
  personId: z.string(),
  membershipId: z.string(),
  isAlive: z.boolean(),
})
export type EndedSession = z.infer<typeof EndedSession>

/** Deletes a session, and says whose it was and whether it had still been good at that time; null where there is none. */
export async function deleteSession(tx: Connection, tokenHash: string, at: string): Promise<EndedSession | null> {
  return tx.maybeOne(sql.type(EndedSession)`
    delete from session s using membership m where s.token_hash = ${tokenHash} and m.id = s.membership_id
    returning s.id, m.organization_id as "organizationId", m.person_id as "personId", m.id as "membershipId",
      s.expires_at > ${at} as "isAlive"`)
}

/** Deletes all sessions of a membership; returns how many. */
export async function deleteSessionsOf(tx: Connection, membershipId: string): Promise<number> {
  const { rowCount } = await tx.query(sql.unsafe`delete from session where membership_id = ${membershipId}`)
  return rowCount
}

/** Which sessions are good: not over, and of an enabled membership of the organization that this deployment serves. */
export interface GoodSessions {
  readonly slug: string
  readonly at: string
  /** A session that nobody used since is over; null: none is over for that. */
  readonly idleSince: string | null
}

const Person = z.object({
  organizationId: z.string(),
  userId: z.string(),
  membershipId: z.string(),
  role: Role,
  displayName: z.string(),
})
const personColumns = sql.fragment`
  m.organization_id as "organizationId", p.id as "userId", m.id as "membershipId", m.role, p.display_name as "displayName"`
const withPerson = sql.fragment`
  join membership m on m.id = s.membership_id join person p on p.id = m.person_id
  join organization o on o.id = m.organization_id`
/** Of `session s`, `membership m` and `organization o`; the rules as values, or as columns of the same statement. */
export const isGood = ({
  slug,
  at,
  idleSince,
}: { readonly [Rule in keyof GoodSessions]: GoodSessions[Rule] | FragmentSqlToken }) => sql.fragment`
  s.expires_at > ${at} and m.enabled and o.slug = ${slug}
  and (${idleSince}::timestamptz is null or s.seen_at > ${idleSince})`

/** The people of those sessions that are good now, by the hashes of their tokens. */
export async function findSessions(
  db: Connection,
  tokenHashes: readonly string[],
  good: GoodSessions,
): Promise<ReadonlyMap<string, Viewer>> {
  const rows = await db.any(sql.type(z.object({ ...Person.shape, tokenHash: z.string() }))`
    select s.token_hash as "tokenHash", ${personColumns} from session s ${withPerson}
    where s.token_hash = any(${sql.array([...tokenHashes], 'text')}) and ${isGood(good)}`)
  return new Map(rows.map(({ tokenHash, ...viewer }) => [tokenHash, viewer]))
}

/** Requests that have come at once by one session. `roles`: who may do what they ask for. `limit`: places in each window. */
export interface Arrivals {
  readonly tokenHash: string
  readonly permission: Permission
  readonly roles: readonly Role[]
  readonly wanted: number
  readonly limit: number
}

export interface MetPerson {
  readonly viewer: Viewer
  /** How many of the wanted places there were. */
  readonly granted: number
}

const Met = z.object({
  ...Person.shape,
  tokenHash: z.string(),
  permission: z.string(),
  bucket: z.string(),
  /** By everybody in this window; null: nobody was counted, for they may not, or the window was full. */
  taken: z.number().nullable(),
})

/**
 * Who comes, and whether they have places: one statement, since each request waits for it. Answers in the order of the arrivals;
 * null where the session is not good. Who may not is not counted, nor who has no place left: of those who ask here, a flood beyond the
 * limit writes nothing. `seenBefore`: a session last seen before it is noted as in use; null: nobody wants to know.
 *
 * Rows of windows are locked in the order of their names, as by takePlaces; of sessions only those that nobody else has locked.
 */
export async function meetArrivals(
  db: Pick<Connection, 'any'>,
  arrivals: readonly Arrivals[],
  good: GoodSessions,
  seenBefore: string | null,
): Promise<readonly (MetPerson | null)[]> {
  const asked = arrivals.map(({ tokenHash, permission, roles, wanted, limit }) => {
    return [tokenHash, permission, roles.join(' '), wanted, limit]
  })
  const noted = sql.fragment`, noted as (
      update session set seen_at = ${good.at} where token_hash in (
        select s.token_hash from session s join known k on k."tokenHash" = s.token_hash
        where s.seen_at <= ${seenBefore} for update of s skip locked))`
  const rows = await db.any(sql.type(Met)`
    with known as (
      select a.token_hash as "tokenHash", a.permission, a.wanted, a.places, a.permission || '/' || p.id as bucket,
        m.role = any(string_to_array(a.roles, ' ')) as may, ${personColumns}
      from ${sql.unnest(asked, ['text', 'text', 'text', 'int4', 'int4'])} as a(token_hash, permission, roles, wanted, places)
      join session s on s.token_hash = a.token_hash ${withPerson} where ${isGood(good)}
    ), counted as (
      insert into rate_window as w (bucket, starts_at, taken)
      select bucket, ${presentWindow}, sum(wanted) from known k
      where may and not exists (
        select from rate_window f where f.bucket = k.bucket and ${isPresent(sql.fragment`f.starts_at`)} and f.taken >= k.places)
      group by bucket order by bucket
      ${addPlaces}
      returning bucket, taken
    )${seenBefore === null ? sql.fragment`` : noted}
    select k.*, c.taken from known k left join counted c on c.bucket = k.bucket`)
  return shared(arrivals, rows)
}

/** One person may come by two sessions at once, whose places are the same ones: first come, first served. */
function shared(arrivals: readonly Arrivals[], rows: readonly z.infer<typeof Met>[]): readonly (MetPerson | null)[] {
  const byArrival = new Map(rows.map((row) => [`${row.permission} ${row.tokenHash}`, row]))
  const found = arrivals.map(({ permission, tokenHash }) => byArrival.get(`${permission} ${tokenHash}`) ?? null)
  const wanted = new Map<string, number>()
  for (const [i, row] of found.entries())
    if (row) wanted.set(row.bucket, (wanted.get(row.bucket) ?? 0) + (arrivals[i]?.wanted ?? 0))
  const free = new Map<string, number>()
  return arrivals.map((arrival, i) => {
    const row = found[i]
    if (!row) return null
    const { tokenHash: _token, permission: _permission, bucket, taken, ...viewer } = row
    const together = { wanted: wanted.get(bucket) ?? 0, limit: arrival.limit }
    const left = free.get(bucket) ?? (taken === null ? 0 : grantedOf(together, taken))
    const granted = Math.min(arrival.wanted, left)
    free.set(bucket, left - granted)
    return { viewer, granted }
  })
}

/** Rows in one pass: a few milliseconds. What is left over is for the next round. */
const forgottenAtOnce = 1_000

/** Forgets sessions whose time is over. They are refused long before. */
export async function forgetSessions(db: Connection, at: string): Promise<void> {
  await db.query(sql.unsafe`
    delete from session where token_hash in (
      select token_hash from session where expires_at <= ${at} order by expires_at limit ${forgottenAtOnce}
      for update skip locked)`)
}
