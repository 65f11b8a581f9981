/**
 * What the processes on this database last said of themselves, a row each. Only told and read: nobody decides by it who lives
 * (leases.ts does). Does not know what is said (domain/queue.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import { silentAfterMs } from '../domain/patience.ts'
import { SupervisorAnswer, type ToldProcess } from '../domain/queue.ts'
import type { Connection } from './connection.ts'

/** More than anybody reads; the others are those not heard of for longest. */
const processesShown = 100
/** A process that ended without a word is shown for so long, and then forgotten. */
const shownFor = sql.fragment`interval '10 minutes'`

const Row = z.object({ owner: z.string(), firstSeenAt: z.string(), seenAt: z.string(), told: z.unknown() })

/** When it was first heard of stays as it is: who is told again was there before. */
export async function tellOfProcess(db: Connection, owner: string, told: SupervisorAnswer): Promise<void> {
  await db.query(sql.unsafe`
    insert into process (owner, seen_at, told) values (${owner}, now(), ${sql.jsonb(told)})
    on conflict (owner) do update set seen_at = excluded.seen_at, told = excluded.told`)
}

/** Where there is nobody to tell: resolves once the database has answered. */
export async function awaitAnswer(db: Connection): Promise<void> {
  await db.query(sql.unsafe`select 1`)
}

/** At a clean end: whoever leaves is not missed. */
export async function forgetProcess(db: Connection, owner: string): Promise<void> {
  await db.query(sql.unsafe`delete from process where owner = ${owner}`)
}

/** Those that ended without a word. */
export async function forgetSilentProcesses(db: Connection): Promise<void> {
  await db.query(sql.unsafe`delete from process where seen_at < now() - ${shownFor}`)
}

/** By name. What a process of another release says in a way that we do not know is left out, and that it lives is not. */
export async function readProcesses(db: Connection): Promise<Omit<ToldProcess, 'holds'>[]> {
  const rows = await db.any(sql.type(Row)`
    select owner, first_seen_at as "firstSeenAt", seen_at as "seenAt", told from process
    where seen_at >= now() - ${shownFor} order by seen_at desc limit ${processesShown}`)
  return rows
    .map(({ told, ...row }) => ({ ...row, told: SupervisorAnswer.safeParse(told).data ?? null }))
    .toSorted((a, b) => a.owner.localeCompare(b.owner))
}

/** Of the name of a process in a lease: it is not silent, as far as processes tell of themselves. Null where nobody is named. */
export const isHeardOf = (owner: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  (${owner} not in (select p.owner from process p where p.seen_at <= now() - ${silentAfterMs} * interval '1 millisecond'))`

const Count = z.object({ count: z.number() })

/** Of `process p`: it works, or is of another release whose words are not known, and was heard of lately. */
const isWorking = sql.fragment`(p.seen_at > now() - ${silentAfterMs} * interval '1 millisecond'
  and coalesce(p.told->'process'->>'works', 'true') = 'true'
  and coalesce(jsonb_exists_any(p.told->'supervisor'->'value', array['starting', 'running']), true))`

/** Those that work, and were heard of lately, by their names. The only one that there can be tells nobody. */
export const working: FragmentSqlToken = sql.fragment`select p.owner from process p where ${isWorking}`
export const countWorking = (db: Connection): Promise<number> =>
  db.oneFirst(sql.type(Count)`select count(*)::int from (${working}) p`)

/**
 * Processes tell of themselves, and none of them works: what is due waits until one does. A worker of an early release tells nothing of
 * itself; its leases do. It is one answer for a whole statement.
 */
export const nobodyWorks: FragmentSqlToken = sql.fragment`
  (exists (select 1 from process) and not exists (select 1 from process p where ${isWorking})
    and not exists (
      select 1 from actor l where l.wake_at is not null and l.lease_until > now()
        and not exists (select 1 from process p where p.owner = l.lease_owner)))`

const Seen = z.object({ seenAt: z.string() })

/** When a process last told of itself; null where it is not known, as of one that left, or of the only one that there can be. */
export async function readSeenAt(db: Connection, owner: string | null): Promise<string | null> {
  if (owner === null) return null
  return db.maybeOneFirst(sql.type(Seen)`select seen_at as "seenAt" from process where owner = ${owner}`)
}
