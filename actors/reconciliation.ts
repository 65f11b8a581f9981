/**
 * The work of reconciling a scope: ask for each unfinished task, read the agent's list, look for uncertain commands. What is
 * new is committed by the same door as a stream's events; a finished task is never asked for. Owns the turn of a scope and the way to its
 * agent. Does not decide when (machines/reconciliation.ts) or for whom (reconciliation-scopes.ts), and keeps no answer (reconciliation-looks.ts).
 */
import type { Fact } from '../domain/fact.ts'
import { agentRemoved } from '../domain/unread-agent.ts'
import { reconciliationMachine, type CheckOutcome, type ListOutcome } from '../machines/reconciliation.ts'
import { readingStates } from '../machines/subscription.ts'
import { readAgent } from '../persistence/agents.ts'
import { readSought, type SoughtCommand } from '../persistence/evidence.ts'
import { hasUnfinished, readUnfinished, type UnfinishedTask } from '../persistence/reconciliation.ts'
import { plainWords } from './agent-words.ts'
import { Searching, searchesFor, type SearchTools } from './evidence.ts'
import { Bell } from './loop/bell.ts'
import type { Done, Held, Kind, LeasedActor } from './loop/kinds.ts'
import { Healing } from './reconciliation-healing.ts'
import { TaskLooks, type Seen, type TaskLookTools } from './reconciliation-looks.ts'
import { Silences } from './reconciliation-silences.ts'
import { noAnswer, Turn, usualPatience, type ReconcilingPatience } from './reconciliation-turn.ts'
import { remember } from './remember.ts'
import { keptAgeMs, openKeptLine, openLine, type AgentLine, type NoLine, type Scope } from './task-line.ts'

export interface ReconcilingTools extends SearchTools, TaskLookTools {
  /** Wall clock. */
  readonly now: () => Date
}

/** Of which nothing was heard for so long: what a stream tells of at the moment needs no asking. */
const quietMs = 10_000
const tasksPerTurn = 100
const readElsewhere = readingStates.map((value) => JSON.stringify(value))
const soughtPerTurn = 200
/** Answers in a row that cannot be used: an agent that refuses everything is not asked a hundred times. */
const unusableLimit = 3
const agentsRemembered = 1000
/** No answer by a reader that does not wait for long: the scope comes again, to the other. */
const cutShort = Symbol('cut short')

const checked = (output: CheckOutcome, told: readonly Fact[] = []): Done => ({ output, told })

export class Reconciling {
  readonly #t: ReconcilingTools
  readonly #patience: ReconcilingPatience
  readonly #searching: Searching
  readonly #looks: TaskLooks
  readonly #healing: Healing
  readonly #silences: Silences
  /** When an agent that is read by an old card was last asked for it, monotonic milliseconds. */
  readonly #askedAt = new Map<string, number>()

  constructor(tools: ReconcilingTools, patience: ReconcilingPatience = usualPatience) {
    this.#t = tools
    this.#silences = new Silences(tools.monotonic)
    this.#patience = patience
    this.#searching = new Searching(tools)
    this.#looks = new TaskLooks(tools)
    this.#healing = new Healing(tools, this.#looks)
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
    // Who does not know what was found there before may only be who lives at its old address now.
    const mayHaveMoved = tasks.some(({ isLost }) => isLost) || sought.some(({ looks }) => looks > 0)
    const line = await this.#line(scope, actor, held, mayHaveMoved)
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
      const seen = await this.#looks.askFor(turn, line, task, held)
      if (seen.kind === 'silent' && turn.isCutShort) return { kind: 'more', after: asked }
      if (seen.kind === 'silent') this.#silences.silent(turn.id, task.id, read > 0)
      else this.#silences.answered(turn.id, task.id)
      if (seen.kind === 'lost') turn.told.push(unanswered(task, seen))
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

  async #rest(scope: Scope): Promise<CheckOutcome> {
    return (await hasUnfinished(this.#t.db.pool, scope)) ? { kind: 'busy' } : { kind: 'idle' }
  }

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
    return turn.paced(await this.#healing.list(turn, line, held))
  }

  /**
   * The way to the agent. While reading goes well its last card will do: asked for, it would be a request and a write a scope
   * and pass, so that it is once in a while. Otherwise it is looked for, but not for long: a card that hangs must not hold a reader either. Nor must a token endpoint:
   * it is asked first and alone, for it would be waited for again by whatever is asked of the agent without its token. But for no agent
   * that was removed: its secret would be sent for ever, and its scope would never rest.
   */
  async #line(
    scope: Scope,
    { context }: LeasedActor,
    { signal }: Held,
    mayHaveMoved = false,
  ): Promise<AgentLine | NoLine> {
    const kept = context['failures'] === 0 && !mayHaveMoved ? await openKeptLine(this.#t, scope) : null
    if (kept && 'kind' in kept) return kept
    if (kept && !(kept.isOld && this.#asksAgain(scope.agentId))) return kept.line
    const found = await this.#find(scope, signal)
    // Who only does not show it now is read by the last one, by which reading went well.
    const isMissing = 'kind' in found && found.kind === 'missed' && found.isUntrusted !== true
    return kept && isMissing ? kept.line : found
  }

  /** Whether an old card is asked for: once in a while, also where the agent does not show it. */
  #asksAgain(agentId: string): boolean {
    const now = this.#t.monotonic()
    const askedAt = this.#askedAt.get(agentId)
    if (askedAt !== undefined && now - askedAt < keptAgeMs) return false
    remember(this.#askedAt, agentId, now, agentsRemembered)
    return true
  }

  async #find(scope: Scope, signal: AbortSignal): Promise<AgentLine | NoLine> {
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

const unanswered = ({ id: taskId, version }: UnfinishedTask, { reason, oversized }: Seen & { kind: 'lost' }): Fact => ({
  type: 'reconciliation.unanswered',
  taskId,
  version,
  reason,
  ...(oversized && { oversized }),
})

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
  mayMiss: 'anything',
})
