/**
 * The work of a subscription: hold the agent's stream of one task, or read the task where an agent does not stream, and say
 * what came of it. Everything here may be repeated. Does not own the stream itself (subscription-stream.ts), the way to a
 * task (task-line.ts), when to try again (machines/subscription.ts) or what an event changes (observe.ts).
 */
import { failedOften } from '../domain/patience.ts'
import { isTerminal, isWaiting } from '../domain/task.ts'
import { agentRemoved, taskForgotten } from '../domain/unread-agent.ts'
import { subscriptionMachine, type CloseOutcome, type FollowOutcome } from '../machines/subscription.ts'
import { readProgress, type Progress } from '../persistence/following.ts'
import { readFollowed, type FollowedTask } from '../persistence/tasks.ts'
import type { Done, Held, Kind, LeasedActor } from './loop/kinds.ts'
import { limits } from './outbound.ts'
import { errorWords, plainWords } from './agent-words.ts'
import { inTurn, unlessLost } from './loop/outlast.ts'
import type { SecondLooks } from './second-looks.ts'
import { Streams, type StreamEnd, type TaskLine } from './subscription-stream.ts'
import { commitSeen, lookAt, openLine, type LineTools, type Look, type LookOptions } from './task-line.ts'
import type { SeenEvent } from './threads/messages.ts'

const agentGone = { kind: 'gone', reason: agentRemoved } as const
const taskGone = { kind: 'gone', reason: taskForgotten } as const

/** A stream that lasted longer than the longest pause between two of them has worked, news or not. */
const goodStreamMs = 30_000
/** A look after which the place is given up must not keep it for a minute. */
const partingDeadlineMs = 5_000
/** The last looks at a task that is over keep their places for so long, whosever turn it is: slow agents answer by then. */
const closingDeadlineMs = 30_000
/** Tries that wait for so long: an agent that says nothing keeps a place with each. */
const patientTries = 3
/**
 * An agent that has not yet looked at a person's answer still shows its question. After so many attempts, some 15 s, the
 * question stands: an agent that gives no timestamps may have asked the same again. A stream that is held open meanwhile is hung up on
 * after as long (subscription-stream.ts).
 */
const patienceForAnswer = 4

const ended = (output: FollowOutcome): Done => ({ output })
const broken = (reason: string, heard: boolean): FollowOutcome => ({
  kind: 'broken',
  reason: plainWords(reason),
  heard,
})

export interface FollowingTools extends LineTools {
  readonly secondLooks: SecondLooks
}

/** How an attempt at following ended. */
interface Parting {
  /** What counts its attempts. */
  readonly counter: 'failures' | 'reads'
  readonly look: Look
  /** Its stream told nothing but the question. */
  readonly stood: boolean
}

export class Following {
  readonly #t: FollowingTools
  readonly #streams: Streams

  constructor(tools: FollowingTools) {
    this.#t = tools
    this.#streams = new Streams(tools)
  }

