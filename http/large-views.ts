/**
 * Answers with large views of tasks: one is read and made once there is room for it, and has that room until its reader took it. A
 * reader that takes too long of it is let go, and who finds no room for long is told to come again. Does not own how large a view is
 * (persistence/task-weights.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Viewer } from '../domain/access.ts'
import { Refusal } from '../domain/refusal.ts'
import type { HeavyView } from '../persistence/task-views.ts'
import { admitted, viewerOf } from './guard.ts'
import { growth, largeBytes, LargeRoom, leastBytesPerMs } from './large-room.ts'
import { goneSignal, openWindow, ownConnection } from './watch.ts'

/** A page is waited for no longer by most who look at it. */
const waitMs = 10_000
/** From when there is room: for reading and making it, and for a reader that stands still for a while. */
const answerMs = 60_000

export class LargeViews {
  readonly #room = new LargeRoom()
  readonly #drain: AbortSignal

  constructor(drain: AbortSignal) {
    this.#drain = drain
  }

  /**
   * What `look` found. It may show so many bytes, and tells how many it would show where that is not enough: then it is called again,
   * once there is room, with who asks as they are then.
   */
  async read<Found extends object>(
    request: FastifyRequest,
    reply: FastifyReply,
    look: (most: number, viewer: Viewer) => Promise<Found | HeavyView>,
  ): Promise<Found> {
    let looked = await look(largeBytes, viewerOf(request))
    if (!isHeavy(looked)) return looked
    await ownConnection(reply.raw)
    const window = openWindow(waitMs, goneSignal(reply), this.#drain)
    try {
      // It may have grown beyond what it has room for, and then waits anew, for what is left of the time.
      while (isHeavy(looked))
        looked = await this.#inRoom(request, reply, looked.heavyBytes * growth, window.signal, look)
    } finally {
      window.close()
    }
    return looked
  }

  /** With room for so much, which the answer keeps until its end. */
  async #inRoom<Found extends object>(
    request: FastifyRequest,
    reply: FastifyReply,
    bytes: number,
    signal: AbortSignal,
    look: (most: number, viewer: Viewer) => Promise<Found | HeavyView>,
  ): Promise<Found | HeavyView> {
    const place = this.#room.place(viewerOf(request).membershipId, bytes)
    try {
      if (signal.aborted || !(await place.enter(waitMs, signal)) || reply.raw.destroyed)
        throw new Refusal('task.views.room')
      const looked = await look(bytes, await admitted(request))
      if (isHeavy(looked) || reply.raw.destroyed) place.leave()
      else keepUntilOver(request, reply, bytes, place.leave)
      return looked
    } catch (error) {
      place.leave()
      throw error
    }
  }
}

function keepUntilOver(request: FastifyRequest, { raw }: FastifyReply, bytes: number, leave: () => void): void {
  const late = setTimeout(
    () => {
      request.log.debug('a large answer took too long')
      raw.destroy()
    },
    answerMs + bytes / leastBytesPerMs,
  )
  raw.once('close', () => {
    clearTimeout(late)
    leave()
  })
}

const isHeavy = (looked: object): looked is HeavyView => 'heavyBytes' in looked
