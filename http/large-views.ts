/**
 * Answers with large views of tasks: one is read and made once there is room for it, and has that room until its reader took it. A
 * reader that takes too long of it is let go, and who finds no room for long is told to come again. Does not own how large a view is
 * (persistence/task-weights.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../domain/refusal.ts'
import type { HeavyView } from '../persistence/task-views.ts'
import { viewerOf } from './guard.ts'
import { growth, largeBytes, LargeRoom, leastBytesPerMs } from './large-room.ts'

/** A page is waited for no longer by most who look at it. */
const waitMs = 10_000
/** From when there is room: for reading and making it, and for a reader that stands still for a while. */
const answerMs = 60_000

export class LargeViews {
  readonly #room: LargeRoom

  constructor(room = new LargeRoom()) {
    this.#room = room
  }

  /** What `look` found; it may show so many bytes, and tells how many it would show where that is not enough. */
  async read<Found extends object>(
    request: FastifyRequest,
    reply: FastifyReply,
    look: (most: number) => Promise<Found | HeavyView>,
  ): Promise<Found> {
    let looked = await look(largeBytes)
    while (isHeavy(looked)) {
      const bytes = looked.heavyBytes * growth
      const leave = await this.#enter(request, reply, bytes)
      try {
        looked = await look(bytes)
        // It has grown beyond what it has room for.
        if (isHeavy(looked)) leave()
      } catch (error) {
        leave()
        throw error
      }
    }
    return looked
  }

  /** Resolves with what gives the room up; an answer's end does so, too. */
  async #enter(request: FastifyRequest, { raw }: FastifyReply, bytes: number): Promise<() => void> {
    const place = this.#room.place(viewerOf(request).membershipId, bytes)
    const gone = new AbortController()
    const hasGone = (): void => gone.abort()
    raw.once('close', hasGone)
    const isIn = !raw.destroyed && (await place.enter(waitMs, gone.signal))
    raw.off('close', hasGone)
    if (!isIn || raw.destroyed) {
      place.leave()
      throw new Refusal('task.views.room')
    }
    const late = setTimeout(
      () => {
        request.log.debug('a client took too long for a large answer')
        raw.destroy()
      },
      answerMs + bytes / leastBytesPerMs,
    )
    const leave = (): void => {
      clearTimeout(late)
      raw.off('close', leave)
      place.leave()
    }
    raw.once('close', leave)
    return leave
  }
}

const isHeavy = (looked: object): looked is HeavyView => 'heavyBytes' in looked
