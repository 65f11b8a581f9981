/**
 * Holding one agent's stream of one task: what comes is parsed in the pool and committed under the lease, chunk by chunk, so
 * that an agent is read only as fast as its words are stored. Owns the stream from the request to how it ended. Does not
 * know what that means for the task (subscription.ts) or what an event changes (observe.ts).
 */
import { setImmediate } from 'node:timers/promises'
import { encodeRequest, otherForm } from '../a2a/client.ts'
import { saysNotOffered, unroutedStatuses } from '../a2a/errors.ts'
import { WireError } from '../a2a/wire.ts'
import { isTerminal, isWaiting } from '../domain/task.ts'
import { isOfAnother, readFollowed, type FollowedTask } from '../persistence/tasks.ts'
import { CommitQueue } from './commit-queue.ts'
import { GapLooks } from './gap-looks.ts'
import { LastWords } from './last-words.ts'
import type { Held } from './loop/kinds.ts'
import { limits, StreamBroken, type OutboundCode, type Sent, type Streaming } from './outbound.ts'
import { errorWords } from './agent-words.ts'
import { Pace } from './pace.ts'
import { commitSeen, encoded, type AgentLine, type LineTools } from './task-line.ts'
import type { ParsedEvent } from './threads/messages.ts'
import type { WholeFrames } from './threads/pool.ts'

/** A task with the way to its agent. */
export interface TaskLine extends AgentLine {
  readonly task: FollowedTask
}

/**
 * `closed`: by the agent, or by us once it said that it waits or has finished. `over`: by us, for the task ended in another's sight, who has
 * told the subscription so, and the stream brought nothing more. `stood`: by us, for of a task whose question was answered nothing was told
 * but that question, for as long as an agent may take to look at the answer. `yielded`: its place is wanted by others.
 * `unsupported`: the agent gives no stream of a task, whatever its card says; a task that is over has none either. `unrouted`: a
 * server said that there is no such thing, and not in the agent's words: it may be one that stands where the agent should.
 * `broken`: everything else; `oversized` where a limit of ours ended it, `opened` where there had been a stream.
 */
export type StreamEnd =
  | { readonly kind: 'closed' }
  | { readonly kind: 'over' }
  | { readonly kind: 'stood' }
  | { readonly kind: 'yielded'; readonly opened: boolean }
  | { readonly kind: 'gone' }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'unrouted'; readonly reason: string }
  | { readonly kind: 'broken'; readonly reason: string; readonly opened: boolean; readonly oversized: boolean }

const askAgainMs = 1_000
/** An agent that keeps a stream open beside a question would have one of eight places for as long as it likes. */
const questionMs = 15_000

type Taken = StreamEnd | 'more'

/** What the subscription knows of the streams before. */
export interface Before {
  readonly answered: boolean
  /** They failed, so that it is worth telling that this one is open. */
  readonly isTroubled: boolean
}

interface Drinking extends Before {
  readonly requestId: string
  readonly held: Held
  readonly words: LastWords
  readonly signal: AbortSignal
  /** Hangs up, as the signal does. */
  readonly cut: () => void
  /** The same, because the question stands. */
  readonly stand: () => void
}

/** What takes its turn, of which stream. */
interface Turn {
  readonly line: TaskLine
  readonly held: Held
  readonly commits: CommitQueue
  readonly take: (whole: WholeFrames, isHeavy: boolean) => Promise<Taken>
}

export class Streams {
  readonly #t: LineTools

  constructor(tools: LineTools) {
    this.#t = tools
  }

  /** Holds one stream until the agent waits, finishes, or the stream ends. Rejects only where committing does. */
  async hold(line: TaskLine, before: Before, held: Held): Promise<StreamEnd> {
    const requestId = this.#t.newToken()
    const cut = new AbortController()
    const words = new LastWords(() => cut.abort())
    const signal = AbortSignal.any([held.signal, cut.signal])
    // What cannot be taken up again has a moment to come.
    const endTurn = (): void => (words.hasBegun ? words.hurry() : cut.abort())
    if (held.turn.aborted) endTurn()
    held.turn.addEventListener('abort', endTurn, { once: true, signal: cut.signal })
    void this.#listen(line, held, words, cut.signal)
    let stands = false
    const stand = (): void => {
      stands = true
      cut.abort()
    }
    try {
      const drinking = { ...before, requestId, held, words, signal, cut: () => cut.abort(), stand }
      const end = await this.#follow(line, drinking)
      if (words.hasHungUp) return { kind: 'over' }
      return stands ? { kind: 'stood' } : end
    } finally {
      words.end()
      cut.abort()
    }
  }

