/**
 * ListTasks over tasks in memory: filter, order, page. Owns the cursor, which names the last task shown, so that a page
 * never repeats one although tasks change between pages. Does not own the tasks (tasks.ts).
 */
import type { Params } from '../../a2a/operations.ts'
import { Declined } from '../../a2a/server-errors.ts'
import type { Task, TaskPage } from '../../a2a/messages.ts'

const usualPageSize = 50

/** Newest status first, as A2A wants [specification 3.1.4]. Throws Declined for a cursor that is not ours. */
export function listTasks(all: readonly Task[], asked: Params['list']): TaskPage {
  const matching = all.filter((task) => matches(task, asked)).sort((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1))
  const after = asked.pageToken === undefined ? undefined : decodeCursor(asked.pageToken)
  const rest = after === undefined ? matching : matching.filter((task) => keyOf(task) < after)
  const pageSize = asked.pageSize ?? usualPageSize
  const shown = rest.slice(0, pageSize)
  const last = shown.at(-1)
  return {
    tasks: shown.map((task) => trimmed(task, asked)),
    nextPageToken: last && rest.length > shown.length ? Buffer.from(keyOf(last)).toString('base64url') : '',
    pageSize,
    totalSize: matching.length,
  }
}

/** A task with as much history as was asked for: unset all, 0 none, n the newest n. */
export function withHistory(task: Task, historyLength: number | undefined): Task {
  if (historyLength === undefined || !task.history) return task
  const { history, ...rest } = task
  return historyLength === 0 ? rest : { ...rest, history: history.slice(-historyLength) }
}

function matches(task: Task, { contextId, status, statusTimestampAfter }: Params['list']): boolean {
  if (contextId !== undefined && task.contextId !== contextId) return false
  if (status !== undefined && task.status.state !== status) return false
  return statusTimestampAfter === undefined || (task.status.timestamp ?? '') >= statusTimestampAfter
}

function trimmed(task: Task, asked: Params['list']): Task {
  // A list is for finding; the history of fifty tasks is not what was asked for unless it was.
  const { artifacts, ...rest } = withHistory(task, asked.historyLength ?? 0)
  return structuredClone(asked.includeArtifacts && artifacts ? { ...rest, artifacts } : rest)
}

/** Timestamps have one width, so text order is time order. */
const keyOf = (task: Task): string => `${task.status.timestamp ?? ''} ${task.id}`

function decodeCursor(token: string): string {
  const key = Buffer.from(token, 'base64url').toString('utf8')
  if (!/^\d{4}-\d\d-\d\dT[\d:.]{12}Z \S{1,64}$/.test(key))
    throw new Declined('INVALID_PARAMS', 'pageToken is not a token of this agent.')
  return key
}
