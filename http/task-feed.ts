/**
 * One task's committed state as frames: a snapshot of each version that somebody is fast enough to see, then the stored
 * events it came from, with the side events in them. Reads only forward. Does not decide when a stream ends (stream.ts).
 */
import { parseCard } from '../a2a/card.ts'
import { decodeSideband, negotiatedSideband, type SidebandEvent } from '../a2a/extensions/sideband.ts'
import type { StreamResponse } from '../a2a/messages.ts'
import { normalise } from '../domain/observation.ts'
import { isSettled, type TaskView } from '../domain/task.ts'
import { readAgent } from '../persistence/agents.ts'
import { readEvents, readView, type StoredEvent, type TaskPulse } from '../persistence/task-views.ts'
import type { Door } from './door.ts'
import { frame } from './event-stream.ts'
import type { Standing } from './standing.ts'

/**
 * A snapshot is whole, so a task of n chunks sent at every version would be n² bytes. After one of s bytes the next waits
 * s / 1 MB/s, 50 ms at least; a version that settles the task waits for nothing.
 */
const snapshotGap = { leastMs: 50, bytesPerMs: 1_000 }
const pageOfEvents = 200
/** Side events remembered for telling duplicates, a stream. */
const rememberedKeys = 10_000

export interface FedTask {
  readonly standing: Standing
  readonly agentId: string
  readonly localId: string
  readonly fromPosition: number
}

export class TaskFeed {
  /** The last snapshot that was sent. */
  view: TaskView | null = null
  readonly #door: Door
  readonly #task: FedTask
  readonly #negotiated: readonly string[]
  readonly #heard = new Set<string>()
  #position: number
  #nextAt = -Infinity

  private constructor(door: Door, task: FedTask, negotiated: readonly string[]) {
    this.#door = door
    this.#task = task
    this.#negotiated = negotiated
    this.#position = task.fromPosition
  }

  /** For somebody who may read the task: by what its agent advertises, also where the agent was removed since. */
  static async open(door: Door, task: FedTask): Promise<TaskFeed> {
    const agent = await readAgent(door.db.pool, task.agentId)
    return new TaskFeed(door, task, negotiated(agent?.card ?? null, door.sidebandUris))
  }

  /** Frames that bring a reader up to a pulse, or beyond it; none for a task that is theirs to see no more. */
  async *read(pulse: TaskPulse, signal: AbortSignal): AsyncGenerator<string> {
    const { standing, localId } = this.#task
    const early = this.#nextAt - performance.now()
    if (early > 0 && !isSettled(pulse.state)) await standing.wait(early, signal)
    const { db, damaged } = this.#door
    const view = await readView(db.pool, await standing.viewer(), localId, damaged)
    if (!view) return
    if (view.version !== this.view?.version) {
      this.view = view
      const text = frame('snapshot', view)
      this.#nextAt = performance.now() + Math.max(snapshotGap.leastMs, text.length / snapshotGap.bytesPerMs)
      yield text
    }
    yield* this.#events(signal)
  }

  async *#events(signal: AbortSignal): AsyncGenerator<string> {
    const { standing, localId } = this.#task
    let page: readonly StoredEvent[]
    do {
      const from = { localId, position: this.#position, limit: pageOfEvents }
      page = await readEvents(this.#door.db.pool, await standing.viewer(), from)
      for (const stored of page) {
        // Whoever reads slowly may lose their access in the middle of a page: the rest of it is read again, if it may be.
        if (standing.hasMoved) break
        this.#position = stored.position + 1
        // What a person sent is stored beside the agent's words; it is in the snapshot, and no event of the agent.
        if (stored.source !== 'sent') yield this.#framesOf(stored)
      }
      // Where access is changed faster than it is read, the stream's own end is the end of reading again.
    } while (page.length === pageOfEvents || (standing.hasMoved && !signal.aborted))
  }

  #framesOf({ position, source, receivedAt, event }: StoredEvent): string {
    const meta = frame('meta', { position, source, receivedAt })
    // We wrote it from a checked event; only bytes were replaced by references.
    const said = JSON.parse(event) as StreamResponse
    const beside = decodeSideband(said, this.#negotiated).filter((each) => this.#isNew(each))
    return meta + frame('a2a', said) + beside.map((each) => frame('sideband', shown(each, receivedAt))).join('')
  }

  #isNew({ key }: SidebandEvent): boolean {
    if (this.#heard.has(key)) return false
    if (this.#heard.size < rememberedKeys) this.#heard.add(key)
    return true
  }
}

/** What the stored card advertises and this deployment understands. */
function negotiated(card: string | null, configured: readonly string[]): readonly string[] {
  const parsed = card === null ? { fault: 'never seen' } : parseCard(JSON.parse(card))
  return 'fault' in parsed ? [] : negotiatedSideband(parsed.card, configured)
}

/** A side event as a person's page reads it; one without a time of its own was said when it arrived. */
const shown = ({ key: _key, timestamp, parts, ...event }: SidebandEvent, receivedAt: string) => ({
  ...event,
  timestamp: timestamp ?? receivedAt,
  parts: parts.map((part, index) => ({ id: `${event.id}:${index}`, ...normalise(part) })),
})