  async #follow(line: TaskLine, drinking: Drinking): Promise<StreamEnd> {
    const { requestId, isTroubled, held, words, signal } = drinking
    // No stream either is nothing said.
    words.listen()
    const opened = await this.#open(line, requestId, signal)
    words.hear()
    if (opened instanceof WireError) return broken(opened.message, false)
    if (opened.kind === 'answered') {
      const text = { bytes: opened.body.length, agentId: line.agentId, signal: held.signal }
      const parse = (isHeavy: boolean) =>
        this.#t.pool.parseReply(line.endpoint, 'subscribe', opened, requestId, isHeavy ? held.signal : undefined)
      return unopened(await this.#t.pool.heavy.take(text, parse), opened.status)
    }
    if (opened.kind !== 'streaming') return failed(opened, false, held)
    try {
      if (isTroubled) await held.note({ type: 'opened' })
      return await this.#drink(opened, line, drinking)
    } catch (error) {
      if (!(error instanceof StreamBroken)) throw error
      return failed(error, true, held)
    } finally {
      await opened.close()
      // What follows is a look at the task, which may take as long as an answer.
      if (isTroubled) await held.note({ type: 'closed' })
    }
  }

  /** Until the stream ends: whether somebody else saw the task's end. */
  async #listen({ task }: TaskLine, { news }: Held, words: LastWords, over: AbortSignal): Promise<void> {
    for (let waitMs: number = limits.stream.idleMs; !over.aborted && !words.hasBegun;) {
      await news.wait(waitMs, over)
      // It may be this stream that told of it, and is over in the same turn: nothing is asked then.
      await setImmediate()
      if (over.aborted) return
      // What cannot be asked now is asked again soon, and seen in any case when the stream ends.
      const now = await readFollowed(this.#t.db.pool, task.id).catch(() => 'unasked' as const)
      waitMs = now === 'unasked' ? askAgainMs : limits.stream.idleMs
      if (now !== 'unasked' && now && isTerminal(now.state) && !over.aborted) words.begin()
    }
  }

  async #open(line: TaskLine, requestId: string, signal: AbortSignal): Promise<Sent | Streaming | WireError> {
    const options = { requestId, extensions: line.extensions }
    const request = encoded(() => encodeRequest(line.endpoint, 'subscribe', { id: line.task.remoteId }, options))
    if (request instanceof WireError) return request
    const opened = await this.#t.door.openStream(line.agentId, request, limits.stream, signal)
    const other = opened.kind === 'answered' && otherForm(request, opened.status)
    return other ? this.#t.door.openStream(line.agentId, other, limits.stream, signal) : opened
  }

  async #drink(
    stream: Streaming,
    line: TaskLine,
    { requestId, answered, held, words, signal, cut, stand }: Drinking,
  ): Promise<StreamEnd> {
    const parser = this.#t.pool.openStream({ endpoint: line.endpoint, requestId })
    const commits = new CommitQueue((events) => commitSeen(this.#t, line.task, 'stream', events, held), cut)
    const watch = new Rest(line.task, answered)
    const pace = new Pace()
    const gaps = new GapLooks(this.#t, line, held, signal)
    const asking = answered && isWaiting(line.task.state) ? setTimeout(stand, questionMs) : undefined
    const take = async (whole: WholeFrames, isHeavy: boolean): Promise<Taken> => {
      const events = await whole.parse(isHeavy ? held.signal : undefined)
      gaps.sees(events)
      await commits.add(events)
      for (const event of events) {
        const ended = refusedBy(event, true)
        if (ended) return ended
      }
      const { rests, isMore } = watch.sees(events)
      if (watch.hasMoved) clearTimeout(asking)
      else if (isMore) asking?.refresh()
      return rests ? { kind: 'closed' } : 'more'
    }
    const inTurn = (whole: WholeFrames): Promise<Taken> => this.#inTurn(whole, { line, held, commits, take })
    try {
      words.listen()
      for await (const chunk of stream.chunks) {
        words.hear()
        if (pace.add(chunk.length)) held.busy()
        const taken = await inTurn(parser.push(chunk))
        if (taken !== 'more') return taken
        if (gaps.isDue) await commits.settled().then(() => gaps.look())
        words.listen()
      }
      words.hear()
      const last = await inTurn(parser.end())
      return last === 'more' ? { kind: 'closed' } : last
    } finally {
      clearTimeout(asking)
      // However it ended, what was read before is stored before anybody looks at the task.
      await commits.settled()
    }
  }

  /**
   * What only adds to a large event that goes on passes by: no more of it is held than may be anyway (StreamParser), and nothing is read.
   * Without the lease nothing could be committed: a large event that waits leaves then, and one that is being read is left.
   */
  #inTurn(whole: WholeFrames, { line, held, commits, take }: Turn): Promise<Taken> {
    const text = { bytes: whole.bytes, agentId: line.agentId, signal: held.signal }
    return this.#t.pool.heavy.take(text, async (isHeavy) => {
      const taken = await take(whole, isHeavy)
      if (isHeavy) await commits.settled()
      return taken
    })
  }
}

