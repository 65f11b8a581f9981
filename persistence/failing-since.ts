/**
 * Since when an actor does not do well, by what its log tells. Which facts mean that is here, by kind; whether it does badly now is its
 * row's to say.
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { ActorRecord } from './actor-views.ts'
import type { Connection } from './connection.ts'

/** Steps of a log that are read for the beginning of a trouble: rounds that merely repeat are not in it. */
const stepsRead = 50

const told = {
  subscription: {
    fine: ['subscription.recovered', 'subscription.started', 'subscription.paused'],
    failing: ['subscription.failing', 'subscription.stopped'],
  },
  reconciliation: {
    fine: ['reconciliation.recovered', 'reconciliation.woken'],
    failing: ['reconciliation.failing'],
  },
} as const
type TellingKind = keyof typeof told
const tells = (kind: string): kind is TellingKind => Object.hasOwn(told, kind)

/** Of `actor a`: when it was first told to fail, since it last was told to do well. */
export const failingSince = (kind: TellingKind): FragmentSqlToken => sql.fragment`(
  with latest as (
    select l.revision, l.at, l.facts from actor_log l where l.actor_id = a.id and l.kind = a.kind
    order by l.revision desc limit ${stepsRead})
  select min(at) from latest where facts && ${sql.array([...told[kind].failing], 'text')}
    and revision > coalesce((select max(revision) from latest where facts && ${sql.array([...told[kind].fine], 'text')}), 0))`

const Since = z.object({ since: z.string().nullable() })

/** Of one that lives. Null for other kinds, for those that do well, and where its log does not go back so far. */
export async function readFailingSince(db: Connection, actor: ActorRecord): Promise<string | null> {
  const { kind, id, snapshot } = actor
  if (!tells(kind) || typeof snapshot.context['reason'] !== 'string') return null
  return db.maybeOneFirst(sql.type(Since)`
    select ${failingSince(kind)} as since from actor a where a.kind = ${kind} and a.id = ${id}`)
}
