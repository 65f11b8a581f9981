/**
 * Runs the supervisor machine: gives it its loops, tells it of failures, and reports its end. Owns the order of starting
 * and stopping; the loops themselves are worker.ts's and ../system.ts's.
 */
import { createActor, fromPromise, waitFor, type ActorRefFrom, type SnapshotFrom } from 'xstate'
import type { OutageCause } from '../../domain/queue.ts'
import { supervisorFor, type LoopInput, type LoopName } from '../../machines/supervisor.ts'
import { isOutage, outageCause } from '../../persistence/outage.ts'
import { Bell } from './bell.ts'
import type { Instruments } from './runtime.ts'
import type { Log } from '../log.ts'

/** How long a loop waits while the database is away or the artifact directory fails: doubled from the first to the last. */
const outageFromMs = 250
const outageToMs = 5_000

type Machine = ReturnType<typeof supervisorFor>

export interface SupervisedLoops {
  /** Not run here, for they are left to workers in processes of their own. */
  readonly left: ReadonlySet<LoopName>
  readonly loops: Readonly<Record<LoopName, (signal: AbortSignal) => Promise<void>>>
  prepare(): Promise<void>
  finish(): Promise<void>
}

const outageWords: Readonly<Record<OutageCause, string>> = {
  database: 'the database is away',
  artifacts: 'the artifact directory fails',
}

/** A loop met an outage at `at`, by the clock that never jumps, and waited so long before it tried again. */
export interface LoopOutage {
  readonly cause: OutageCause
  readonly at: number
  readonly pauseMs: number
}

export class Supervisor {
  readonly #outages = new Map<string, LoopOutage>()
  readonly #supervised: SupervisedLoops
  readonly #actor: ActorRefFrom<Machine>
  /** What the start or the drain failed with. */
  #fault: Error | null = null
  /** Rejects when the loops keep failing, or with what the start or the drain failed with: the process must end non-zero. Resolves when stopped. */
  readonly ended: Promise<void>

  constructor(supervised: SupervisedLoops, instruments: Instruments, log: Log) {
    this.#supervised = supervised
    const failed = (name: string, error: unknown): void => {
      log.error({ err: error, loop: name }, 'a loop failed')
      // Shown to people: what went wrong is in the log, whose readers may see a driver's words.
      const message = error instanceof Error ? error.name : 'Error'
      this.#actor.send({ type: 'failed', name, at: instruments.monotonic(), message })
    }
    const loop = fromPromise<void, LoopInput>(async ({ input, signal }) => {
      const run = supervised.loops[input.name as LoopName]
      // What is away is no failure of the loop: it waits and goes on, however long that takes.
      for (let pauseMs = outageFromMs; !signal.aborted; pauseMs = Math.min(outageToMs, pauseMs * 2)) {
        const begunAt = instruments.monotonic()
        try {
          return await run(signal)
        } catch (error) {
          if (signal.aborted) return
          if (!isOutage(error)) {
            failed(input.name, error)
            throw error
          }
          // Whoever went on for longer than it ever waits has met another outage, and not the same one again.
          if (instruments.monotonic() - begunAt > outageToMs) pauseMs = outageFromMs
          const cause = outageCause(error)
          log.warn({ err: error, loop: input.name, pauseMs, cause }, outageWords[cause])
          this.#outages.set(input.name, { cause, at: instruments.monotonic(), pauseMs })
          await new Bell().wait(pauseMs, signal)
        }
      }
    })
    const machine = supervisorFor(supervised.left).provide({
      actors: {
        loop,
        prepare: fromPromise<void>(() => this.#noting(supervised.prepare())),
        finish: fromPromise<void>(() => this.#noting(supervised.finish())),
      },
    })
    this.#actor = createActor(machine)
    this.ended = waitFor(this.#actor, (state) => state.status !== 'active').then((state) => {
      if (!state.matches('broken')) return
      throw this.#fault ?? new Error(`The supervisor gave up: ${state.context.lastFailure}.`)
    })
    // Whoever starts the system awaits this; until then an early end must not be an unhandled rejection.
    this.ended.catch(() => undefined)
  }

  /** The machine knows that the start or the drain failed, and not why: that is for whoever ends the process. */
  async #noting(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      this.#fault = error instanceof Error ? error : new Error(String(error))
      throw error
    }
  }

  /** Resolves when every loop runs, or it has stopped before. Rejects with what the start failed with. */
  async start(): Promise<void> {
    this.#actor.start()
    const state = await waitFor(this.#actor, (each) => each.matches('running') || each.status !== 'active')
    if (state.status !== 'active') await this.ended
  }

  /** Drains and stops; resolves when everything is at rest. */
  async stop(): Promise<void> {
    // Even after it gave up: deliveries that are under way still end with what is known of them.
    if (this.snapshot.matches('broken')) return this.#supervised.finish()
    this.#actor.send({ type: 'drain' })
    await this.ended
  }

  /** The last outage that each loop met: no failure, so the machine knows nothing of it. */
  get outages(): ReadonlyMap<string, LoopOutage> {
    return this.#outages
  }

  get snapshot(): SnapshotFrom<Machine> {
    return this.#actor.getSnapshot()
  }
}
