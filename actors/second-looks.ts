/**
 * Agents' clocks: a status is told late where its time is before the one that is known, and nobody can tell that from a clock that
 * runs back: of a replica, of a library that writes whole seconds. What a task looks like whenever it is asked for is how it stands.
 * Decides when that is so; what it changes is the fold's (domain/fold.ts), and whether anything was heard meanwhile observe.ts sees.
 */
import { isBefore, isSaid } from '../domain/fold.ts'
import type { Observation } from '../domain/observation.ts'
import type { FollowedTask } from '../persistence/tasks.ts'
import { remember } from './remember.ts'

/** Longer than a replica of an agent lags behind, and no longer than three looks of a task that is followed: 0, 1 and 3 s. */
const steadyMs = 3_000
/** Where the state is the same, it is of what was made only; replicas that put their own present time on it would be kept with every look. */
const steadyAloneMs = 60_000
/** A doubt is of looks that follow each other, a minute apart at the most (reconciliation's list). */
const lastingMs = 5 * 60_000
/** A few dozen bytes each. */
const doubtsRemembered = 10_000

type KnownTask = Pick<FollowedTask, 'id' | 'state' | 'stateAt' | 'version'>

interface Doubt {
  readonly version: number
  readonly shown: string
  readonly sinceMs: number
  readonly lastMs: number
}

/** One a process: what a follower sees and what reconciliation sees is of one task. */
export class SecondLooks {
  readonly #monotonic: () => number
  readonly #doubts = new Map<string, Doubt>()

  /** `monotonic`: milliseconds. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /**
   * The version that was known when the agent was asked, where its answer, older by its own clock, is what earlier looks showed as well and nothing
   * else was heard meanwhile. Null where time decides. The task was read before the agent was asked.
   */
  overruled({ id, state, stateAt, version }: KnownTask, { status }: Observation): number | null {
    if (!isSaid(status) || !isBefore(status, state, stateAt)) {
      this.#doubts.delete(id)
      return null
    }
    const nowMs = this.#monotonic()
    const before = this.#doubts.get(id)
    const goesOn = before?.version === version && before.shown === status.state && nowMs - before.lastMs < lastingMs
    const sinceMs = goesOn ? before.sinceMs : nowMs
    remember(this.#doubts, id, { version, shown: status.state, sinceMs, lastMs: nowMs }, doubtsRemembered)
    const isSteady = goesOn && nowMs - sinceMs >= (status.state === state ? steadyAloneMs : steadyMs)
    return isSteady ? version : null
  }
}
