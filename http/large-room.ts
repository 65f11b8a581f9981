/**
 * Room for large answers that are made whole: so many bytes of them are made at once, as they are stored, from before one is read from
 * the database until its reader took it; as text for somebody they are up to twice that. Who has no room yet waits, and holds nothing:
 * thirty readers of a task of 30 MiB that take nothing would otherwise hold a gigabyte. A process has two rooms of answers, one for the frames of
 * event streams (stream.ts) and one for views (large-views.ts), so twice as much: a view waits for ten seconds only, and is not to wait for
 * readers of streams. Large bodies have a room like them. Does not decide how long somebody waits or may take (task-feed.ts, event-stream.ts,
 * large-views.ts, large-bodies.ts).
 */
import { placeIn, type RoomPlace } from '../actors/room-place.ts'
import { FairRoom, type RoomLimits } from '../domain/fair-room.ts'

const MiB = 1024 * 1024

/** What is smaller asks for no room. */
export const largeBytes = MiB
/** A task may grow while there is waited for room. */
export const growth = 1.25
/** What a reader takes of a large answer at least, on the average: a megabit a second. */
export const leastBytesPerMs = 128
/** Somebody is let in while less than this is inside: one answer may go beyond, and is alone there if it is larger. */
const roomBytes = 128 * MiB
/** One person's, in the same way: with many pages that read nothing they leave room for others. */
const roomBytesEach = 64 * MiB

/** There was no room for a large body in time, or somebody else had more use of it: that is no outage, and over as soon as others are. */
export class Crowded extends Error {
  override readonly name = 'Crowded'
  constructor() {
    super('Too many large messages are on their way; nothing was accepted.')
  }
}

export class LargeRoom {
  readonly #room: FairRoom

  /** Bytes; without a word those of answers. */
  constructor(limits: RoomLimits = { all: roomBytes, each: roomBytesEach }) {
    this.#room = new FairRoom(limits)
  }

  /** Bytes that have room, and how many wait for it. */
  get counts(): { readonly bytes: number; readonly waiting: number } {
    const { weight, waiting } = this.#room.counts
    return { bytes: weight, waiting }
  }

  place(person: string, bytes: number): RoomPlace {
    return placeIn(this.#room, person, bytes)
  }
}
