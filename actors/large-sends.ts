/**
 * Room for what is large in deliveries: so many bytes of people's words are under way to agents at once, and of one agent fewer, from
 * before a body is read until its agent has answered. As values, as a request and as what is on its way of it they are three times that,
 * and an agent that reads and says nothing keeps them for a minute: 64 sends of 14 MiB to one of these ended the process, and with it
 * every delivery under way.
 *
 * Who finds no room waits for its turn for a while, a few of each agent, and then in its row, where it takes no place from what is small
 * and other processes may have room for it. The first of an agent that has nothing under way waits apart from those, and for some
 * times as long as an agent has for its answer: whose turn it is is known only of those that wait here, and four agents that hang fill the crowd.
 * Nothing of it has begun meanwhile (loop/beforehand.ts). Does not read or send (delivery.ts).
 */
import { FairRoom, type RoomLimits } from '../domain/fair-room.ts'
import type { ActorRef } from '../persistence/actors.ts'
import type { Held } from './loop/kinds.ts'
import { PutOff } from './loop/lease.ts'
import { remember } from './remember.ts'
import { placeIn } from './room-place.ts'

const MiB = 1024 * 1024

export interface LargeSendsLimits extends RoomLimits {
  /** What is no larger asks for no room: of as many as there are places for, it is less than there is room for. */
  readonly largeBytes: number
  /** How many wait in this process, and of one agent: each has a place that others cannot have meanwhile (Kind.concurrency). */
  readonly waiting: number
  readonly waitingEach: number
  /** How long one does. */
  readonly waitMs: number
  /** Of how many agents with nothing under way the first waits, besides, and how long. */
  readonly firstWaiting: number
  readonly firstWaitMs: number
}

/**
 * Bodies are of 16 MiB at most: of three agents two or more are let in, or one of each of six, and beside all of these what is smaller. Never
 * is as much as 112 MiB inside.
 */
const usual: LargeSendsLimits = {
  all: 80 * MiB,
  each: 16 * MiB,
  first: 112 * MiB,
  largeBytes: 256 * 1024,
  waiting: 32,
  waitingEach: 8,
  waitMs: 10_000,
  firstWaiting: 64,
  firstWaitMs: 300_000,
}
/**
 * Those that wait in their rows come again one after the other, each agent's by themselves: a crowd that came at once would be a thousand
 * statements a second. The more agents have such, the longer it is between two of one.
 */
const firstPauseMs = 1_000
const betweenMs = 50
const longestPauseMs = 60_000
/** Agents whose last that was put off is remembered; of more, one that is forgotten comes a little early. */
const rememberedLimit = 1_000

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
  /** Agents whose first waits here apart from the others. */
  readonly #firsts = new Set<string>()
  /** How many of those that wait are no such. */
  #crowd = 0
  /** By agent, monotonic milliseconds: when its last that was put off comes again. */
  readonly #lastComesAt = new Map<string, number>()

  constructor(limits: Partial<LargeSendsLimits> = {}) {
    this.#limits = { ...usual, ...limits }
    this.largeBytes = this.#limits.largeBytes
    this.#room = new FairRoom(this.#limits)
  }

  place(agentId: string, bytes: number): SendingPlace {
    if (bytes <= this.largeBytes) return free
    const place = placeIn(this.#room, agentId, bytes)
    return {
      isInside: place.isInside,
      enter: async (ref, held) => {
        const queue = this.#queue(agentId)
        if (!queue) throw this.#putOff(agentId, ref)
        try {
          await held.beforehand(async (signal) => {
            const isInside = await place.enter(queue.waitMs, signal)
            if (!isInside && !signal.aborted) throw this.#putOff(agentId, ref)
          })
        } finally {
          queue.leave()
        }
      },
      leave: place.leave,
    }
  }

  /** Null: too many wait already. */
  #queue(agentId: string): { readonly waitMs: number; readonly leave: () => void } | null {
    const ofAgent = this.#waiting.get(agentId) ?? 0
    const { waiting, waitingEach, waitMs, firstWaiting, firstWaitMs } = this.#limits
    const isAlone = ofAgent === 0 && this.#room.weightOf(agentId) === 0
    const isFirst = isAlone && this.#firsts.size < firstWaiting
    if (ofAgent >= waitingEach || (!isFirst && this.#crowd >= waiting)) return null
    this.#waiting.set(agentId, ofAgent + 1)
    if (isFirst) this.#firsts.add(agentId)
    else this.#crowd += 1
    const leave = (): void => {
      if (isFirst) this.#firsts.delete(agentId)
      else this.#crowd -= 1
      const left = (this.#waiting.get(agentId) ?? 0) - 1
      if (left > 0) this.#waiting.set(agentId, left)
      else this.#waiting.delete(agentId)
    }
    return { waitMs: isFirst ? firstWaitMs : waitMs, leave }
  }

  #putOff(agentId: string, ref: ActorRef): PutOff {
    const now = performance.now()
    for (const [agent, at] of this.#lastComesAt) if (at <= now) this.#lastComesAt.delete(agent)
    const last = this.#lastComesAt.get(agentId) ?? -Infinity
    remember(this.#lastComesAt, agentId, last, rememberedLimit)
    const soonest = Math.max(now + firstPauseMs, last + betweenMs * this.#lastComesAt.size)
    const comesAt = Math.min(soonest, now + longestPauseMs)
    this.#lastComesAt.set(agentId, comesAt)
    return new PutOff(ref, Math.round(comesAt - now))
  }
}
