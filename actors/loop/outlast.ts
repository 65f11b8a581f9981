/**
 * Work that a database which is away, or does not keep up, only delays: it is tried again for as long as its lease is trusted.
 * Does not know what the work is; who gives up, and what that means, is the worker's (worker.ts).
 */
import type { ActorRef } from '../../persistence/actors.ts'
import { isDatabaseAway, isDatabaseOutage, isOutage } from '../../persistence/outage.ts'
import { Bell } from './bell.ts'
import type { Held } from './kinds.ts'
import { LeaseLost } from './lease.ts'

/** Doubled by each try: what is tried again may ask an agent something before it finds the database away. */
const pauseFromMs = 250
const pauseToMs = 5_000
/**
 * Some ten seconds: what concerns one row alone would otherwise be met for ever, and nobody would know. A database that is away as a whole is
 * known to everybody, and its end is not the agent's to wait for: it uses up none of them.
 */
const repeatsLimit = 6

interface Patience {
  readonly triesLimit?: number
  /** What uses up none of the tries. */
  readonly isFree?: (error: unknown) => boolean
  /** After so many milliseconds nothing is tried again; the last try begins by then. */
  readonly longestMs?: number
  readonly delays?: (error: unknown) => boolean
  /** Told of the first failure that something is waited for. */
  readonly waits?: (error: unknown) => void
}

/** Rejects with what only delays once the lease is not trusted any more or all tries are used up, and at once with anything else. */
export async function whileHeld<T>(
  held: Pick<Held, 'signal' | 'isHeld'>,
  work: () => Promise<T>,
  patience: Patience = {},
): Promise<T> {
  const { triesLimit = Infinity, longestMs = Infinity, delays = isOutage, isFree = () => false } = patience
  const since = performance.now()
  let pauseMs = pauseFromMs
  let tries = 0
  for (let begun = 1; ; begun++) {
    try {
      return await work()
    } catch (error) {
      const leftMs = longestMs - (performance.now() - since)
      if (!isFree(error)) tries += 1
      const isOver = tries >= triesLimit || leftMs <= 0
      if (isOver || !delays(error) || !held.isHeld()) throw error
      if (begun === 1) patience.waits?.(error)
      await new Bell().wait(Math.min(pauseMs, leftMs), held.signal)
      pauseMs = Math.min(pauseToMs, pauseMs * 2)
    }
  }
}

/** The same for what harms nobody when it is done again: it rejects with LeaseLost, and so goes back unbegun. */
export async function unlessLost<T>(
  ref: ActorRef,
  held: Pick<Held, 'signal' | 'isHeld'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await whileHeld(held, work)
  } catch (error) {
    throw isOutage(error) ? new LeaseLost(ref) : error
  }
}

/** What nothing hangs on: left out while the database is away or the lease is not ours, of both of which the work hears anyway. */
export async function ifPossible(telling: Promise<unknown>): Promise<void> {
  try {
    await telling
  } catch (error) {
    if (!isOutage(error) && !(error instanceof LeaseLost)) throw error
  }
}

/** Work that does not keep its place from those who wait for it while it is tried again. */
export function inTurn<T>(ref: ActorRef, held: Held, work: () => Promise<T>): () => Promise<T> {
  let isAgain = false
  return () => {
    if (isAgain && held.turn.aborted) throw new LeaseLost(ref)
    isAgain = true
    return work()
  }
}

/**
 * A whole piece of repeatable work, begun anew after an outage of the database, of which `met` hears once: none of the machine's tries is
 * used up, and nothing is told of an agent that has done nothing. A database that is away is waited for as long as the lease is held; then
 * the work goes back unbegun. What goes on while everybody else is answered is one row's trouble, and the machine's to judge.
 */
export async function repeated<T>(
  ref: ActorRef,
  held: Held,
  work: () => Promise<T>,
  met: (error: unknown) => void,
): Promise<T> {
  let isKnown = false
  const delays = (error: unknown): boolean => {
    const isAway = isDatabaseOutage(error)
    if (isAway && !isKnown) met(error)
    isKnown ||= isAway
    return isAway
  }
  try {
    return await whileHeld(held, inTurn(ref, held, work), { triesLimit: repeatsLimit, isFree: isDatabaseAway, delays })
  } catch (error) {
    throw isDatabaseAway(error) || (isDatabaseOutage(error) && !held.isHeld()) ? new LeaseLost(ref) : error
  }
}
