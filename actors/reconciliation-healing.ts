/**
 * Heals by an agent's list: what it tells of a task that we know otherwise is read whole, because a list has no artifacts. Only known
 * tasks that are unfinished: foreign ones are ignored. Does not decide when a list is read (machines/reconciliation.ts) and asks for no
 * task by itself (reconciliation-looks.ts).
 */
import type { Task } from '../a2a/messages.ts'
import type { Params } from '../a2a/operations.ts'
import type { ListOutcome } from '../machines/reconciliation.ts'
import { unfinishedAmong, type UnfinishedTask } from '../persistence/reconciliation.ts'
import { plainWords } from './agent-words.ts'
import type { Held } from './loop/kinds.ts'
import { guarded, isNews, readPage, type PageLook } from './reconciliation-list.ts'
import type { Seen, TaskLooks } from './reconciliation-looks.ts'
import { noAnswer, type Turn } from './reconciliation-turn.ts'
import type { AgentLine, LineTools } from './task-line.ts'
import { observed } from './threads/stream-parser.ts'

const listPagesLimit = 5
const listPageSize = 50
const listHistory = 20

interface ListedPage {
  readonly params: Params['list']
  readonly tasks: readonly Task[]
}

export class Healing {
  readonly #t: LineTools
  readonly #looks: TaskLooks

  constructor(tools: LineTools, looks: TaskLooks) {
    this.#t = tools
    this.#looks = looks
  }

  async list(turn: Turn, line: AgentLine, held: Held): Promise<ListOutcome> {
    let pageToken = ''
    let unread = 0
    let read = 0
    let reason: string | null = null
    for (let page = 0; page < listPagesLimit && !turn.isOver; page++) {
      const common = { pageSize: listPageSize, historyLength: 0, includeArtifacts: false }
      const params = pageToken === '' ? common : { ...common, pageToken }
      const look = await this.#page(turn, line, params, held)
      if (look.kind === 'unsupported') return look
      if (look.kind === 'unread' && turn.isCutShort) return { kind: 'cut' }
      if (look.kind === 'unread') return { kind: 'failed', reason: look.message }
      const { tasks, unread: left, nextPageToken } = look.page
      const failed = await this.#heal(turn, line, { params, tasks }, held)
      if (failed !== null) return { kind: 'failed', reason: failed }
      read += tasks.length
      unread += left?.count ?? 0
      reason ??= left?.reason ?? null
      pageToken = nextPageToken
      if (pageToken === '') break
    }
    return read === 0 && reason !== null ? { kind: 'failed', reason: plainWords(reason) } : { kind: 'listed', unread }
  }

  #page(turn: Turn, line: AgentLine, params: Params['list'], { signal }: Held): Promise<PageLook> {
    return readPage(this.#t, line, params, signal, turn.question())
  }

  /** Null, or why the agent could not be read. */
  async #heal(turn: Turn, line: AgentLine, { params, tasks }: ListedPage, held: Held): Promise<string | null> {
    const told = new Map(tasks.map((task) => [task.id, task]))
    const unshown: UnfinishedTask[] = []
    const neverShown: UnfinishedTask[] = []
    let isSilent = false
    for (const known of await unfinishedAmong(this.#t.db.pool, turn.scope, [...told.keys()])) {
      const task = told.get(known.remoteId)
      if (!task || turn.isOver || !isNews(task, known)) continue
      // It answers for its list: what it is silent about is taken from there, and it is not waited for once more.
      const seen: Seen = isSilent
        ? { kind: 'silent', reason: noAnswer }
        : await this.#looks.askFor(turn, line, known, held)
      isSilent = seen.kind === 'silent'
      if (seen.kind !== 'seen') unshown.push(known)
      if (seen.kind === 'lost' && seen.oversized) neverShown.push(known)
    }
    // What it lists and does not show is taken from the list, but with everything made: an end without its results would
    // stay without them, because a finished task is not asked for again.
    if (unshown.length === 0 || turn.isOver) return null
    const whole = { ...params, historyLength: listHistory, includeArtifacts: true }
    const read = await this.#page(turn, line, whole, held)
    if (read.kind === 'unread' && !read.oversized) return read.message
    if (read.kind !== 'page') {
      for (const known of neverShown) await this.#takeState(line, known, told.get(known.remoteId), held)
      return null
    }
    for (const known of unshown) {
      const task = read.page.tasks.find(({ id }) => id === known.remoteId)
      const seen = task ? guarded(() => observed({ task })) : null
      if (seen) await this.#looks.commit(line, known, { kind: 'observation', ...seen }, held)
    }
    return null
  }

  /** Of what is too large to be read in any way its list's word is all that will ever be known: that it ended, not what it made. */
  async #takeState(line: AgentLine, known: UnfinishedTask, task: Task | undefined, held: Held): Promise<void> {
    const { status, contextId } = task ?? {}
    if (!status) return
    const of = { taskId: known.remoteId, ...(contextId === undefined ? {} : { contextId }) }
    const seen = guarded(() => observed({ statusUpdate: { ...of, status } }))
    if (seen) await this.#looks.commit(line, known, { kind: 'observation', ...seen }, held)
  }
}
