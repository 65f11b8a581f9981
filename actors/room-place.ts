/** A visit to a room as whoever waits for it holds it: with a bell and a bound. Does not know whose turn it is (domain/fair-room.ts). */
import type { FairRoom } from '../domain/fair-room.ts'
import { Bell } from './loop/bell.ts'

/** A place, or the wait for one. */
export interface RoomPlace {
  /** There was room at once. */
  readonly isInside: boolean
  /** Waits for the place, so long at most; true once it is had. */
  readonly enter: (ms: number, signal: AbortSignal) => Promise<boolean>
  /** Whether it is had, and somebody would come in for it. */
  readonly isWanted: () => boolean
  /** Gives it up; once or more often. */
  readonly leave: () => void
}

export function placeIn(room: FairRoom, holder: string, weight: number): RoomPlace {
  const bell = new Bell()
  const visit = { holder, weight, letIn: () => bell.ring() }
  room.enter(visit)
  return {
    isInside: room.has(visit),
    enter: async (ms, signal) => {
      if (!room.has(visit)) await bell.wait(ms, signal)
      return room.has(visit)
    },
    isWanted: () => room.isWanted(visit),
    leave: () => room.leave(visit),
  }
}
