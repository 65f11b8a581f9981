/**
 * Forgets what is only diagnostics and signals: facts that everybody has heard, logs of actors that were archived long ago.
 * Bounded passes; the triggers of migration 4 see that nothing younger than a day goes. Tasks, their events and the audit are
 * not touched. Does not decide when, or how old is old (actors/housekeeping.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Database } from './database.ts'
import type { Connection } from './connection.ts'

/**
 * What a process takes for the present when it forgets: what its clock and the database's both have come to. One whose clock is ahead
 * would delete what is over for nobody else, sessions and logs of everybody.
 */
export async function agreedNow(db: Connection, now: Date): Promise<Date> {
  const at = await db.oneFirst(sql.type(z.object({ at: z.string() }))`
    select least(${now.toISOString()}::timestamptz, now()) as at`)
  return new Date(at)
}

/** A pass of 2,000 rows holds its locks some 30 ms, and the one session of an embedded database for as long. */
const factsAtOnce = 2_000
const actorsAtOnce = 200
/** So many are looked at behind a pass without any: they were told after those, by a clock that was behind theirs. */
const factsAhead = 20_000
/** Whoever looks for news begins at the last number it saw and finds it by its batch (freshness.ts): the end always stays. */
const factsKept = 1_000

/** Of the transaction alone: what admits a deletion to the guards, together with age. */
const admitted = sql.unsafe`select set_config('signalbox.retention', 'on', true)`

export interface ForgottenFacts {
  readonly facts: number
  /** Where the next pass begins; null when no more is old enough. */
  readonly next: number | null
}

const Pass = z.object({
  seen: z.number(),
  facts: z.number(),
  last: z.number().nullable(),
  isAhead: z.boolean(),
  isOldBehind: z.boolean(),
})

/**
 * Deletes old facts among the first behind a number. Their order is that of their numbers, and that of their times but for
 * the clocks of several processes: a pass that finds nothing old is taken for the end, but for one that meets the future, or has what is old
 * soon behind it. A clock that was far ahead for a while would otherwise keep all that was told after it.
 */
export async function forgetFacts(db: Database['pool'], before: string, after: number): Promise<ForgottenFacts> {
  return db.transaction(async (tx) => {
    await tx.query(admitted)
    const pass = await tx.one(sql.type(Pass)`
      with kept as (
        select max(number) - ${factsKept} as behind from fact
      ), oldest as (
        select number, at from fact
        where number > ${after} and number <= (select behind from kept)
        order by number limit ${factsAtOnce}
      ), gone as (
        delete from fact f using oldest o where f.number = o.number and o.at < ${before} returning 1
      )
      select (select count(*)::int from oldest) as seen, (select count(*)::int from gone) as facts,
        (select max(number) from oldest) as last, exists (select from oldest where at > now() + interval '1 hour') as "isAhead",
        exists (
          select from (
            select at from fact where number > (select max(number) from oldest) and number <= (select behind from kept)
            order by number limit ${factsAhead}) next
          where next.at < ${before}) as "isOldBehind"`)
    const goesOn = pass.facts > 0 || pass.isAhead || pass.isOldBehind
    return { facts: pass.facts, next: goesOn && pass.seen === factsAtOnce ? pass.last : null }
  })
}

/** Actors of one kind in one organization. */
export interface Lineage {
  readonly organizationId: string
  readonly kind: string
}

export interface ForgottenActors {
  readonly actors: number
  readonly entries: number
  /** Whether there may be more. */
  readonly more: boolean
}

const nothing: ForgottenActors = { actors: 0, entries: 0, more: false }

/**
 * Deletes the logs of actors that were archived before an instant and, where `rows` says so, their archived rows. Goes on
 * where the last pass came to, in whatever process; while another is at it, this one does nothing.
 */
export async function forgetActors(
  db: Database['pool'],
  { organizationId, kind }: Lineage,
  before: string,
  rows: 'keep rows' | 'forget rows',
): Promise<ForgottenActors> {
  return db.transaction(async (tx) => {
    const mark = await tx.maybeOne(sql.type(z.object({ archivedAt: z.string(), actorId: z.string() }))`
      select archived_at as "archivedAt", actor_id as "actorId" from retention_mark
      where organization_id = ${organizationId} and kind = ${kind} for update skip locked`)
    if (!mark) return nothing
    await tx.query(admitted)
    const pass = await tx.one(sql.type(z.object({ actors: z.number(), entries: z.number() }))`
      with old as (
        select id, updated_at from actor_archive
        where organization_id = ${organizationId} and kind = ${kind} and updated_at < ${before}
          and (updated_at, id) > (${mark.archivedAt}::timestamptz, ${mark.actorId}::uuid)
        order by updated_at, id limit ${actorsAtOnce}
      ), entries as (
        delete from actor_log l using old o where l.actor_id = o.id and l.kind = ${kind} returning 1
      ), rows as (
        delete from actor_archive a using old o where ${rows} = 'forget rows' and a.kind = ${kind} and a.id = o.id
      ), marked as (
        update retention_mark m set archived_at = last.updated_at, actor_id = last.id
        from (select * from old order by updated_at desc, id desc limit 1) last
        where m.organization_id = ${organizationId} and m.kind = ${kind}
      )
      select (select count(*)::int from old) as actors, (select count(*)::int from entries) as entries`)
    return { ...pass, more: pass.actors === actorsAtOnce }
  })
}

/** Every organization with every kind; where a mark is missing it is made. */
export async function markLineages(db: Connection, kinds: readonly string[]): Promise<readonly Lineage[]> {
  await db.query(sql.unsafe`
    insert into retention_mark (organization_id, kind, archived_at, actor_id)
    select o.id, k.kind, 'epoch', '00000000-0000-0000-0000-000000000000'
    from organization o cross join unnest(${sql.array([...kinds], 'text')}) as k(kind)
    on conflict (organization_id, kind) do nothing`)
  return db.any(sql.type(z.object({ organizationId: z.string(), kind: z.string() }))`
    select organization_id as "organizationId", kind from retention_mark order by 1, 2`)
}
