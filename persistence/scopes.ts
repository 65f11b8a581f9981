/**
 * Which scopes, an agent's tenants, have something to reconcile although nobody does. One statement over what is true, asked
 * every few seconds: so nothing has to be told when a task is made, nothing can be forgotten (tasks of before the migration,
 * of an agent that was registered again, of a process that died in between), and accepting, delivering and folding pay
 * nothing for it. Waking a scope on the way of a command would lock its actor after others, against the order of locks. Does
 * not wake anybody (actors/reconciliation-scopes.ts).
 */
import { sql, type FragmentSqlToken } from 'slonik'
import { z } from 'zod'
import type { Connection } from './connection.ts'
import { inQuestion, isWatched } from './reconciliation.ts'

export interface UnwatchedScope {
  readonly organizationId: string
  readonly agentId: string
  readonly tenant: string
}

/** Of `actor x`: the names of scopes whose actors are awake; an actor that rests has no wake_at. */
const awake = sql.fragment`select x.lane, x.snapshot->'context'->>'tenant' from actor x
      where x.kind = 'reconciliation' and x.wake_at is not null and x.lane is not null and x.snapshot->'context' ? 'tenant'`

/**
 * Scopes of enabled agents with an unfinished task or a look for evidence that is due, whose actor rests or was never born.
 * The recursion walks `task_watched` from scope to scope, so that it costs a probe a scope, however many tasks each has.
 * An actor that is awake looks by itself; only for evidence, which a person waits for, is one called that merely pauses
 * (`callable`: JSON text of the states in which it hears). `not in`, because it is hashed: joined, 500 scopes were
 * compared with each of 1,000 actors (50 ms; hashed 15 ms, of which most is the walk).
 */
export const readUnwatched = (
  db: Connection,
  at: string,
  callable: readonly string[],
  limit: number,
): Promise<readonly UnwatchedScope[]> =>
  db.any(sql.type(z.custom<UnwatchedScope>())`${unwatchedScopes(at, callable, limit)}`)

export const unwatchedScopes = (
  at: string,
  callable: readonly string[],
  limit: number,
): FragmentSqlToken => sql.fragment`
    with recursive scope(agent_id, tenant) as (
      (select t.agent_id, t.tenant from task t where ${inQuestion} order by t.agent_id, t.tenant limit 1)
      union all
      select next.agent_id, next.tenant from scope cross join lateral (
        select t.agent_id, t.tenant from task t where ${inQuestion} and (t.agent_id, t.tenant) > (scope.agent_id, scope.tenant)
        order by t.agent_id, t.tenant limit 1) next
    ), wanted as (
      select s.agent_id, s.tenant, false as sought from scope s
      where exists (
        select 1 from task t where t.agent_id = s.agent_id and t.tenant = s.tenant and ${isWatched} offset 0)
      union
      select e.agent_id, e.tenant, true from command_evidence e where e.look_at <= ${at}
    )
    select * from (
    select distinct a.organization_id as "organizationId", w.agent_id as "agentId", w.tenant
    from wanted w join agent a on a.id = w.agent_id and a.enabled
    where case when w.sought
      then (w.agent_id, w.tenant) not in (${awake} and x.snapshot->'value' <> all(${sql.array([...callable], 'jsonb')}))
      else (w.agent_id, w.tenant) not in (${awake}) end
    ) unwatched order by random() limit ${limit}`
