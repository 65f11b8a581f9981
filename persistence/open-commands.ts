/**
 * Commands that are not over yet, as far as somebody looks for them: the ends of one query's thread, for who lists their own
 * (sends-under-way.ts) and who counts others' (agent-troubles.ts). Does not know which of them are wanted, or who asks.
 */
import { sql, type FragmentSqlToken } from 'slonik'

export interface OpenSearch {
  readonly organizationId: string
  /** Only those to this agent; null: to any. */
  readonly agentId: string | null
  /** Looked at are so many open commands, to this agent if one is asked for: the newest. */
  readonly searched: number
  /** And these among so many to all agents. */
  readonly passed: number
}

/**
 * Two tables for `with`. Open commands are the live actors of their kind, whose ids grow with time and whose lane is their agent:
 * read by the primary key from the newest on, and each one's row by its own (`asked`). No index knows a command's status (migration 11).
 */
export function newestAsked({ organizationId, agentId, searched, passed }: OpenSearch): FragmentSqlToken {
  return sql.fragment`
    newest as materialized (
      select id, lane from actor where kind = 'command' and organization_id = ${organizationId}
      order by id desc limit ${agentId === null ? searched : passed}
    ), asked as materialized (
      select id from newest where ${agentId === null ? sql.fragment`true` : sql.fragment`lane = ${agentId}`}
      order by id desc limit ${searched}
    )`
}

/** Whether either bound was reached, so that there may be older ones. */
export const boundReached = ({ agentId, searched, passed }: OpenSearch): FragmentSqlToken => sql.fragment`
  ((select count(*) from asked) >= ${searched} or (select count(*) from newest) >= ${agentId === null ? searched : passed})`

/**
 * For `from`: `open`, the columns of `command c` of those that were looked at, are open still and are wanted. The limit inside `lateral`
 * is no limit, for a key has one row: without it the planner, who takes a sixth of the commands for open, walked through all that
 * ever were.
 */
export const askedCommands = (columns: FragmentSqlToken, wanted: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  asked join lateral (
    select ${columns} from command c
    where c.id = asked.id and c.status in ('pending', 'dispatching') and ${wanted} limit 1) open on true`