const broken = (reason: string, opened: boolean): StreamEnd & { kind: 'broken' } => ({
  kind: 'broken',
  reason,
  opened,
  oversized: false,
})

/** Before it was opened or after. What is over a limit is so whosever turn it is. */
function failed(
  failure: { readonly code: OutboundCode; readonly message: string },
  opened: boolean,
  held: Held,
): StreamEnd {
  const oversized = failure.code === 'too-large'
  if (held.turn.aborted && !oversized) return { kind: 'yielded', opened }
  return { ...broken(failure.message, opened), oversized }
}

/** An event that could not be read may have been a chunk: from here on only the whole task can be trusted. */
function refusedBy(event: ParsedEvent, opened: boolean): StreamEnd | null {
  if (event.kind === 'invalid') return { ...broken(event.message, opened), oversized: event.oversized === true }
  if (event.kind !== 'refused') return null
  if (event.error.reason === 'TASK_NOT_FOUND') return { kind: 'gone' }
  if (opened) return null
  return saysNotOffered(event.error) ? { kind: 'unsupported' } : broken(errorWords(event.error), false)
}

/** What an answer means that is no stream: one that tells of the task is the agent's own, and says that it gives none. */
function unopened(event: ParsedEvent, status: number): StreamEnd {
  const end = refusedBy(event, false) ?? { kind: 'unsupported' }
  const isUnrouted = end.kind === 'broken' && !end.oversized && unroutedStatuses.has(status)
  return isUnrouted ? { kind: 'unrouted', reason: end.reason } : end
}

/** Whether a stream has come to rest. After an answer the agent's old question may stand there once more: it is not one. */
class Rest {
  readonly #task: FollowedTask
  #stale: boolean

  constructor(task: FollowedTask, answered: boolean) {
    this.#task = task
    this.#stale = answered
  }

  /** The old question is over. */
  get hasMoved(): boolean {
    return !this.#stale
  }

  /** `isMore`: something was told but a state. */
  sees(events: readonly ParsedEvent[]): { readonly rests: boolean; readonly isMore: boolean } {
    let rests = false
    let isMore = false
    for (const event of events) {
      if (event.kind !== 'observation') continue
      const { taskId, contextId, status } = event.observation
      if (taskId !== this.#task.remoteId || isOfAnother(contextId, this.#task.contextId)) continue
      if (!status) {
        isMore = true
        continue
      }
      const old = this.#stale && status.state === this.#task.state && sameInstant(status.timestamp, this.#task.stateAt)
      if (!old) this.#stale = false
      rests = !old && (isTerminal(status.state) || isWaiting(status.state))
    }
    return { rests, isMore }
  }
}

const sameInstant = (a: string | null, b: string | null): boolean =>
  a === b || (a !== null && b !== null && Date.parse(a) === Date.parse(b))
