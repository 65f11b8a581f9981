/**
 * The work of reconciling a scope: ask for each unfinished task, read the agent's list, look for uncertain commands. What is
 * new is committed by the same door as a stream's events; foreign tasks are ignored and a finished task is never asked for.
 * Does not decide when (machines/reconciliation.ts), for whom (reconciliation-scopes.ts) or what an answer changes (observe.ts).
 */
import type { Params } from '../a2a/operations.ts'
import type { Task } from '../a2a/messages.ts'
import type { Fact } from '../domain/fact.ts'
import { isTerminal } from '../domain/task.ts'
import { reconciliationMachine, type CheckOutcome, type ListOutcome } from '../machines/reconciliation.ts'
import { readingStates } from '../machines/subscription.ts'
import { readSought, type SoughtCommand } from '../persistence/evidence.ts'
import {
  forgetLost,
  hasUnfinished,
  readUnfinished,
  unfinishedAmong,
  type UnfinishedTask,
} from '../persistence/reconciliation.ts'
import { readAgent } from '../persistence/agents.ts'
import { textDigest } from '../persistence/text-digest.ts'
import { Bell } from './loop/bell.ts'
import { Searching, searchesFor, type SearchTools } from './evidence.ts'
import type { Done, Held, Kind, LeasedActor } from './loop/kinds.ts'
import { plainWords, errorWords } from './agent-words.ts'
import { guarded, isNews, readPage, type PageLook } from './reconciliation-list.ts'
import { Silences } from './reconciliation-silences.ts'
import { Turn, usualPatience, type ReconcilingPatience } from './reconciliation-turn.ts'
import { remember } from './remember.ts'
import type { SecondLooks } from './second-looks.ts'
import { commitSeen, lookAt, openKeptLine, openLine, type AgentLine, type NoLine, type Scope } from './task-line.ts'
import type { SeenEvent } from './threads/messages.ts'
import { observed } from './threads/stream-parser.ts'

export interface ReconcilingTools extends SearchTools {
  /** Wall clock. */
  readonly now: () => Date
  readonly secondLooks: SecondLooks
}

/** Of which nothing was heard for so long: what a stream tells of at the moment needs no asking. */
const quietMs = 10_000
const tasksPerTurn = 100
const readElsewhere = readingStates.map((value) => JSON.stringify(value))
const soughtPerTurn = 200
/** Answers in a row that cannot be used: an agent that refuses everything is not asked a hundred times. */
const unusableLimit = 3
const listPagesLimit = 5
const listPageSize = 50
const listHistory = 20
/** Digests of answers that changed nothing: a few hundred bytes each. */
const answersRemembered = 10_000
const noAnswer = 'The agent did not answer in time.'
const agentRemoved = 'The agent was removed.'
const forgotten = 'The agent no longer knows the task.'
/** No answer by a reader that does not wait for long: the scope comes again, to the other. */
const cutShort = Symbol('cut short')

const checked = (output: CheckOutcome, told: readonly Fact[] = []): Done => ({ output, told })

export class Reconciling {
  readonly #t: ReconcilingTools
  readonly #patience: ReconcilingPatience
  readonly #searching: Searching
  /** Of a task: at which version which answer was folded in. */
  readonly #answers = new Map<string, string>()
  readonly #silences: Silences

  constructor(tools: ReconcilingTools, patience: ReconcilingPatience = usualPatience) {
    this.#t = tools
    this.#silences = new Silences(tools.monotonic)
    this.#patience = patience
    this.#searching = new Searching(tools)
  }

