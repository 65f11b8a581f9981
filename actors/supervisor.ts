/**
 * Runs the supervisor machine: gives it its loops, tells it of failures, and reports its end. Owns the order of starting
 * and stopping; the loops themselves are worker.ts's and system.ts's.
 */
import { createActor, fromPromise, waitFor, type ActorRefFrom, type SnapshotFrom } from 'xstate'
import { supervisorMachine, type LoopInput, type LoopName } from '../machines/supervisor.ts'
import type { Instruments } from './runtime.ts'
import type { Log } from './worker.ts'

export interface SupervisedLoops {
  readonly loops: Readonly<Record<LoopName, (signal: AbortSignal) => Promise<void>>>
  prepare(): Promise<void>
  finish(): Promise<void>
}

export class Supervisor {
  readonly #actor: ActorRefFrom<typeof supervisorMachine>
  /** Rejects when the loops keep failing or the drain failed: the process must end non-zero. Resolves when stopped. */
  readonly ended: Promise<void>

  constructor(supervised: SupervisedLoops, instruments: Instruments, log: Log) {
    const failed = (name: string, error: unknown): void => {
      log.error({ err: error, loop: name }, 'a loop failed')
      const message = error instanceof Error ? error.message : String(error)
      this.#actor.send({ type: 'failed', name, at: instruments.monotonic(), message })
    }
    const loop = fromPromise<void, LoopInput>(async ({ input, signal }) => {
      const run = supervised.loops[input.name as LoopName]
      try {
        await run(signal)
      } catch (error) {
        if (signal.aborted) return
        failed(input.name, error)
        throw error
      }
    })
    const machine = supervisorMachine.provide({
      actors: {
        loop,
        prepare: fromPromise<void>(() => supervised.prepare()),
        finish: fromPromise<void>(() => supervised.finish()),
      },
    })
    this.#actor = createActor(machine)
    this.ended = waitFor(this.#actor, (state) => state.status !== 'active').then((state) => {
      if (state.matches('broken'))
        throw new Error(`The supervisor gave up: ${state.context.lastFailure ?? 'start or drain failed'}.`)
    })
    // Whoever starts the system awaits this; until then an early end must not be an unhandled rejection.
    this.ended.catch(() => undefined)
  }

  /** Resolves when every loop runs. */
  async start(): Promise<void> {
    this.#actor.start()
    await Promise.race([waitFor(this.#actor, (state) => state.matches('running')), this.ended])
  }

  /** Drains and stops; resolves when everything is at rest. */
  async stop(): Promise<void> {
    this.#actor.send({ type: 'drain' })
    await this.ended
  }

  get snapshot(): SnapshotFrom<typeof supervisorMachine> {
    return this.#actor.getSnapshot()
  }
}
