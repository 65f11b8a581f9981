/**
 * Looking for a command whose outcome nobody knows: a message with our id in a task's history, or the state of a task that was
 * to be canceled. Reads only, a bounded number of pages, and decides nothing: what was seen is for a person. Does not store
 * it (persistence/evidence.ts) or choose when to look (domain/evidence.ts).
 */
import type { Task } from '../a2a/wire.ts'
import type { EvidenceLook } from '../domain/evidence.ts'
import type { Observation } from '../domain/observation.ts'
import type { SoughtCommand } from '../persistence/evidence.ts'
import { knownTasksFor } from '../persistence/reconciliation.ts'
import { readPage, refusalWords } from './reconciliation-list.ts'
import { lookAt, type AgentLine, type LineTools } from './task-line.ts'

/** `reached`: the agent gave an answer of some kind, so the next question may be asked at once. */
export interface Search {
  readonly look: EvidenceLook
  readonly reached: boolean
}

/** How a search may end besides finding its message. */
const nothingSeen = { taskId: null, taskState: null, reason: null } as const

const historyLimit = 100
const pageSize = 25
const pageHistory = 20
const pagesLimit = 4
const tasksLimit = 10
const noTask = 'The agent does not know the task.'
const noList = 'The agent cannot list its tasks, so only tasks that are known here could be looked at.'

export interface SearchTools extends LineTools {
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
}

/** Patience for one question, and for all questions about one command: a slow agent must not keep a reader for long. */
export interface Patience {
  readonly readMs: number
  readonly searchMs: number
}

export class Searching {
  readonly #t: SearchTools
  readonly #patience: Patience

  constructor(tools: SearchTools, patience: Patience) {
    this.#t = tools
    this.#patience = patience
  }

  async look(line: AgentLine, sought: SoughtCommand, signal: AbortSignal): Promise<Search> {
    if (sought.taskId === null) return this.#lookInList(line, sought, signal)
    const isCancel = sought.action === 'cancelTask'
    const seen = await this.#lookInTask(line, sought, sought.taskId, signal)
    if (!isCancel || seen.look.outcome === 'unreadable') return seen
    const canceled = seen.look.taskState === 'TASK_STATE_CANCELED'
    return { ...seen, look: { ...seen.look, outcome: canceled ? 'found' : 'absent', isWhole: true } }
  }

  async #lookInTask(line: AgentLine, sought: SoughtCommand, taskId: string, signal: AbortSignal): Promise<Search> {
    const options = { historyLength: historyLimit, deadlineMs: this.#patience.readMs }
    const look = await lookAt(this.#t, line, taskId, signal, options)
    if (look.kind === 'unread') return unreadable(look.message, look.answered, taskId)
    if (look.kind === 'refused') {
      if (look.error.reason !== 'TASK_NOT_FOUND') return unreadable(refusalWords(look.error), true, taskId)
      return { look: { ...nothingSeen, outcome: 'absent', isWhole: true, taskId, reason: noTask }, reached: true }
    }
    const { observation } = look.event
    const isThere = saidIn(observation, sought.messageId)
    return {
      look: {
        outcome: isThere ? 'found' : 'absent',
        isWhole: observation.messages.length < historyLimit,
        taskId,
        taskState: observation.status?.state ?? null,
        reason: null,
      },
      reached: true,
    }
  }

  /** The agent's newest tasks, those of the context where there is one. */
  async #lookInList(line: AgentLine, sought: SoughtCommand, signal: AbortSignal): Promise<Search> {
    const endMs = this.#t.monotonic() + this.#patience.searchMs
    const within = sought.contextId === null ? {} : { contextId: sought.contextId }
    const common = { ...within, pageSize, historyLength: pageHistory, includeArtifacts: false }
    let pageToken = ''
    for (let page = 0; page < pagesLimit && this.#t.monotonic() < endMs; page++) {
      const params = pageToken === '' ? common : { ...common, pageToken }
      const read = await readPage(this.#t, line, params, signal, this.#patience.readMs)
      if (read.kind === 'unsupported') return this.#lookInKnown(line, sought, signal, endMs)
      if (read.kind === 'unread') return unreadable(read.message, read.answered, null)
      const task = read.page.tasks.find((each) => hasMessage(each, sought.messageId))
      if (task) return found(task)
      pageToken = read.page.nextPageToken
      if (pageToken === '') return { look: { ...nothingSeen, outcome: 'absent', isWhole: true }, reached: true }
    }
    return { look: { ...nothingSeen, outcome: 'absent', isWhole: false }, reached: true }
  }

  async #lookInKnown(line: AgentLine, sought: SoughtCommand, signal: AbortSignal, endMs: number): Promise<Search> {
    const { commandId, contextId } = sought
    const known = await knownTasksFor(this.#t.db.pool, line, commandId, contextId, tasksLimit)
    for (const taskId of known) {
      if (this.#t.monotonic() >= endMs) break
      const seen = await this.#lookInTask(line, sought, taskId, signal)
      if (seen.look.outcome === 'found' || !seen.reached) return seen
    }
    const outcome = known.length === 0 ? 'unsearchable' : 'absent'
    return { look: { ...nothingSeen, outcome, isWhole: false, reason: noList }, reached: true }
  }
}

const unreadable = (reason: string, reached: boolean, taskId: string | null): Search => ({
  look: { outcome: 'unreadable', isWhole: false, taskId, taskState: null, reason },
  reached,
})

const found = (task: Task): Search => ({
  look: { outcome: 'found', isWhole: true, taskId: task.id, taskState: task.status.state, reason: null },
  reached: true,
})

/** Ours is a person's message; an agent that repeats our id in a message of its own proves as much. */
const saidIn = (observation: Observation, messageId: string): boolean =>
  observation.messages.some((message) => message.id === messageId)

const hasMessage = (task: Task, messageId: string): boolean =>
  (task.history ?? []).some((message) => message.messageId === messageId)
