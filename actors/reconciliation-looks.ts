/**
 * One look of reconciliation at one task, and what becomes of the answer: it is committed by the same door as a stream's events, unless
 * it was folded in before. Does not decide which tasks are looked at (reconciliation.ts, reconciliation-healing.ts) or what an answer
 * changes (observe.ts).
 */
import { isTerminal } from '../domain/task.ts'
import { taskForgotten } from '../domain/unread-agent.ts'
import { forgetLost, type UnfinishedTask } from '../persistence/reconciliation.ts'
import { textDigest } from '../persistence/text-digest.ts'
import { errorWords, plainWords } from './agent-words.ts'
import { FoldedAnswers } from './folded-answers.ts'
import type { Held } from './loop/kinds.ts'
import type { Turn } from './reconciliation-turn.ts'
import type { SecondLooks } from './second-looks.ts'
import { commitSeen, lookAt, type AgentLine, type LineTools } from './task-line.ts'
import type { SeenEvent } from './threads/messages.ts'

export interface TaskLookTools extends LineTools {
  readonly secondLooks: SecondLooks
}

/**
 * `silent`: no answer. `unusable`: an answer that says nothing about the task. `lost`: asking again soon cannot help, for the
 * agent does not know it, or it is larger than what may be read: 25 MB every fifteen seconds would be read for nothing.
 */
export type Seen =
  | { readonly kind: 'seen' }
  | { readonly kind: 'unusable' | 'silent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string; readonly oversized: boolean }

export class TaskLooks {
  readonly #t: TaskLookTools
  readonly #answers = new FoldedAnswers()

  constructor(tools: TaskLookTools) {
    this.#t = tools
  }

  async askFor(turn: Turn, line: AgentLine, task: UnfinishedTask, held: Held): Promise<Seen> {
    const keep = async (event: SeenEvent): Promise<void> => {
      if (task.isLost) await forgetLost(this.#t.db.pool, task.id)
      await this.commit(line, task, event, held)
    }
    const look = await lookAt(this.#t, line, task.remoteId, held.signal, { ...turn.question(), keep })
    if (look.kind === 'unread' && look.oversized)
      return { kind: 'lost', reason: plainWords(look.message), oversized: true }
    if (look.kind === 'unread') return { kind: look.answered ? 'unusable' : 'silent', reason: plainWords(look.message) }
    if (look.kind === 'refused') {
      if (look.error.reason === 'TASK_NOT_FOUND') return { kind: 'lost', reason: taskForgotten, oversized: false }
      return { kind: 'unusable', reason: errorWords(look.error) }
    }
    return { kind: 'seen' }
  }

  /** Unless it changes nothing. */
  async commit(line: AgentLine, task: UnfinishedTask, event: SeenEvent, held: Held) {
    const digest = event.digest ?? textDigest(event.observation.event)
    const overrules = this.#t.secondLooks.overruled(task, event.observation)
    const { isGivenUp: isSeenAgain } = task
    if (overrules === null && !isSeenAgain && this.#answers.has(task.id, task.version, digest)) return
    const of = { ...line, remoteId: task.remoteId }
    await commitSeen(this.#t, of, 'poll', [event], held, { asked: task.version, overrules, isSeenAgain })
    const { status } = event.observation
    if (status && isTerminal(status.state)) this.#answers.forget(task.id)
    else this.#answers.add(task.id, task.version, digest)
  }
}
