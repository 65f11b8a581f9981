/**
 * Looking for commands whose outcome nobody knows: a message with our id in a task's history, or the state of a task that was
 * to be canceled. Reads only, a bounded number of pages, and decides nothing: what was seen is for a person. Does not store
 * it (persistence/evidence.ts) or choose when to look (domain/evidence.ts).
 */
import { parseCard, spokenInterfaces } from '../a2a/card.ts'
import type { Task } from '../a2a/messages.ts'
import type { EvidenceLook } from '../domain/evidence.ts'
import { readAgent, type AgentRow } from '../persistence/agents.ts'
import { readNamesakes, readNamesakesElsewhere, type SoughtCommand } from '../persistence/evidence.ts'
import { knownTasksFor } from '../persistence/reconciliation.ts'
import { isOfAnother } from '../persistence/tasks.ts'
import { plainWords, errorWords } from './agent-words.ts'
import { readPage } from './reconciliation-list.ts'
import { messageIds } from './long-history.ts'
import { lookAt, type AgentLine, type LineTools, type LookOptions } from './task-line.ts'

/** What was seen of each command, in their order. `reached`: the agent gave an answer, so it may be asked more at once. */
export interface Search {
  readonly looks: readonly EvidenceLook[]
  readonly reached: boolean
}

export interface SearchTools extends LineTools {
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
}

/** How one search asks. */
export interface Asking {
  readonly signal: AbortSignal
  /** For all its questions: a slow agent must not keep a reader for long. */
  readonly searchMs: number
  /** For each of them: how long is waited, and who is told when there is an answer. */
  readonly question: () => Pick<LookOptions, 'deadlineMs' | 'heard'>
}

const taskHistory = 100
const listHistory = 20
const pageSize = 25
const pagesLimit = 4
/** Tasks asked for one by one, where a list shows no history or there is no list. */
const tasksLimit = 10
/** Of those that a list seems to show whole, for an agent may show less there than it is asked for, and than it has. */
const samplesLimit = 3

const noTask = 'The agent does not know the task.'
const noList = 'The agent cannot list its tasks, so only tasks that are known here could be looked at.'
const sharedId = 'Another command was sent under the same message id.'
const nothing = { taskId: null, taskState: null, reason: null } as const

/** Commands that one search answers for: those about one task, or those of one context. After an agent's crash they are many. */
export function searchesFor(sought: readonly SoughtCommand[]): readonly (readonly SoughtCommand[])[] {
  const groups = Map.groupBy(sought, ({ taskId, contextId }) => JSON.stringify(taskId ?? [contextId]))
  return [...groups.values()]
}

export class Searching {
  readonly #t: SearchTools

  constructor(tools: SearchTools) {
    this.#t = tools
  }

  /** `sought`: one of `searchesFor`. */
  async look(line: AgentLine, sought: readonly SoughtCommand[], asking: Asking): Promise<Search> {
    const { looks, reached } = await this.#search(line, sought, asking)
    return { looks: await this.#withoutNamesakes(line, sought, looks), reached }
  }

  /** A message that may as well be another command's proves nothing of this one. */
  async #withoutNamesakes(
    line: AgentLine,
    sought: readonly SoughtCommand[],
    looks: readonly EvidenceLook[],
  ): Promise<readonly EvidenceLook[]> {
    const seen = sought.flatMap(({ action, commandId, messageId }, i) => {
      const look = looks[i]
      return action === 'send' && look?.outcome === 'found' ? [{ commandId, messageId, taskId: look.taskId }] : []
    })
    const { pool } = this.#t.db
    const shared = new Set(await readNamesakes(pool, line, seen))
    const others = seen.filter(({ commandId }) => !shared.has(commandId))
    const places = new Map<string, boolean>()
    for (const { commandId, agentId, isItsTask } of await readNamesakesElsewhere(pool, line, others)) {
      const isHere = isItsTask || (places.get(agentId) ?? isAt(line, await readAgent(pool, agentId)))
      if (!isItsTask) places.set(agentId, isHere)
      if (isHere) shared.add(commandId)
    }
    const unclear = { ...nothing, outcome: 'unsearchable', isWhole: false, reason: sharedId } as const
    return looks.map((look, i) => (shared.has(sought[i]?.commandId ?? '') ? unclear : look))
  }

