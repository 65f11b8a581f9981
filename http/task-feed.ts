/**
 * One task's committed state as frames: a snapshot of each version that somebody is fast enough to see, then the stored
 * events it came from, with the side events in them. Reads only forward. Does not decide when a stream ends (stream.ts).
 */
import { parseCard } from '../a2a/card.ts'
import { decodeSideband, negotiatedSideband, type SidebandEvent } from '../a2a/extensions/sideband.ts'
import type { StreamResponse } from '../a2a/wire.ts'
import { Bell } from '../actors/bell.ts'
import type { Viewer } from '../domain/access.ts'
import { normalise } from '../domain/observation.ts'
import { isSettled, type TaskView } from '../domain/task.ts'
import { findAgent } from '../persistence/agents.ts'
import { readEvents, readView, type StoredEvent, type TaskPulse } from '../persistence/task-views.ts'
import type { Door } from './door.ts'
import { frame } from './event-stream.ts'

/**
 * A snapshot is whole, so a task of n chunks sent at every version would be n² bytes. After one of s bytes the next waits
 * s / 1 MB/s, 50 ms at least; a version that settles the task waits for nothing.
 */
const snapshotGap = { leastMs: 50, bytesPerMs: 1_000 }
const pageOfEvents = 200
/** Side events remembered for telling duplicates, a stream. */
const rememberedKeys = 10_000

export interface FedTask {
  readonly agentId: string
  readonly localId: string
  readonly fromPosition: number
}

export class TaskFeed {
  /** The last snapshot that was sent. */
  view: TaskView | null = null
  readonly #door: Door
  readonly #organizationId: string
  readonly #task: FedTask
  readonly #negotiated: readonly string[]
  readonly #heard = new Set<string>()
  #position: number
  #nextAt = -Infinity

  private constructor(door: Door, organizationId: string, task: FedTask, negotiated: readonly string[]) {
    this.#door = door
    this.#organizationId = organizationId
    this.#task = task
    this.#negotiated = negotiated
    this.#position = task.fromPosition
  }

  static async open(door: Door, { organizationId }: Viewer, task: FedTask): Promise<TaskFeed> {
    const agent = await findAgent(door.db.pool, organizationId, task.agentId)
    return new TaskFeed(door, organizationId, task, negotiated(agent?.card ?? null, door.sidebandUris))
  }

  /** Frames that bring a reader up to a pulse, or beyond it. */
  async *read(pulse: TaskPulse, signal: AbortSignal): AsyncGenerator<string> {
    const early = this.#nextAt - performance.now()
    if (early > 0 && !isSettled(pulse.state)) await new Bell().wait(early, signal)
    const { pool } = this.#door.db
    const view = await readView(pool, this.#organizationId, this.#task.localId)
    if (!view) return
    if (view.version !== this.view?.version) {
      this.view = view
      const text = frame('snapshot', view)
      this.#nextAt = performance.now() + Math.max(snapshotGap.leastMs, text.length / snapshotGap.bytesPerMs)
      yield text
    }
    yield* this.#events()
  }

  async *#events(): AsyncGenerator<string> {
    const { localId } = this.#task
    let page: readonly StoredEvent[]
    do {
      page = await readEvents(this.#door.db.pool, localId, this.#position, pageOfEvents)
      for (const stored of page) {
        this.#position = stored.position + 1
        // What a person sent is stored beside the agent's words; it is in the snapshot, and no event of the agent.
        if (stored.source !== 'sent') yield this.#framesOf(stored)
      }
    } while (page.length === pageOfEvents)
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
