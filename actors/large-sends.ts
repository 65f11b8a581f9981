/**
 * Room for what is large in deliveries: so many bytes of people's words are under way to agents at once, and of one agent fewer, from
 * before a body is read until its agent has answered. As values, as a request and as what is on its way of it they are three times that,
 * and an agent that reads and says nothing keeps them for a minute: 64 sends of 14 MiB to one of these ended the process, and with it
 * every delivery under way.
 *
 * Who finds no room waits for its turn for a while, a few of each agent, and then in its row, where it takes no place from what is small
 * and other processes may have room for it. Nothing of it has begun meanwhile (loop/beforehand.ts). Does not read or send (delivery.ts).
 */
import { FairRoom, type RoomLimits, type Visit } from '../domain/fair-room.ts'
import type { ActorRef } from '../persistence/actors.ts'
import { Bell } from './loop/bell.ts'
import type { Held } from './loop/kinds.ts'
import { PutOff } from './loop/lease.ts'

const MiB = 1024 * 1024

export interface LargeSendsLimits extends RoomLimits {
  /** What is no larger asks for no room: of as many as there are places for, it is less than there is room for. */
  readonly largeBytes: number
  /** How many wait in this process, and of one agent: each has a place that others cannot have meanwhile (Kind.concurrency). */
  readonly waiting: number
  readonly waitingEach: number
  /** How long one does. */
  readonly waitMs: number
}

/** Bodies are of 16 MiB at most: of one agent two or more are let in, and one of each of six others. */
const usual: LargeSendsLimits = {
  all: 96 * MiB,
  each: 16 * MiB,
  largeBytes: 256 * 1024,
  waiting: 32,
  waitingEach: 8,
  waitMs: 10_000,
}
/** Those that wait in their rows come again one after the other: a crowd that came at once would be a thousand statements a second. */
const firstPauseMs = 1_000
const betweenMs = 50
const longestPauseMs = 60_000

export interface SendingPlace {
  /** There was room at once. */
  readonly isInside: boolean
  /** Waits for room. Rejects with PutOff where there is none in time, and with LeaseLost where a drain or the lease ends the wait. */
  readonly enter: (ref: ActorRef, held: Pick<Held, 'beforehand'>) => Promise<void>
  /** Gives the place up; once or more often. */
  readonly leave: () => void
}

const free: SendingPlace = { isInside: true, enter: () => Promise.resolve(), leave: () => undefined }

export class LargeSends {
  /** Of what is larger a delivery is to take a place here before it is read. */
  readonly largeBytes: number
  readonly #limits: LargeSendsLimits
  readonly #room: FairRoom
  /** By agent: how many wait here. */
  readonly #waiting = new Map<string, number>()
  /** Monotonic milliseconds: when the last that was put off comes again. */
  #lastComesAt = 0

  constructor(limits: Partial<LargeSendsLimits> = {}) {
    this.#limits = { ...usual, ...limits }
    this.largeBytes = this.#limits.largeBytes
    this.#room = new FairRoom(this.#limits)
  }

  place(agentId: string, bytes: number): SendingPlace {
    if (bytes <= this.largeBytes) return free
    const bell = new Bell()
    const visit: Visit = { holder: agentId, weight: bytes, letIn: () => bell.ring() }
    this.#room.enter(visit)
    return {
      isInside: this.#room.has(visit),
      enter: async (ref, held) => {
        const ofAgent = this.#waiting.get(agentId) ?? 0
        const { waiting, waitingEach, waitMs } = this.#limits
        if (ofAgent >= waitingEach || this.#room.counts.waiting > waiting) throw this.#putOff(ref)
        this.#waiting.set(agentId, ofAgent + 1)
        try {
          await held.beforehand(async (signal) => {
            await bell.wait(waitMs, signal)
            if (!signal.aborted && !this.#room.has(visit)) throw this.#putOff(ref)
          })
        } finally {
          this.#noLongerWaits(agentId)
        }
      },
      leave: () => this.#room.leave(visit),
    }
  }

  #noLongerWaits(agentId: string): void {
    const left = (this.#waiting.get(agentId) ?? 0) - 1
    if (left > 0) this.#waiting.set(agentId, left)
    else this.#waiting.delete(agentId)
  }

  #putOff(ref: ActorRef): PutOff {
    const now = performance.now()
    const comesAt = Math.max(now + firstPauseMs, this.#lastComesAt + betweenMs)
    this.#lastComesAt = Math.min(comesAt, now + longestPauseMs)
    return new PutOff(ref, Math.round(this.#lastComesAt - now))
  }
}
