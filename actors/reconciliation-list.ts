/**
 * One page of an agent's list of tasks. Owns the request, its bounds and what an agent without a list looks like. Parsed on
 * the main thread, and so bounded at 2 MiB: fifty tasks without artifacts are a few kilobytes. Commits nothing.
 */
import { decodeResponse, encodeRequest, type AgentError } from '../a2a/client.ts'
import { saysNotOffered, unroutedStatuses } from '../a2a/errors.ts'
import type { Params } from '../a2a/operations.ts'
import { WireError } from '../a2a/wire.ts'
import type { Task, TaskPage } from '../a2a/messages.ts'
import { stateSaid } from '../domain/task.ts'
import type { UnfinishedTask } from '../persistence/reconciliation.ts'
import { plainWords, errorWords } from './agent-words.ts'
import { encoded, isAnswer, type AgentLine, type LineTools, type LookOptions } from './task-line.ts'

/**
 * `unsupported`: the agent has no list. `unread`: no answer, or none that could be read; `message` is safe to show, `oversized`
 * says that the page was larger than what is read of one.
 */
export type PageLook =
  | { readonly kind: 'page'; readonly page: TaskPage }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'unread'; readonly answered: boolean; readonly message: string; readonly oversized?: true }

const pageLimits = { maxBytes: 2 * 1024 * 1024, connection: 'kept' } as const

export async function readPage(
  tools: Pick<LineTools, 'door' | 'newToken'>,
  line: AgentLine,
  params: Params['list'],
  signal: AbortSignal,
  { deadlineMs, heard }: Pick<LookOptions, 'deadlineMs' | 'heard'>,
): Promise<PageLook> {
  // The operation came with 1.0.
  if (line.endpoint.version === '0.3') return { kind: 'unsupported' }
  const requestId = tools.newToken()
  const request = encoded(() =>
    encodeRequest(line.endpoint, 'list', params, { requestId, extensions: line.extensions }),
  )
  if (request instanceof WireError) return { kind: 'unread', answered: true, message: plainWords(request.message) }
  const sent = await tools.door.exchange(line.agentId, request, { ...pageLimits, deadlineMs }, signal)
  heard?.(isAnswer(sent))
  if (sent.kind !== 'answered') {
    // A page that is too large is the agent's answer all the same: it is there, and its tasks can be asked for one by one.
    const oversized = isAnswer(sent)
    return { kind: 'unread', answered: oversized, message: sent.message, ...(oversized ? { oversized } : {}) }
  }
  const { status, contentType } = sent
  const body = new TextDecoder().decode(sent.body)
  const answer = guarded(() => decodeResponse(line.endpoint, 'list', { status, contentType, body }, requestId))
  if (answer === null) return { kind: 'unread', answered: true, message: 'The list could not be read.' }
  if (answer.kind === 'ok') return { kind: 'page', page: answer.value }
  if (answer.kind === 'invalid') return { kind: 'unread', answered: true, message: plainWords(answer.message) }
  if (hasNoList(answer.error)) return { kind: 'unsupported' }
  return { kind: 'unread', answered: true, message: errorWords(answer.error) }
}

const hasNoList = (error: AgentError): boolean => saysNotOffered(error) || unroutedStatuses.has(error.httpStatus)

/** Null where an agent nested its words deeper than our stack is: that is the agent's doing, and costs this answer only. */
export function guarded<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** Whether a list tells of a task what is not known of it. */
export function isNews({ status }: Task, known: UnfinishedTask): boolean {
  const state = stateSaid(status.state)
  if (state !== known.state && state !== 'TASK_STATE_UNSPECIFIED') return true
  const listedMs = Date.parse(status.timestamp ?? '')
  return known.stateAt !== null && listedMs > Date.parse(known.stateAt)
}
