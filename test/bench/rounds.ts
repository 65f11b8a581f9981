/** One round of a flow: accept with N hands for a while, count what is finished, then wait until everything is. */
import { setTimeout as pause } from 'node:timers/promises'

/** All per second. `window`: finished while accepting went on. `through`: accepted over the time until all were finished. */
export interface Flow {
  readonly accepted: number
  readonly window: number
  readonly through: number
}

const drainLimitMs = 60_000
const lookMs = 10

export async function flow(round: {
  readonly forMs: number
  readonly concurrency: number
  readonly accept: (n: number) => Promise<unknown>
  /** Accepted, in this round or before, and not finished. */
  readonly unfinished: () => number | Promise<number>
}): Promise<Flow> {
  const startMs = performance.now()
  let accepted = 0
  const hand = async (): Promise<void> => {
    while (performance.now() - startMs < round.forMs) await round.accept(accepted++)
  }
  await Promise.all(Array.from({ length: round.concurrency }, hand))
  const acceptMs = performance.now() - startMs
  const left = await round.unfinished()
  await until(async () => (await round.unfinished()) === 0)
  const allMs = performance.now() - startMs
  const perSecond = (count: number, ms: number): number => (count * 1000) / ms
  return {
    accepted: perSecond(accepted, acceptMs),
    window: perSecond(accepted - left, acceptMs),
    through: perSecond(accepted, allMs),
  }
}

/** Looks again every few milliseconds; fails after a minute. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const startMs = performance.now()
  while (!(await holds())) {
    if (performance.now() - startMs > drainLimitMs) throw new Error('What was accepted is not finished after a minute.')
    await pause(lookMs)
  }
}
