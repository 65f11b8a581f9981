/**
 * The work of a subscription: hold the agent's stream of one task, or read the task where an agent does not stream, and
 * commit what comes under the lease. Everything here may be repeated. Does not decide when to try again
 * (machines/subscription.ts) or what an event changes (observe.ts).
 */
import { encodeRequest } from '../a2a/client.ts'
import { isTerminal, isWaiting } from '../domain/task.ts'
import { subscriptionMachine, type FollowOutcome } from '../machines/subscription.ts'
import { readFollowed, type FollowedTask } from '../persistence/tasks.ts'
import type { Done, Held, Kind, LeasedActor } from './kinds.ts'
import { limits, StreamBroken, type Streaming } from './outbound.ts'
import { commitSeen, lookAt, openLine, type AgentLine, type LineTools } from './task-line.ts'
import type { ParsedEvent } from './threads/messages.ts'

/** A task with the way to its agent. */
interface Line extends AgentLine {
  readonly task: FollowedTask
}

const agentGone: FollowOutcome = { kind: 'gone', reason: 'The agent was removed.' }
const taskGone: FollowOutcome = { kind: 'gone', reason: 'The agent no longer knows the task.' }
const broken: FollowOutcome = { kind: 'broken' }

export class Following {
  readonly #t: LineTools

  constructor(tools: LineTools) {
    this.#t = tools
  }

  async follow(actor: LeasedActor, held: Held): Promise<Done> {
    const line = await this.#line(actor.ref.id, held.signal)
    if ('kind' in line) return { output: line }
    if (!line.streaming) return { output: { kind: 'unsupported' } }
    const answered = actor.context['answered'] === true
    if (isTerminal(line.task.state)) return { output: { kind: 'finished' } }
    if (isWaiting(line.task.state) && !answered) return { output: { kind: 'waiting' } }
    const ended = await this.#stream(line, answered, held)
    if (held.signal.aborted) return { output: broken }
    // What a stream missed, and what it said last, is settled by one look at the whole task.
    const seen = await this.#reread(line, held)
    if (seen === null) return { output: ended === 'gone' ? taskGone : broken }
    return { output: outcomeOf(seen.state) ?? { kind: ended === 'ended' ? 'ended' : 'broken' } }
  }

  async read(actor: LeasedActor, held: Held): Promise<Done> {
    const line = await this.#line(actor.ref.id, held.signal)
    if ('kind' in line) return { output: line }
    const seen = await this.#reread(line, held)
    if (seen === null) return { output: broken }
    const answered = actor.context['answered'] === true
    // An agent that has not yet looked at the answer still shows its question.
    const same = seen.state === line.task.state && seen.stateAt === line.task.stateAt
    const unread = answered && isWaiting(seen.state) && same
    return { output: (unread ? null : outcomeOf(seen.state)) ?? { kind: 'ended' } }
  }

  async #line(taskId: string, signal: AbortSignal): Promise<Line | FollowOutcome> {
    const task = await readFollowed(this.#t.db.pool, taskId)
    if (!task) return taskGone
    const line = await openLine(this.#t, task, signal)
    if ('kind' in line) return line.kind === 'gone' ? agentGone : broken
    return { ...line, task }
  }

  /** Holds one stream until the agent waits, finishes, or the stream ends. */
  async #stream(line: Line, answered: boolean, held: Held): Promise<'ended' | 'broken' | 'gone'> {
    const requestId = this.#t.newToken()
    const options = { requestId, extensions: line.extensions }
    const request = encodeRequest(line.endpoint, 'subscribe', { id: line.task.remoteId }, options)
    let opened = await this.#t.outbound.openStream(request, limits.stream, held.signal)
    const retry = opened.kind === 'answered' && (opened.status === 404 || opened.status === 405)
    if (retry && request.fallback)
      opened = await this.#t.outbound.openStream(request.fallback, limits.stream, held.signal)
    if (opened.kind === 'answered') {
      const event = await this.#t.pool.parseReply(line.endpoint, 'subscribe', opened, requestId)
      return event.kind === 'refused' && event.error.reason === 'TASK_NOT_FOUND' ? 'gone' : 'broken'
    }
    if (opened.kind !== 'streaming') return 'broken'
    try {
      return await this.#drink(opened, line, requestId, answered, held)
    } catch (error) {
      if (error instanceof StreamBroken) return 'broken'
      throw error
    } finally {
      await opened.close()
    }
  }

  async #drink(
    stream: Streaming,
    line: Line,
    requestId: string,
    answered: boolean,
    held: Held,
  ): Promise<'ended' | 'broken' | 'gone'> {
    const parser = this.#t.pool.openStream({ endpoint: line.endpoint, requestId })
    const watch = new Rest(line.task, answered)
    const take = async (events: readonly ParsedEvent[]): Promise<'gone' | 'broken' | 'settled' | 'more'> => {
      await commitSeen(this.#t, line.task, 'stream', events, held)
      // An event that could not be read may have been a chunk: from here on only the whole task can be trusted.
      if (events.some((e) => e.kind === 'invalid')) return 'broken'
      if (events.some((e) => e.kind === 'refused' && e.error.reason === 'TASK_NOT_FOUND')) return 'gone'
      return watch.sees(events) ? 'settled' : 'more'
    }
    for await (const chunk of stream.chunks) {
      const seen = await take(await parser.parse(chunk))
      if (seen === 'settled') return 'ended'
      if (seen !== 'more') return seen
    }
    const last = await take(await parser.end())
    return last === 'gone' || last === 'broken' ? last : 'ended'
  }

  /** Reads the task once. Null when the agent gave no answer; otherwise the task, as committed. */
  async #reread(line: Line, held: Held): Promise<FollowedTask | null> {
    const look = await lookAt(this.#t, line, line.task.remoteId, held.signal)
    if (look.kind !== 'seen') return null
    await commitSeen(this.#t, line.task, 'poll', [look.event], held)
    // What was committed counts, not what was said: an agent's late word may have changed nothing.
    return readFollowed(this.#t.db.pool, line.task.id)
  }
}

const outcomeOf = (state: string): FollowOutcome | null => {
  if (isTerminal(state)) return { kind: 'finished' }
  return isWaiting(state) ? { kind: 'waiting' } : null
}

/** Whether a stream has come to rest. After an answer the agent's old question may stand there once more: it is not one. */
class Rest {
  readonly #task: FollowedTask
  #stale: boolean

  constructor(task: FollowedTask, answered: boolean) {
    this.#task = task
    this.#stale = answered
  }

  sees(events: readonly ParsedEvent[]): boolean {
    let resting = false
    for (const event of events) {
      if (event.kind !== 'observation' || event.observation.taskId !== this.#task.remoteId) continue
      const { status } = event.observation
      if (!status) continue
      const old = this.#stale && status.state === this.#task.state && sameInstant(status.timestamp, this.#task.stateAt)
      if (!old) this.#stale = false
      resting = !old && (isTerminal(status.state) || isWaiting(status.state))
    }
    return resting
  }
}

const sameInstant = (a: string | null, b: string | null): boolean =>
  a === b || (a !== null && b !== null && Date.parse(a) === Date.parse(b))

export const subscriptionKind = (following: Following): Kind => ({
  machine: subscriptionMachine,
  pollMs: 250,
  leaseMs: 15_000,
  concurrency: 8,
  laneLimit: 8,
  claimLimit: 8,
  work: {
    follow: (actor, held) => following.follow(actor, held),
    read: (actor, held) => following.read(actor, held),
  },
  repeatable: new Set(['follow', 'read']),
})
