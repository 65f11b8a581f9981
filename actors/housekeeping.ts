/**
 * What a house needs done now and then: the embedded database's checkpoints and vacuum, the artifact directory's sweep, and
 * forgetting what is old. One loop a process, under the supervisor. Everything is in bounded passes that other processes may
 * run at the same time. Does not own how anything is done (persistence/).
 */
import { randomInt } from 'node:crypto'
import { graceMs, shardCount, sweepShard } from '../persistence/artifact-sweep.ts'
import type { Database } from '../persistence/database.ts'
import { forgetSilentProcesses } from '../persistence/processes.ts'
import { forgetDeliveries } from '../persistence/push.ts'
import { forgetWindows } from '../persistence/rate-limits.ts'
import { agreedNow, forgetActors, forgetFacts, markLineages } from '../persistence/retention.ts'
import { forgetSessions } from '../persistence/sessions.ts'
import { forgetAttempts } from '../persistence/sign-in.ts'
import { Bell } from './loop/bell.ts'
import type { Instruments } from './loop/runtime.ts'
import type { Log } from './log.ts'

/** How long things are kept, for this deployment. */
export interface Keeping {
  readonly factDays: number
  /** Counted from when the actor was archived. */
  readonly logDays: number
  /** Files and rows that no task refers to. */
  readonly artifactGraceMs: number
}

export const keepingByDefault: Keeping = { factDays: 7, logDays: 30, artifactGraceMs: graceMs }

export interface HousekeepingOptions {
  readonly db: Database
  readonly log: Log
  readonly instruments: Instruments
  /** Kinds of actors whose logs are forgotten. */
  readonly kinds: readonly string[]
  readonly artifactDirectory: string
  /** Whether this process does the background work: those that only serve leave all of this to those that do. */
  readonly works: boolean
  readonly keeping: Keeping
  /** Between two rounds; half a minute when absent. */
  readonly roundMs?: number
}

const usualRoundMs = 30_000
/** Every shard is swept every 32 minutes. */
const shardsARound = 4
const forgetEveryMs = 10 * 60_000
/** A bound for one look at what is old; what is left over is for the next one. */
const passesLimit = 1_000
/** What so many passes delete is a few megabytes of an embedded database's log, which is to stay small. */
const passesBetween = 50
/** As long as the pass took, and at least this: never more than half of the database's time. */
const pauseFromMs = 10
/** Replicas that judge by clocks which are behind see what is over for as long: it is refused by each in its time, and only then deleted. */
const lateMs = 60 * 60_000
const dayMs = 24 * 60 * 60_000
/** Spawned once, by what names them. Of all others the archived row is what keeps one that finished from being spawned again. */
const bornOnce: ReadonlySet<string> = new Set(['command'])

export class Housekeeping {
  readonly #o: HousekeepingOptions
  /** Anywhere: a process that lives for less than a round would never come to the last ones. */
  #shard = randomInt(shardCount)
  #forgotAt = -Infinity

  constructor(options: HousekeepingOptions) {
    this.#o = options
  }

  /** Rounds until the signal aborts. */
  async loop(signal: AbortSignal): Promise<void> {
    const { roundMs = usualRoundMs } = this.#o
    for (const bell = new Bell(); !signal.aborted; await bell.wait(roundMs, signal)) await this.round(signal)
  }

  async round(signal: AbortSignal): Promise<void> {
    const { db, works, instruments } = this.#o
    await db.housekeep()
    await forgetWindows(db.pool)
    await forgetDeliveries(db.pool)
    const now = await agreedNow(db.pool, instruments.now())
    const over = new Date(now.getTime() - lateMs).toISOString()
    await forgetAttempts(db.pool, over)
    await forgetSessions(db.pool, over)
    await forgetSilentProcesses(db.pool)
    if (!works) return
    if (instruments.monotonic() - this.#forgotAt >= forgetEveryMs) {
      this.#forgotAt = instruments.monotonic()
      await this.forget(signal)
    }
    // Last: a directory that fails must not keep the database from its due.
    for (let n = 0; n < shardsARound && !signal.aborted; n++) await this.#sweep(now)
  }

  async #sweep(now: Date): Promise<void> {
    const { db, log, artifactDirectory, keeping } = this.#o
    const times = { now, graceMs: keeping.artifactGraceMs }
    const shard = this.#shard
    this.#shard = (shard + 1) % shardCount
    const swept = await sweepShard(db.pool, artifactDirectory, shard, times)
    if (Object.values(swept).some((count) => count > 0)) log.info({ shard, ...swept }, 'artifacts were swept')
  }

  /** Forgets what is old, until nothing is left, the signal aborts, or a bound is reached. */
  async forget(signal: AbortSignal): Promise<void> {
    const { db, log, keeping, kinds, instruments } = this.#o
    const now = await agreedNow(db.pool, instruments.now())
    const before = (days: number): string => new Date(now.getTime() - days * dayMs).toISOString()
    const told = { facts: 0, actors: 0, entries: 0 }
    let after: number | null = 0
    await this.#passes(signal, async () => {
      const { facts, next } = await forgetFacts(db.pool, before(keeping.factDays), after ?? 0)
      told.facts += facts
      after = next
      return next !== null
    })
    for (const lineage of await markLineages(db.pool, kinds))
      await this.#passes(signal, async () => {
        const rows = bornOnce.has(lineage.kind) ? 'forget rows' : 'keep rows'
        const { actors, entries, more } = await forgetActors(db.pool, lineage, before(keeping.logDays), rows)
        told.actors += actors
        told.entries += entries
        return more
      })
    if (told.facts + told.actors > 0) log.info(told, 'old facts and logs were deleted')
  }

  async #passes(signal: AbortSignal, pass: () => Promise<boolean>): Promise<void> {
    const bell = new Bell()
    for (let n = 0; n < passesLimit && !signal.aborted; n++) {
      const startedAt = this.#o.instruments.monotonic()
      if (!(await pass())) return
      if (n % passesBetween === passesBetween - 1) await this.#o.db.housekeep()
      await bell.wait(Math.max(pauseFromMs, this.#o.instruments.monotonic() - startedAt), signal)
    }
  }
}
