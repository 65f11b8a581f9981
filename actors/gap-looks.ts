/**
 * Looking at a task while a stream of it goes on that did not begin with it: what its agent said before is in no stream then. The stream is
 * held back meanwhile, so that nothing is told between the look and what is known. Owns when, and the look; not what of it is taken
 * (domain/stream-gap.ts). A stream that rests is reconciliation's to look beside, and a look at its end settles whatever is left.
 */
import { cutLook, shownParts, shownTask, StreamGaps } from '../domain/stream-gap.ts'
import { isTerminal } from '../domain/task.ts'
import { readArtifactParts } from '../persistence/artifact-parts.ts'
import { readFollowed } from '../persistence/tasks.ts'
import { textDigest } from '../persistence/text-digest.ts'
import type { Held } from './loop/kinds.ts'
import type { TaskLine } from './subscription-stream.ts'
import { commitSeen, lookAt, type LineTools } from './task-line.ts'
import type { SeenEvent } from './threads/messages.ts'

/** Until something was told by which a gap is found. The pause after each look is twice the one before, up to the usual one between two. */
const firstMs = 1_000
const pauseLimitMs = 15_000
/** For so long a stream may be held back by an agent that does not answer. */
const deadlineMs = 2_000
/** Looks in vain, in a row: who does not show its task holds its stream back no more. */
const vainLimit = 3
/** Characters of a look: reading a larger one here would keep all else waiting. Its stream's end, or its rest, sees to it. */
const lookLimit = 1024 * 1024

export class GapLooks {
  readonly #t: LineTools
  readonly #line: TaskLine
  readonly #held: Held
  readonly #signal: AbortSignal
  readonly #gaps = new StreamGaps()
  #pauseMs = firstMs
  #dueMs = performance.now() + firstMs
  #vain = 0
  #isOver = false

  /** `signal`: the stream's. */
  constructor(tools: LineTools, line: TaskLine, held: Held, signal: AbortSignal) {
    this.#t = tools
    this.#line = line
    this.#held = held
    this.#signal = signal
  }

  get isDue(): boolean {
    return !this.#isOver && performance.now() >= this.#dueMs
  }

  /** The whole task was shown, or no look will do: there is nothing to look for. */
  end(): void {
    this.#isOver = true
  }

  /** While nothing of the stream is read, and all that was is stored. Rejects where committing does. */
  async look(): Promise<void> {
    const wasSeen = await this.#look()
    this.#vain = wasSeen ? 0 : this.#vain + 1
    if (this.#vain === vainLimit) this.end()
    this.#pauseMs = Math.min(2 * this.#pauseMs, pauseLimitMs)
    this.#dueMs = performance.now() + this.#pauseMs
  }

  async #look(): Promise<boolean> {
    const { id } = this.#line.task
    const task = await readFollowed(this.#t.db.pool, id)
    if (!task || isTerminal(task.state)) return false
    const keep = async (event: SeenEvent): Promise<void> => {
      const cut = await this.#cut(event)
      if (cut) await commitSeen(this.#t, task, 'poll', [cut], this.#held, { asked: task.version })
    }
    const options = { deadlineMs, keep, lease: this.#held.signal }
    const { kind } = await lookAt(this.#t, this.#line, task.remoteId, this.#signal, options)
    return kind === 'seen'
  }

  async #cut(event: SeenEvent): Promise<SeenEvent | null> {
    const { event: text } = event.observation
    if (typeof text !== 'string' || text.length > lookLimit) {
      this.end()
      return null
    }
    const task = shownTask(text)
    if (!task) return null
    const shown = shownParts(task)
    const told = await readArtifactParts(this.#t.db.pool, this.#line.task.id, [...shown.keys()], lookLimit)
    return { ...event, observation: cutLook(task, this.#gaps.taken(shown, told, performance.now()), textDigest) }
  }
}