  async #search(line: AgentLine, sought: readonly SoughtCommand[], asking: Asking): Promise<Search> {
    const [first] = sought
    if (!first) return { looks: [], reached: true }
    if (first.taskId === null) return this.#lookInList(line, sought, asking)
    const seen = await this.#readTask(line, first.taskId, asking)
    return { looks: sought.map((command) => verdictOf(command, seen)), reached: seen.reached }
  }

  async #readTask(line: AgentLine, taskId: string, asking: Asking): Promise<SeenTask> {
    const options = { historyLength: taskHistory, ...asking.question() }
    const look = await lookAt(this.#t, line, taskId, asking.signal, options)
    const unseen = { taskId, contextId: null, messages: new Set<string>(), state: null, isWhole: false }
    if (look.kind === 'unread')
      return { ...unseen, isRead: false, reached: look.answered, reason: plainWords(look.message) }
    if (look.kind === 'refused') {
      if (look.error.reason !== 'TASK_NOT_FOUND')
        return { ...unseen, isRead: false, reached: true, reason: errorWords(look.error) }
      return { ...unseen, isRead: true, reached: true, isWhole: true, reason: noTask }
    }
    const { messages, status, contextId } = look.event.observation
    return {
      taskId,
      contextId,
      messages: await messageIds(look.event),
      state: status?.state ?? null,
      isRead: true,
      reached: true,
      // An agent may show less than it is asked for, or nothing; a task begins with what a person said.
      isWhole: !look.event.long && messages.length < taskHistory && messages[0]?.role === 'user',
      reason: null,
    }
  }

  /** The agent's newest tasks, those of the context where there is one. */
  async #lookInList(line: AgentLine, sought: readonly SoughtCommand[], asking: Asking): Promise<Search> {
    const endMs = this.#t.monotonic() + asking.searchMs
    const contextId = sought[0]?.contextId ?? null
    const within = contextId === null ? {} : { contextId }
    const common = { ...within, pageSize, includeArtifacts: false }
    let historyLength = listHistory
    const findings = new Findings(sought)
    const listed: ListedTask[] = []
    let pageToken = ''
    let isWhole = false
    let seen = 0
    let unread: string | null = null
    for (let page = 0; page < pagesLimit && !findings.complete && this.#t.monotonic() < endMs; page++) {
      const params = { ...common, historyLength, ...(pageToken === '' ? {} : { pageToken }) }
      const read = await readPage(this.#t, line, params, asking.signal, asking.question())
      if (read.kind === 'unread' && read.oversized && historyLength > 0) {
        // Words of twenty-five tasks may be more than a page may hold; their names are not.
        historyLength = 0
        continue
      }
      if (read.kind === 'unsupported') return this.#lookInKnown(line, sought, asking, endMs)
      if (read.kind === 'unread')
        return { looks: findings.looks({ ...unreadable, reason: read.message }), reached: read.answered }
      for (const task of read.page.tasks) {
        findings.see(namesIn(task))
        listed.push({ id: task.id, shown: shownIn(task), isCut: historyLength === 0 || isCut(task.history) })
      }
      pageToken = read.page.nextPageToken
      seen += read.page.tasks.length
      unread ??= read.page.unread?.reason ?? null
      isWhole = pageToken === ''
      if (isWhole) break
    }
    if (seen === 0 && unread !== null)
      return { looks: findings.looks({ ...unreadable, reason: plainWords(unread) }), reached: true }
    // A list may show no history, or its end only: the newest of such tasks are read one by one, and some of the others.
    const whole = listed.filter((task) => !task.isCut)
    const cut = listed.filter((task) => task.isCut)
    const asked = [...cut.slice(0, tasksLimit), ...whole.slice(0, samplesLimit)].map(({ id }) => id)
    const each = await this.#readEach(line, asked, findings, asking, endMs)
    const isRead = ({ id }: ListedTask): boolean => each.read.get(id)?.isWhole === true
    const showsLess = whole.some(({ id, shown }) => (each.read.get(id)?.messages.size ?? 0) > shown)
    const isAll = cut.every(isRead) && (!showsLess || whole.every(isRead))
    const absent = { ...nothing, outcome: 'absent', isWhole: isWhole && unread === null && isAll } as const
    return { looks: findings.looks(absent), reached: each.reached }
  }

  async #lookInKnown(
    line: AgentLine,
    sought: readonly SoughtCommand[],
    asking: Asking,
    endMs: number,
  ): Promise<Search> {
    const findings = new Findings(sought)
    const commandIds = sought.map(({ commandId }) => commandId)
    const contextId = sought[0]?.contextId ?? null
    const known = await knownTasksFor(this.#t.db.pool, line, { commandIds, contextId }, tasksLimit)
    const { reached, failure } = await this.#readEach(line, known, findings, asking, endMs)
    if (failure !== null && !reached) return { looks: findings.looks({ ...unreadable, reason: failure }), reached }
    const outcome = known.length === 0 ? 'unsearchable' : 'absent'
    return { looks: findings.looks({ ...nothing, outcome, isWhole: false, reason: noList }), reached }
  }

  async #readEach(
    line: AgentLine,
    taskIds: readonly string[],
    findings: Findings,
    asking: Asking,
    endMs: number,
  ): Promise<{
    readonly reached: boolean
    readonly failure: string | null
    readonly read: ReadonlyMap<string, SeenTask>
  }> {
    let failure: string | null = null
    const read = new Map<string, SeenTask>()
    for (const taskId of taskIds) {
      if (findings.complete || this.#t.monotonic() >= endMs) break
      const seen = await this.#readTask(line, taskId, asking)
      if (!seen.isRead) failure = seen.reason
      if (!seen.reached) return { reached: false, failure, read }
      read.set(taskId, seen)
      findings.see(seen)
    }
    return { reached: true, failure, read }
  }
}

