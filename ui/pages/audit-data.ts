/** What the audit page asks for: its filters, as the address and as the API name them. */
import { AuditAnswer, auditGroups, ChainAnswer, type AuditGroup } from '../../domain/audit.ts'
import type { Api } from '../api.ts'
import type { Question } from '../queries.ts'

/** Empty strings filter nothing. `since` and `until` are days of the reader's own calendar, YYYY-MM-DD. */
export interface AuditFilters {
  readonly group: AuditGroup | 'all'
  readonly actor: string
  readonly since: string
  readonly until: string
  readonly taskId: string
}

export const noFilters: AuditFilters = { group: 'all', actor: '', since: '', until: '', taskId: '' }

const day = /^\d{4}-\d{2}-\d{2}$/
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** From the address; what cannot be meant filters nothing. */
export function filtersIn(query: URLSearchParams | undefined): AuditFilters {
  const value = (name: string, form: RegExp): string => {
    const given = query?.get(name) ?? ''
    return form.test(given) ? given : ''
  }
  return {
    group: auditGroups.find((group) => group === query?.get('group')) ?? 'all',
    actor: value('actor', uuid),
    since: value('since', day),
    until: value('until', day),
    taskId: value('task', uuid),
  }
}

/** For the address; '' where nothing is filtered. */
export function queryOf({ group, actor, since, until, taskId }: AuditFilters): string {
  const query = new URLSearchParams()
  if (group !== 'all') query.set('group', group)
  for (const [name, value] of Object.entries({ actor, since, until, task: taskId })) if (value) query.set(name, value)
  return query.toString()
}

/** A day begins and ends by the reader's clock; the API takes instants, both ends included. */
function apiQuery({ group, actor, since, until, taskId }: AuditFilters): URLSearchParams {
  const query = new URLSearchParams()
  if (group !== 'all') query.set('group', group)
  if (actor) query.set('actor', actor)
  if (taskId) query.set('taskId', taskId)
  if (since) query.set('since', new Date(`${since}T00:00:00`).toISOString())
  if (until) query.set('until', new Date(`${until}T23:59:59.999`).toISOString())
  return query
}

export const auditPath = (filters: AuditFilters): string => `/api/audit?${apiQuery(filters).toString()}`

export function readAudit(
  api: Api,
  { cursor, ...filters }: AuditFilters & { readonly cursor: string | undefined },
  signal: AbortSignal,
): Promise<AuditAnswer> {
  const query = apiQuery(filters)
  if (cursor !== undefined) query.set('cursor', cursor)
  return api.get(`/api/audit?${query.toString()}`, AuditAnswer, signal)
}

/** A page of the CSV, 200 records. */
export function csvPath(filters: AuditFilters, cursor: string | null): string {
  const query = apiQuery(filters)
  if (cursor !== null) query.set('cursor', cursor)
  return `/api/audit/export?${query.toString()}`
}

export const chainFilePath = '/api/audit/export?format=jsonl'

export const chainQuestion: Question<ChainAnswer> = {
  path: '/api/audit/chain',
  schema: ChainAnswer,
  freshness: 'steady',
}

/** What was recorded of one task: for everybody who can read the task. */
export const taskAuditQuestion = (taskId: string): Question<AuditAnswer> => ({
  path: `/api/audit?taskId=${encodeURIComponent(taskId)}&limit=200`,
  schema: AuditAnswer,
  freshness: 'steady',
})