  async follow(actor: LeasedActor, held: Held): Promise<Done> {
    // Whoever drained while its stream was open gave the row back as it was.
    if (actor.context['open'] !== undefined) await held.note({ type: 'closed' })
    const task = await readFollowed(this.#t.db.pool, actor.ref.id)
    if (!task) return ended(taskGone)
    // Whoever saw it end did not come to say so, nor perhaps to look.
    if (isTerminal(task.state)) return ended(await this.#close(task, held))
    const line = await this.#line(task, held.signal)
    if ('kind' in line) return ended(line)
    if (!line.streaming) return ended({ kind: 'unsupported' })
    const answered = actor.context['answered'] === true
    if (isWaiting(line.task.state) && !answered) return ended({ kind: 'waiting' })
    const before = await readProgress(this.#t.db.pool, line.task.id)
    const startedAt = performance.now()
    const isTroubled = actor.context['reason'] !== null && failedOften(actor.context)
    const over = await this.#streams.hold(line, { answered, isTroubled }, held)
    // Whether somebody has to look at the whole of it is known where its end was told.
    if (over.kind === 'over') return ended({ kind: 'ended', news: true })
    // Before our own look: a task that moves is no proof of a stream that tells nothing of it.
    const after = await readProgress(this.#t.db.pool, line.task.id)
    // What a stream missed, and what it said last, is settled by one look at the whole task.
    const known = { ...line, task: (await readFollowed(this.#t.db.pool, line.task.id)) ?? line.task }
    const look = over.kind === 'yielded' ? await this.#part(known, held) : await this.#look(known, held)
    const end = over.kind === 'stood' ? ({ kind: 'closed' } as const) : judged(over, look)
    const settled = await this.#settled(line, actor, { counter: 'failures', look, stood: over.kind === 'stood' })
    if (settled?.kind === 'finished') return ended({ ...closedBy(look), ...leftOutOf(end, look) })
    if (end.kind === 'gone' && look.kind !== 'seen') return ended(taskGone)
    if (settled) return ended(settled)
    if (end.kind === 'unsupported') return ended({ kind: 'unsupported' })
    const lasted = wasOpen(end) && performance.now() - startedAt >= goodStreamMs
    return ended(outcomeOf(end, look, lasted || (await this.#isNews(line, before, after))))
  }

  /**
   * Whether a stream told anything that was not known. A state does where the look at the whole agrees, and so do chunks where an artifact
   * is another after it: some agents tell theirs from the start whenever they are asked, or lag behind, and each round would be opened as
   * soon as the last is over.
   */
  async #isNews(line: TaskLine, before: Progress | null, after: Progress | null): Promise<boolean> {
    if (!before || !after) return false
    if (after.messages > before.messages) return true
    const now = await readProgress(this.#t.db.pool, line.task.id)
    if (after.updates > before.updates && now?.artifacts !== before.artifacts) return true
    return after.state !== before.state && now?.state !== before.state
  }

  async read(actor: LeasedActor, held: Held): Promise<Done> {
    const task = await readFollowed(this.#t.db.pool, actor.ref.id)
    if (!task) return ended(taskGone)
    // What told its end was such a read.
    if (isTerminal(task.state)) return ended({ kind: 'finished' })
    const line = await this.#line(task, held.signal)
    if ('kind' in line) return ended(line)
    const look = await this.#look(line, held)
    if (look.kind === 'refused' && look.error.reason === 'TASK_NOT_FOUND') return ended(taskGone)
    const settled = await this.#settled(line, actor, { counter: 'reads', look, stood: false })
    if (settled) return ended(settled)
    return ended(look.kind === 'seen' ? { kind: 'ended', news: true } : troubleOf(look))
  }

  /** Looks once more at a task that is over. It has few tries, and a directory that is full takes none of them. */
  close({ ref, context }: LeasedActor, held: Held): Promise<Done> {
    const isLate = typeof context['failures'] === 'number' && context['failures'] > patientTries
    const deadlineMs = isLate ? partingDeadlineMs : closingDeadlineMs
    const look = async (): Promise<Done> => {
      const task = await readFollowed(this.#t.db.pool, ref.id)
      return ended(task ? await this.#close(task, held, deadlineMs) : { kind: 'finished' })
    }
    return unlessLost(ref, held, inTurn(ref, held, look))
  }

  async #close(task: FollowedTask, held: Held, deadlineMs = closingDeadlineMs): Promise<CloseOutcome> {
    const line = await openLine(this.#t, task, held.signal)
    if ('kind' in line) return line.kind === 'gone' ? neverWhole(agentGone.reason) : { kind: 'unseen' }
    // The socket that was kept may be what failed the look before. Nobody's turn cuts it short: that would cost it a try.
    const options = { deadlineMs, connection: 'fresh' } as const
    return closedBy(await this.#see({ ...line, task }, held, held.signal, options))
  }

  async #line(task: FollowedTask, signal: AbortSignal): Promise<TaskLine | FollowOutcome> {
    const line = await openLine(this.#t, task, signal)
    if ('kind' in line) return line.kind === 'gone' ? agentGone : broken(line.message, false)
    return { ...line, task }
  }

  /**
   * Reads the task once and commits what it shows. An agent that says nothing keeps its place for a turn only; but what is left of
   * the turn may be nothing by now, and a look that others cut short is no silence: it has as long as a parting one.
   */
  async #look(line: TaskLine, held: Held): Promise<Look> {
    const cut = new AbortController()
    const end = (): void => cut.abort()
    const hear = (): void => (held.turn.aborted ? end() : held.turn.addEventListener('abort', end, { once: true }))
    const timer = setTimeout(hear, partingDeadlineMs)
    try {
      const signal = AbortSignal.any([held.signal, cut.signal])
      return await this.#see(line, held, signal, { deadlineMs: limits.answer.deadlineMs })
    } finally {
      clearTimeout(timer)
      held.turn.removeEventListener('abort', end)
    }
  }

  /** The last look before the place is given up. */
  #part(line: TaskLine, held: Held): Promise<Look> {
    return this.#see(line, held, held.signal, { deadlineMs: partingDeadlineMs })
  }

  #see(line: TaskLine, held: Held, signal: AbortSignal, options: LookOptions): Promise<Look> {
    const keep = (event: SeenEvent): Promise<void> => {
      const overrules = this.#t.secondLooks.overruled(line.task, event.observation)
      return commitSeen(this.#t, line.task, 'poll', [event], held, { asked: line.task.version, overrules })
    }
    return lookAt(this.#t, line, line.task.remoteId, signal, { ...options, keep, lease: held.signal })
  }

  /** What was committed counts, not what was said: an agent's late word may have changed nothing. Null: it still works. */
  async #settled(line: TaskLine, actor: LeasedActor, { counter, look, stood }: Parting): Promise<FollowOutcome | null> {
    const task = await readFollowed(this.#t.db.pool, line.task.id)
    if (!task) return taskGone
    if (isTerminal(task.state)) return { kind: 'finished' }
    if (!isWaiting(task.state)) return null
    const unread = task.state === line.task.state && task.stateAt === line.task.stateAt
    // Of an agent that shows nothing when it is asked its stream is the only way to hear: then it is no question that stands.
    const patient = look.kind !== 'seen' || (!stood && Number(actor.context[counter] ?? 0) < patienceForAnswer)
    return actor.context['answered'] === true && unread && patient ? null : { kind: 'waiting' }
  }
}

type JudgedEnd = Exclude<StreamEnd, { kind: 'unrouted' | 'over' | 'stood' }>

/**
 * A bare 404 is what an ingress says while it has no agent to lead to, too. Only where the agent itself showed the task at the same
 * time is it the stream alone that is missing.
 */
function judged(end: Exclude<StreamEnd, { kind: 'over' | 'stood' }>, look: Look): JudgedEnd {
  if (end.kind !== 'unrouted') return end
  if (look.kind === 'seen') return { kind: 'unsupported' }
  return { kind: 'broken', reason: end.reason, opened: false, oversized: false }
}

const wasOpen = (end: JudgedEnd): boolean => end.kind === 'closed' || ('opened' in end && end.opened)
const wasHeard = (look: Look): boolean => look.kind !== 'unread' || look.answered || look.oversized === true

/**
 * Whether a finished task was seen whole, or never will be: it is too large, or its agent has forgotten it. A replica of the
 * agent that lags behind shows the task as it was: that is no look at its end.
 */
function closedBy(look: Look): CloseOutcome {
  if (look.kind === 'seen')
    return { kind: isTerminal(look.event.observation.status?.state ?? '') ? 'finished' : 'unseen' }
  if (look.kind === 'unread') return look.oversized ? neverWhole(look.message) : { kind: 'unseen' }
  return look.error.reason === 'TASK_NOT_FOUND' ? neverWhole(taskGone.reason) : { kind: 'unseen' }
}

const neverWhole = (missing: string): CloseOutcome => ({ kind: 'finished', missing: plainWords(missing) })

function outcomeOf(end: JudgedEnd, look: Look, news: boolean): FollowOutcome {
  if (end.kind === 'yielded' && end.opened) return { kind: 'yielded' }
  if (news) return { kind: 'ended', news, ...leftOutOf(end, look) }
  // Neither the stream nor the whole task can be read: it would be the same for ever.
  if (end.kind === 'broken' && end.oversized && look.kind === 'unread' && look.oversized)
    return { kind: 'unreadable', reason: plainWords(look.message) }
  if (end.kind === 'broken') return broken(end.reason, end.opened || end.oversized || wasHeard(look))
  if (look.kind === 'seen') return { kind: 'ended', news }
  return wasOpen(end) ? broken(wordsOf(look), true) : troubleOf(look)
}

/** An event over a limit is not lost where the whole task could be read; that it was not read is said all the same. */
const leftOutOf = (end: JudgedEnd, look: Look): { readonly leftOut?: string } =>
  end.kind === 'broken' && end.oversized && look.kind === 'seen'
    ? {
        leftOut: `${plainWords(end.reason)} An event of the stream was left out, and the task was read as a whole instead.`,
      }
    : {}

type Unseen = Exclude<Look, { kind: 'seen' }>

const wordsOf = (look: Unseen): string => (look.kind === 'refused' ? errorWords(look.error) : look.message)

function troubleOf(look: Unseen): FollowOutcome {
  if (look.kind === 'unread' && look.oversized) return { kind: 'unreadable', reason: plainWords(look.message) }
  return broken(wordsOf(look), wasHeard(look))
}

export const subscriptionKind = (following: Following): Kind => ({
  machine: subscriptionMachine,
  pollMs: 250,
  leaseMs: 15_000,
  concurrency: 8,
  // One agent may have every place that nobody else waits for; taking turns sees to the rest.
  laneLimit: 8,
  turnMs: 10_000,
  unhurried: new Set(['close']),
  claimLimit: 8,
  work: {
    follow: (actor, held) => following.follow(actor, held),
    read: (actor, held) => following.read(actor, held),
    close: (actor, held) => following.close(actor, held),
  },
  repeatable: new Set(['follow', 'read', 'close']),
  mayMiss: 'anything',
})