  #turn(scope: Scope, id: string, isQuick: boolean): Turn {
    return new Turn({ scope, id, isQuick, patience: this.#patience, monotonic: this.#t.monotonic })
  }

  async check(actor: LeasedActor, held: Held): Promise<Done> {
    const scope = scopeOf(actor)
    const after = typeof actor.context['after'] === 'string' ? actor.context['after'] : null
    const { db } = this.#t
    const nowMs = this.#t.now().getTime()
    const at = new Date(nowMs).toISOString()
    const quietSince = new Date(nowMs - quietMs).toISOString()
    const sought = await readSought(db.pool, scope, at, soughtPerTurn)
    const page = { quietSince, at, readElsewhere, limit: tasksPerTurn }
    const rest = await readUnfinished(db.pool, scope, { after, ...page })
    // A pass that failed on its last task begins anew: no task left is no agent that answered.
    const fromStart = after !== null && rest.length === 0
    const tasks = fromStart ? await readUnfinished(db.pool, scope, { after: null, ...page }) : rest
    if (sought.length + tasks.length === 0) return checked(this.#dated(actor, await this.#rest(scope), false))
    const line = await this.#line(scope, actor, held)
    if ('kind' in line) {
      const reason = line.kind === 'gone' ? agentRemoved : plainWords(line.message)
      const told = sought.map((command) => vainLook(command, reason))
      if (line.kind === 'gone') return checked({ kind: 'gone', reason }, told)
      return checked({ kind: 'failed', reason, after, progressed: false }, told)
    }
    const turn = this.#turn(scope, actor.ref.id, !actor.isDoubted)
    const unreached = await this.#search(turn, line, sought, held)
    if (unreached === cutShort) return checked(turn.paced({ kind: 'more', after }), turn.told)
    if (unreached !== null)
      return checked(turn.paced({ kind: 'failed', reason: unreached, after, progressed: false }), turn.told)
    const asked = await this.#ask(turn, line, { tasks, after: fromStart ? null : after }, held)
    return checked(turn.paced(turn.isCutShort ? asked : this.#dated(actor, asked, turn.isAnswered)), turn.told)
  }

  /**
   * Says with what was found whether the list is due by the clock. Of an agent that shows none of its tasks only where it says anything:
   * that it refuses, now, or that it lists, the last time. The list of a silent one would cost a reader as long again.
   */
  #dated({ ref, context }: LeasedActor, outcome: CheckOutcome, isAnswered: boolean): CheckOutcome {
    if (outcome.kind === 'idle') this.#silences.rested(ref.id)
    if (outcome.kind === 'idle') return outcome
    const { listedAt, listReason } = context
    const lists = typeof listedAt === 'string' && listReason === null
    if (outcome.kind === 'failed' && !outcome.progressed && !isAnswered && !lists) return outcome
    const agoMs = typeof listedAt === 'string' ? this.#t.now().getTime() - Date.parse(listedAt) : null
    return this.#silences.isListOld(ref.id, agoMs) ? { ...outcome, isListOld: true } : outcome
  }

  /** Null, or why the agent could not be reached. */
  async #search(
    turn: Turn,
    line: AgentLine,
    sought: readonly SoughtCommand[],
    held: Held,
  ): Promise<string | typeof cutShort | null> {
    const asking = { signal: held.signal, searchMs: this.#patience.searchMs, question: () => turn.question() }
    for (const commands of searchesFor(sought)) {
      if (turn.isOver) return null
      const { looks, reached } = await this.#searching.look(line, commands, asking)
      if (!reached && turn.isCutShort) return cutShort
      commands.forEach(({ commandId, looks: looksBefore }, i) => {
        const look = looks[i]
        if (look) turn.told.push({ type: 'command.looked_for', commandId, looksBefore, ...look })
      })
      if (!reached) return looks.find(({ reason }) => reason !== null)?.reason ?? noAnswer
    }
    return null
  }

  async #ask(
    turn: Turn,
    line: AgentLine,
    { tasks, after: before }: { readonly tasks: readonly UnfinishedTask[]; readonly after: string | null },
    held: Held,
  ): Promise<CheckOutcome> {
    let after: string | null = null
    let read = 0
    let unusable = 0
    let reason = noAnswer
    let silent = false
    for (const task of tasks) {
      if (turn.isOver && after !== null)
        return silent ? { kind: 'failed', reason, after, progressed: true } : { kind: 'more', after }
      const asked = after ?? before
      after = task.id
      if (this.#silences.rests(task.id)) continue
      const seen = await this.#askFor(turn, line, task, held)
      if (seen.kind === 'silent' && turn.isCutShort) return { kind: 'more', after: asked }
      if (seen.kind === 'silent') this.#silences.silent(turn.id, task.id, read > 0)
      else this.#silences.answered(turn.id, task.id)
      if (seen.kind === 'lost') turn.told.push(unanswered(task, seen.reason))
      if (seen.kind === 'seen' || seen.kind === 'lost') {
        read += 1
        unusable = 0
        continue
      }
      reason = seen.reason
      unusable += 1
      const answered = seen.kind === 'unusable'
      // While the agent answers for others it is this task's trouble alone.
      silent ||= !answered && read > 0
      if ((!answered && read === 0) || unusable === unusableLimit)
        return { kind: 'failed', reason, after, progressed: read > 0 }
    }
    if (read === 0 && unusable > 0) return { kind: 'failed', reason, after: null, progressed: false }
    const rest = tasks.length === tasksPerTurn ? after : null
    if (silent) return { kind: 'failed', reason, after: rest, progressed: true }
    return rest === null ? this.#rest(turn.scope) : { kind: 'more', after: rest }
  }

  /**
   * `silent`: no answer. `unusable`: an answer that says nothing about the task. `lost`: asking again soon cannot help, for the
   * agent does not know it, or it is larger than what may be read: 25 MB every fifteen seconds would be read for nothing.
   */
  async #askFor(turn: Turn, line: AgentLine, task: UnfinishedTask, held: Held): Promise<Seen> {
    const keep = async (event: SeenEvent): Promise<void> => {
      if (task.isLost) await forgetLost(this.#t.db.pool, task.id)
      await this.#commit(line, task, event, held)
    }
    const look = await lookAt(this.#t, line, task.remoteId, held.signal, { ...turn.question(), keep })
    if (look.kind === 'unread' && look.oversized)
      return { kind: 'lost', reason: plainWords(look.message), oversized: true }
    if (look.kind === 'unread') return { kind: look.answered ? 'unusable' : 'silent', reason: plainWords(look.message) }
    if (look.kind === 'refused') {
      if (look.error.reason === 'TASK_NOT_FOUND') return { kind: 'lost', reason: forgotten, oversized: false }
      return { kind: 'unusable', reason: errorWords(look.error) }
    }
    return { kind: 'seen' }
  }

  /**
   * An answer that was folded into this very version changes nothing: told again it would cost a transaction, every fifteen
   * seconds, of a task that may wait for a person for a week.
   */
  async #commit(line: AgentLine, task: UnfinishedTask, event: SeenEvent, held: Held) {
    const digest = event.digest ?? textDigest(event.observation.event)
    const answer = `${task.version} ${digest}`
    const overrules = this.#t.secondLooks.overruled(task, event.observation)
    const { isGivenUp: isSeenAgain } = task
    if (overrules === null && !isSeenAgain && this.#answers.get(task.id) === answer) return
    const of = { ...line, remoteId: task.remoteId }
    await commitSeen(this.#t, of, 'poll', [event], held, { overrules, isSeenAgain })
    this.#answers.delete(task.id)
    const { status } = event.observation
    if (status && isTerminal(status.state)) return
    remember(this.#answers, task.id, answer, answersRemembered)
  }

  async #rest(scope: Scope): Promise<CheckOutcome> {
    return (await hasUnfinished(this.#t.db.pool, scope)) ? { kind: 'busy' } : { kind: 'idle' }
  }

  /** Heals by the agent's list: what it tells of a task that we know otherwise is read whole, because a list has no artifacts. */
  async list(actor: LeasedActor, held: Held): Promise<Done> {
    this.#silences.listed(actor.ref.id)
    const at = this.#t.now().toISOString()
    const output: ListOutcome = { ...(await this.#list(actor, held)), at }
    return { output }
  }

  async #list(actor: LeasedActor, held: Held): Promise<ListOutcome> {
    const scope = scopeOf(actor)
    const line = await this.#line(scope, actor, held)
    if ('kind' in line)
      return line.kind === 'gone' ? { kind: 'unsupported' } : { kind: 'failed', reason: plainWords(line.message) }
    // From here: what is found after a whole turn of looking for the agent would otherwise be called read, and was not.
    const turn = this.#turn(scope, actor.ref.id, !actor.isDoubted)
    return turn.paced(await this.#readList(turn, line, held))
  }

  async #readList(turn: Turn, line: AgentLine, held: Held): Promise<ListOutcome> {
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
      const seen: Seen = isSilent ? { kind: 'silent', reason: noAnswer } : await this.#askFor(turn, line, known, held)
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
      if (seen) await this.#commit(line, known, { kind: 'observation', ...seen }, held)
    }
    return null
  }

  /** Of what is too large to be read in any way its list's word is all that will ever be known: that it ended, not what it made. */
  async #takeState(line: AgentLine, known: UnfinishedTask, task: Task | undefined, held: Held): Promise<void> {
    const { status, contextId } = task ?? {}
    if (!status) return
    const of = { taskId: known.remoteId, ...(contextId === undefined ? {} : { contextId }) }
    const seen = guarded(() => observed({ statusUpdate: { ...of, status } }))
    if (seen) await this.#commit(line, known, { kind: 'observation', ...seen }, held)
  }

  /**
   * The way to the agent. While reading goes well its last card will do: asked for, it would be a request and a write a scope
   * and pass. Otherwise it is looked for, but not for long: a card that hangs must not hold a reader either. Nor must a token endpoint:
   * it is asked first and alone, for it would be waited for again by whatever is asked of the agent without its token. But for no agent
   * that was removed: its secret would be sent for ever, and its scope would never rest.
   */
  async #line(scope: Scope, { context }: LeasedActor, { signal }: Held): Promise<AgentLine | NoLine> {
    const kept = context['failures'] === 0 ? await openKeptLine(this.#t, scope) : null
    if (kept) return kept
    const agent = await readAgent(this.#t.db.pool, scope.agentId)
    if (!agent?.enabled) return { kind: 'gone' }
    const denied = await this.#t.door.token(scope.agentId, signal)
    if (denied) return { kind: 'missed', message: denied.message }
    const over = new AbortController()
    try {
      const silence = this.#silence(scope.agentId, AbortSignal.any([signal, over.signal]))
      return await Promise.race([openLine(this.#t, scope, signal), silence])
    } finally {
      over.abort()
    }
  }

  /** Resolves when an agent has not shown its card for too long, at all its addresses. A database that is slow is not the agent's silence. */
  async #silence(agentId: string, signal: AbortSignal): Promise<NoLine> {
    for (;;) {
      const leftMs = this.#patience.readMs - this.#t.discovery.silentMs(agentId)
      if (leftMs <= 0) return { kind: 'missed', message: noAnswer }
      await new Bell().wait(leftMs, signal)
      signal.throwIfAborted()
    }
  }
}

/** A look at an agent that cannot be found is a look: otherwise one that is gone for good would be looked for for ever. */
const vainLook = ({ commandId, looks, taskId }: SoughtCommand, reason: string): Fact => ({
  type: 'command.looked_for',
  commandId,
  looksBefore: looks,
  outcome: 'unreadable',
  isWhole: false,
  taskId,
  taskState: null,
  reason,
})

const unanswered = ({ id: taskId, version }: UnfinishedTask, reason: string): Fact => ({
  type: 'reconciliation.unanswered',
  taskId,
  version,
  reason,
})

interface ListedPage {
  readonly params: Params['list']
  readonly tasks: readonly Task[]
}

type Seen =
  | { readonly kind: 'seen' }
  | { readonly kind: 'unusable' | 'silent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string; readonly oversized: boolean }

/** The machine holds its scope's name since it was woken; it has no work before. */
function scopeOf({ ref, context }: LeasedActor): Scope {
  const { agentId, tenant } = context
  if (typeof agentId !== 'string' || typeof tenant !== 'string') throw new Error(`The scope ${ref.id} has no name.`)
  return { agentId, tenant }
}

export const reconciliationKind = (reconciling: Reconciling): Kind => ({
  machine: reconciliationMachine,
  pollMs: 1000,
  leaseMs: 15_000,
  concurrency: 2,
  laneLimit: 1,
  // One reader is for those that answer: eighty agents that hang, ten seconds each, would have both for minutes.
  doubt: { counts: ['failures', 'slow'], places: 1 },
  // A timer that rings here finds the other place free, instead of waiting for the next poll.
  claimLimit: 1,
  work: {
    check: (actor, held) => reconciling.check(actor, held),
    list: (actor, held) => reconciling.list(actor, held),
  },
  repeatable: new Set(['check', 'list']),
})
