/**
 * One task's committed state as frames: a snapshot of each version that somebody is fast enough to see, then the stored
 * events it came from, with the side events in them. Reads only forward, and the next only when the one before was taken. Does not
 * decide when a stream ends (stream.ts).
 */
import { parseCard } from '../a2a/card.ts'
import { decodeSideband, negotiatedSideband, type SidebandEvent } from '../a2a/extensions/sideband.ts'
import type { StreamResponse } from '../a2a/messages.ts'
import { formatEvent } from '../a2a/sse.ts'
import { normalise } from '../domain/observation.ts'
import { isSettled, type TaskView } from '../domain/task.ts'
import { readAgent } from '../persistence/agents.ts'
import { readEvent, readEvents, type StoredEvent } from '../persistence/stored-events.ts'
import { readViewUpTo, type HeavyView, type TaskPulse, type TaskQuestion } from '../persistence/task-views.ts'
import type { Door } from './door.ts'
import { frame, ping } from './event-stream.ts'
import { growth, largeBytes, type LargeRoom } from './large-room.ts'
import type { Standing } from './standing.ts'

/**
 * A snapshot is whole, so a task of n chunks sent at every version would be n² bytes. After one of s bytes the next waits
 * s / 1 MB/s, 50 ms at least; a version that settles the task waits for nothing.
 */
const snapshotGap = { leastMs: 50, bytesPerMs: 1_000 }
const pageOfEvents = 200
/** A stream whose frame waits for room says this often that it is open, and asks whether its reader may still read. */
const stillHereMs = 5_000
/** Side events remembered for telling duplicates, a stream. */
const rememberedKeys = 10_000

export interface FedTask {
  readonly standing: Standing
  readonly agentId: string
  readonly localId: string
  readonly fromPosition: number
}

/** What remains of a snapshot that was sent: the task itself may be a hundred mebibytes, and a stream lasts for a minute. */
export interface Seen {
  readonly version: number
  readonly state: string
  readonly contextId: string | null
  readonly question: string
}

export class TaskFeed {
  /** Of the last snapshot that was sent. */
  seen: Seen | null = null
  readonly #door: Door
  readonly #room: LargeRoom
  readonly #task: FedTask
  readonly #negotiated: readonly string[]
  readonly #heard = new Set<string>()
  #position: number
  #nextAt = -Infinity

  private constructor(door: Door, room: LargeRoom, task: FedTask, negotiated: readonly string[]) {
    this.#door = door
    this.#room = room
    this.#task = task
    this.#negotiated = negotiated
    this.#position = task.fromPosition
  }

  /** For somebody who may read the task: by what its agent advertises, also where the agent was removed since. */
  static async open(door: Door, room: LargeRoom, task: FedTask): Promise<TaskFeed> {
    const agent = await readAgent(door.db.pool, task.agentId)
    return new TaskFeed(door, room, task, negotiated(agent?.card ?? null, door.sidebandUris))
  }

  /** Frames that bring a reader up to a pulse, or beyond it; none for a task that is theirs to see no more. */
  async *read(pulse: TaskPulse, signal: AbortSignal): AsyncGenerator<string> {
    const early = this.#nextAt - performance.now()
    if (early > 0 && !isSettled(pulse.state)) await this.#task.standing.wait(early, signal)
    // The last snapshot may have been of a later version than its pulse.
    if (pulse.version !== this.seen?.version) yield* this.#snapshot(signal)
    yield* this.#events(signal)
  }

  /** None where there was no room for it in the stream's time: it ends, and whoever opens the next waits again. */
  async *#snapshot(signal: AbortSignal): AsyncGenerator<string> {
    let looked = await this.#look(largeBytes)
    if (typeof looked === 'string') yield looked
    while (looked !== null && typeof looked !== 'string') {
      const most = looked.heavyBytes * growth
      looked = yield* this.#inRoom(most, signal, () => this.#look(most))
    }
  }

  /** The snapshot's frame, or how large it would be; null where it is not news, or not the reader's. */
  async #look(most: number): Promise<string | HeavyView | null> {
    const { standing, localId } = this.#task
    const { db, damaged } = this.#door
    const view = await readViewUpTo(db.pool, await standing.viewer(), { localId, most }, damaged)
    if (!view || 'heavyBytes' in view) return view
    if (view.version === this.seen?.version) return null
    const { version, state, contextId } = view
    this.seen = { version, state, contextId, question: questionIn(view) }
    const text = frame('snapshot', view)
    this.#nextAt = performance.now() + Math.max(snapshotGap.leastMs, text.length / snapshotGap.bytesPerMs)
    return text
  }

  /** Makes a frame once there is room for it, and keeps the room until it was taken. Null where there was none in time. */
  async *#inRoom<Made>(
    bytes: number,
    signal: AbortSignal,
    make: () => Promise<Made>,
  ): AsyncGenerator<string, Made | null> {
    const { standing } = this.#task
    const place = this.#room.place((await standing.viewer()).membershipId, bytes)
    try {
      while (!(await place.enter(stillHereMs, signal))) {
        if (signal.aborted) return null
        await standing.viewer()
        yield ping
      }
      const made = await make()
      if (typeof made === 'string') yield made
      return made
    } finally {
      place.leave()
    }
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
        const { source, event, bytes } = stored
        if (event !== null) yield this.#framesOf(stored, event)
        // What a person sent is stored beside the agent's words; it is in the snapshot, and no event of the agent.
        else if (source !== 'sent' && (yield* this.#inRoom(bytes, signal, () => this.#alone(stored))) === null) return
        this.#position = stored.position + 1
      }
      // What is not told by the end of the stream is told by the next one.
    } while ((page.at(-1)?.more || standing.hasMoved) && !signal.aborted)
  }

  /** An event that is read by itself. */
  async #alone(stored: StoredEvent): Promise<string | null> {
    const { standing, localId } = this.#task
    const { position } = stored
    const event = await readEvent(this.#door.db.pool, await standing.viewer(), { localId, position })
    return event === null ? null : this.#framesOf(stored, event)
  }

  #framesOf({ position, source, receivedAt }: StoredEvent, event: string): string {
    // We wrote it from a checked event, with bytes replaced by references: it goes as it is kept.
    const told = frame('meta', { position, source, receivedAt }) + formatEvent({ event: 'a2a', data: event })
    if (!mayTellBeside(event, this.#negotiated)) return told
    const said = JSON.parse(event) as StreamResponse
    const beside = decodeSideband(said, this.#negotiated).filter((each) => this.#isNew(each))
    return told + beside.map((each) => frame('sideband', shown(each, receivedAt))).join('')
  }

  #isNew({ key }: SidebandEvent): boolean {
    if (this.#heard.has(key)) return false
    if (this.#heard.size < rememberedKeys) this.#heard.add(key)
    return true
  }
}

/** Whether anything that side events are found by is in the text, as `JSON.stringify` wrote it: few of them have to be read. */
const mayTellBeside = (event: string, uris: readonly string[]): boolean =>
  uris.length > 0 &&
  (event.includes('"sideband') || uris.some((uri) => event.includes(JSON.stringify(uri).slice(1, -1))))

/** What a waiting task asks, to tell it from what it asked before. */
export const questionOf = ({ moves, lastWords }: TaskQuestion): string => JSON.stringify([moves, lastWords])

const questionIn = ({ transitions, messages }: TaskView): string =>
  questionOf({ moves: transitions.length, lastWords: messages.findLast(({ role }) => role === 'agent')?.id ?? '' })

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