/** Whether a registration speaks to its agent where the line leads, by the card that it showed last. */
function isAt({ endpoint, tenant }: AgentLine, agent: Pick<AgentRow, 'card'> | null): boolean {
  const parsed = agent?.card ? parseCard(JSON.parse(agent.card)) : null
  if (!parsed || !('card' in parsed)) return false
  return spokenInterfaces(parsed.card).some(
    (each) => each.url === endpoint.url && ((tenant || each.tenant) ?? '') === (endpoint.tenant ?? ''),
  )
}

interface NamedTask {
  readonly taskId: string
  readonly contextId: string | null
  readonly messages: ReadonlySet<string>
  readonly state: string | null
}

interface SeenTask extends NamedTask {
  readonly isRead: boolean
  readonly reached: boolean
  readonly isWhole: boolean
  readonly reason: string | null
}

const unreadable = { ...nothing, outcome: 'unreadable', isWhole: false } as const

const namesIn = ({ id, contextId, history, status }: Task): NamedTask => ({
  taskId: id,
  contextId: contextId ?? null,
  messages: new Set((history ?? []).map(({ messageId }) => messageId)),
  state: status.state,
})

/** A task as a list shows it, with how many messages. */
interface ListedTask {
  readonly id: string
  readonly shown: number
  readonly isCut: boolean
}

const shownIn = ({ history = [], status: { message } }: Task): number =>
  new Set([...history, ...(message ? [message] : [])].map(({ messageId }) => messageId)).size

const isCut = (history: Task['history']): boolean =>
  history === undefined || history.length >= listHistory || history[0]?.role !== 'ROLE_USER'

/** Ours is a person's message; an agent that repeats our id in a message of its own proves as much. */
class Findings {
  readonly #sought: readonly SoughtCommand[]
  readonly #found = new Map<string, EvidenceLook>()

  constructor(sought: readonly SoughtCommand[]) {
    this.#sought = sought
  }

  get complete(): boolean {
    return this.#found.size === this.#sought.length
  }

  /** Who cannot keep to the context that a message names has to refuse it [A2A 1.0, 3.4.1]: what stands in another is another's. */
  see({ taskId, contextId, messages, state: taskState }: NamedTask): void {
    for (const { commandId, messageId, contextId: named } of this.#sought)
      if (messages.has(messageId) && !isOfAnother(contextId, named))
        this.#found.set(commandId, { outcome: 'found', isWhole: true, taskId, taskState, reason: null })
  }

  looks(otherwise: EvidenceLook): readonly EvidenceLook[] {
    return this.#sought.map(({ commandId }) => this.#found.get(commandId) ?? otherwise)
  }
}

/** What one task tells of a command that names it. */
function verdictOf({ action, messageId }: SoughtCommand, seen: SeenTask): EvidenceLook {
  const { taskId, state: taskState, reason } = seen
  if (!seen.isRead) return { ...unreadable, taskId, reason }
  const isThere = action === 'cancelTask' ? taskState === 'TASK_STATE_CANCELED' : seen.messages.has(messageId)
  const isWhole = action === 'cancelTask' || seen.isWhole
  return { outcome: isThere ? 'found' : 'absent', isWhole, taskId, taskState, reason }
}
