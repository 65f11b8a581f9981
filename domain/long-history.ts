/**
 * An answer with a long history, as several events: one that shows a hundred thousand messages would keep the process, and an embedded
 * database, from all else for seconds. Each piece is an event of its own that says nothing but its messages, so that whoever folds, keeps
 * and rebuilds it needs to know of no other. Pure; does not tell them (actors/long-history.ts).
 */
import type { Message, StreamResponse, Task } from '../a2a/messages.ts'

/** Messages of one piece: looking them up and keeping them takes an embedded database some 50 ms. */
export const pieceMessages = 2_000
/**
 * With so many of the next: what was missed stands before the next message that is known (message-order.ts). Of more that were missed behind
 * the end of a piece, and before others that are known, those of the piece are shown last.
 */
export const lookAhead = 250

export interface Pieces {
  /** In the order in which they are to be told. */
  readonly ahead: readonly StreamResponse[]
  /** All that is not history. Of that the last words, by which it is no bare state. */
  readonly last: StreamResponse
}

/** Null for an event that is short enough. */
export function piecesOf(event: StreamResponse): Pieces | null {
  if (!('task' in event)) return null
  const { task } = event
  const { history = [] } = task
  if (history.length <= pieceMessages) return null
  const ahead: StreamResponse[] = []
  for (let from = 0, to = 0; to < history.length; from += pieceMessages) {
    to = from + pieceMessages + lookAhead
    // With the one before it, which is known by then.
    ahead.push({ task: pieceOf(task, history.slice(Math.max(0, from - 1), to), to >= history.length) })
  }
  return { ahead, last: { task: { ...task, history: history.slice(-2) } } }
}

/** The newest piece has the words of its status, before which may stand what was missed; none has the state, which is told behind them all. */
const pieceOf = ({ id, contextId, status }: Task, history: Message[], isNewest: boolean): Task => ({
  id,
  ...(contextId === undefined ? {} : { contextId }),
  status: { ...(isNewest ? status : {}), state: 'TASK_STATE_UNSPECIFIED' },
  history,
})
