/**
 * Looking at a task while a stream of it goes on that did not begin with it: what its agent said before is in no stream then. The stream is
 * held back meanwhile, so that nothing is told between the look and what is known. Owns when, and the look; not what of it is taken
 * (domain/stream-gap.ts). A stream that rests is reconciliation's to look beside, and a look at its end settles whatever is left.
 */
import { decodeText } from '../domain/json-text.ts'
import { cutLook, shownParts, shownTask, StreamGaps } from '../domain/stream-gap.ts'
import { isTerminal } from '../domain/task.ts'
import { readArtifactParts } from '../persistence/artifact-parts.ts'
import { isDatabaseOutage } from '../persistence/outage.ts'
import { isOfAnother, readFollowed } from '../persistence/tasks.ts'
import { textDigest } from '../persistence/text-digest.ts'
import { lookEnded, type LookEnded } from './diagnostics.ts'
import type { Held } from './loop/kinds.ts'
import type { TaskLine } from './subscription-stream.ts'
import { commitSeen, lookAt, type LineTools } from './task-line.ts'
import type { ParsedEvent, SeenEvent } from './threads/messages.ts'

/** Until something was told by which a gap is found. The pause after each look is twice the one before, up to the usual one between two. */
const firstMs = 1_000
const pauseLimitMs = 15_000
/** For so long a stream may be held back by an agent that does not answer. */
const deadlineMs = 2_000
/** Who begins more artifacts in one stream is not looked beside. */
const begunLimit = 1_000
/** Looks in a row that saw nothing: who does not show its task holds its stream back no more. A database that is away is nothing of the agent's. */
const vainLimit = 3
/** Of the newest messages: each look in which one is new is kept. Others are seen at the stream's end. */
const historyLength = 50
/** Bytes of a look: reading a larger one here would keep all else waiting. Its stream's end, or its rest, sees to it. */
const lookLimit = 512 * 1024
/** The same as it is kept, where each part says of which kind it is. */
const storedLimit = 8 * lookLimit

export class GapLooks {
  readonly #t: LineTools
  readonly #line: TaskLine
  readonly #held: Held
  readonly #signal: AbortSignal
  readonly #gaps = new StreamGaps()
  #pauseMs = firstMs
  #dueMs = performance.now() + firstMs
  #vain = 0
  /** The whole task was shown, or no look will do: there is nothing to look for. */
  #isOver = false
  /** Something was told since the last look: a stream that is only kept alive rests. */
  #hasTold = false
  /** Artifacts that were begun in the stream, by the agent's ids: all of them is told there. */
  readonly #begun = new Set<string>()

  /** `signal`: the stream's. */
  constructor(tools: LineTools, line: TaskLine, held: Held, signal: AbortSignal) {
    this.#t = tools
    this.#line = line
    this.#held = held
    this.#signal = signal
  }

  get isDue(): boolean {
    return !this.#isOver && this.#hasTold && performance.now() >= this.#dueMs
  }

  /** What the stream tells. */
  sees(events: readonly ParsedEvent[]): void {
    this.#hasTold ||= events.length > 0
    const { remoteId, contextId: ours } = this.#line.task
    for (const event of events) {
      if (this.#isOver) return
      if (event.kind !== 'observation') continue
      const { kind, taskId, contextId, artifacts } = event.observation
      if (taskId !== remoteId || isOfAnother(contextId, ours)) continue
      if (kind === 'task' || this.#begun.size > begunLimit) this.#end()
      else for (const { artifactId, append } of artifacts) if (!append) this.#begun.add(artifactId)
    }
  }

  #end(): void {
    this.#isOver = true
    this.#begun.clear()
  }

  /** While nothing of the stream is read, and all that was is stored. Rejects where committing does. */
  async look(): Promise<void> {
    this.#hasTold = false
    const since = performance.now()
    const end = await this.#look()
    lookEnded.publish({ end, seconds: (performance.now() - since) / 1000 })
    if (end !== 'put off') this.#vain = end === 'seen' ? 0 : this.#vain + 1
    if (this.#vain === vainLimit) this.#end()
    this.#pauseMs = Math.min(2 * this.#pauseMs, pauseLimitMs)
    this.#dueMs = performance.now() + this.#pauseMs
  }

  async #look(): Promise<LookEnded['end']> {
    const task = await unlessAway(readFollowed(this.#t.db.pool, this.#line.task.id))
    if (task === 'away') return 'put off'
    // Removed, or somebody else told its end, with all that there is.
    if (!task || isTerminal(task.state)) return 'seen'
    let isKnown = true
    const keep = async (event: SeenEvent): Promise<void> => {
      const cut = await this.#cut(event)
      isKnown = cut !== 'away'
      if (cut && cut !== 'away') await commitSeen(this.#t, task, 'poll', [cut], this.#held, { asked: task.version })
    }
    const options = { deadlineMs, historyLength, maxBytes: lookLimit, keep, lease: this.#held.signal }
    // The agent's token may have to be asked for first.
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(deadlineMs)])
    const look = await lookAt(this.#t, this.#line, task.remoteId, signal, options)
    if (look.kind === 'unread' && look.oversized) this.#end()
    if (look.kind !== 'seen') return 'unread'
    return isKnown ? 'seen' : 'put off'
  }

  /** What of it is to be kept; null where it shows no task. */
  async #cut(event: SeenEvent): Promise<SeenEvent | null | 'away'> {
    const task = shownTask(decodeText(event.observation.event))
    if (!task) return null
    const shown = new Map([...shownParts(task)].filter(([artifactId]) => !this.#begun.has(artifactId)))
    const { pool } = this.#t.db
    const told = await unlessAway(readArtifactParts(pool, this.#line.task.id, [...shown.keys()], storedLimit))
    if (told === 'away') return told
    return { ...event, observation: cutLook(task, this.#gaps.taken(shown, told, performance.now()), textDigest) }
  }
}

/** The stream is not worth less for a look that cannot be had while the database is away. */
async function unlessAway<Read>(reading: Promise<Read>): Promise<Read | 'away'> {
  try {
    return await reading
  } catch (error) {
    if (isDatabaseOutage(error)) return 'away'
    throw error
  }
}
