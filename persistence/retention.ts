/**
 * Forgets what is only diagnostics and signals: facts that everybody has heard, logs of actors that were archived long ago.
 * Bounded passes; the triggers of migration 4 see that nothing younger than a day goes. Tasks, their events and the audit are
 * not touched. Does not decide when, or how old is old (actors/housekeeping.ts).
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Connection, Database } from './database.ts'

/** A pass of 2,000 rows holds its locks some 30 ms, and the one session of an embedded database for as long. */
const factsAtOnce = 2_000
const actorsAtOnce = 200
/** Whoever looks for news begins at the last number it saw and finds it by its batch (freshness.ts): the end always stays. */
const factsKept = 1_000

/** Of the transaction alone: what admits a deletion to the guards, together with age. */
const admitted = sql.unsafe`select set_config('signalbox.retention', 'on', true)`

export interface ForgottenFacts {
  readonly facts: number
  /** Where the next pass begins; null when no more is old enough. */
  readonly next: number | null
}

/**
 * Deletes old facts among the first behind a number. Their order is that of their numbers, and that of their times but for
 * the clocks of several processes: a pass that finds nothing old is taken for the end.
 */
export async function forgetFacts(db: Database['pool'], before: string, after: number): Promise<ForgottenFacts> {
  return db.transaction(async (tx) => {
    await tx.query(admitted)
    const pass = await tx.one(sql.type(z.object({ seen: z.number(), facts: z.number(), last: z.number().nullable() }))`
      with oldest as (
        select number, at from fact
        where number > ${after} and number <= (select max(number) - ${factsKept} from fact)
        order by number limit ${factsAtOnce}
      ), gone as (
        delete from fact f using oldest o where f.number = o.number and o.at < ${before} returning 1
      )
      select (select count(*)::int from oldest) as seen, (select count(*)::int from gone) as facts,
        (select max(number) from oldest) as last`)
    return { facts: pass.facts, next: pass.facts > 0 && pass.seen === factsAtOnce ? pass.last : null }
  })
}

export interface ForgottenActors {
  readonly actors: number
  readonly entries: number
  /** Whether there may be more. */
  readonly more: boolean
}

const nothing: ForgottenActors = { actors: 0, entries: 0, more: false }

/**
 * Deletes the logs of actors that were archived before an instant, and the archived rows themselves of `bornOnce` kinds. Rows of
 * other kinds stay: they are what keeps an actor that finished from being spawned again. Goes on where the last pass came to,
 * in whatever process; while another is at it, this one does nothing.
 */
export async function forgetActors(
  db: Database['pool'],
  organizationId: string,
  before: string,
  bornOnce: readonly string[],
): Promise<ForgottenActors> {
  return db.transaction(async (tx) => {
    const held = await tx.maybeOne(sql.type(
      z.object({ archivedAt: z.string(), actorId: z.string(), kind: z.string() }),
    )`
      select archived_at as "archivedAt", actor_id as "actorId", kind from retention_mark
      where organization_id = ${organizationId} for update skip locked`)
    if (!held) return nothing
    await tx.query(admitted)
    const pass = await tx.one(sql.type(z.object({ actors: z.number(), entries: z.number() }))`
      with old as (
        select kind, id, updated_at from actor_archive
        where organization_id = ${organizationId} and updated_at < ${before}
          and (updated_at, id, kind) > (${held.archivedAt}::timestamptz, ${held.actorId}::uuid, ${held.kind})
        order by updated_at, id, kind limit ${actorsAtOnce}
      ), entries as (
        delete from actor_log l using old o where l.actor_id = o.id and l.kind = o.kind returning 1
      ), rows as (
        delete from actor_archive a using old o
        where o.kind = any(${sql.array([...bornOnce], 'text')}) and a.kind = o.kind and a.id = o.id
      ), marked as (
        update retention_mark m set archived_at = last.updated_at, actor_id = last.id, kind = last.kind
        from (select * from old order by updated_at desc, id desc, kind desc limit 1) last
        where m.organization_id = ${organizationId}
      )
      select (select count(*)::int from old) as actors, (select count(*)::int from entries) as entries`)
    return { ...pass, more: pass.actors === actorsAtOnce }
  })
}

/** Organizations with a mark each, made where one is missing. */
export async function markedOrganizations(db: Connection): Promise<readonly string[]> {
  await db.query(sql.unsafe`
    insert into retention_mark (organization_id, archived_at, actor_id, kind)
    select id, 'epoch', '00000000-0000-0000-0000-000000000000', '' from organization
    on conflict (organization_id) do nothing`)
  return db.anyFirst(sql.type(z.object({ id: z.string() }))`
    select organization_id as id from retention_mark order by organization_id`)
}
