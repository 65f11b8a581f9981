/**
 * Tasks that were under way before their deployment had push, or were begun beside it by a process from before: their agents are told
 * where to call, too. A walk over what is unfinished, some hundred tasks every few seconds and then a rest, so that nobody who begins or
 * follows a task pays for it. Does not register (push.ts) and does not know who offers push: that is the first thing an actor finds out.
 */
import { readUnannounced, type TaskPlace, type UnannouncedTask } from '../persistence/push.ts'
import type { Database } from '../persistence/database.ts'
import type { Operation } from './loop/operation.ts'
import type { Instruments, Runtime } from './loop/runtime.ts'

/** Tasks looked at in one sweep: a few milliseconds. */
const walkedAtOnce = 500
/** Between two walks: in a deployment whose processes all have push, none finds anything. */
const restMs = 60_000

const announceTask: Operation<UnannouncedTask, null> = {
  name: 'announceTask',
  run: (_batch, tasks) =>
    Promise.resolve(
      tasks.map(({ id, organizationId, agentId }) => {
        const spawn = { ref: { kind: 'push', id }, lane: agentId, isNew: false, organizationId, cause: 'push' }
        return { kind: 'done', result: null, effects: { spawns: [spawn] } }
      }),
    ),
}

export interface LatecomersTools {
  readonly db: Database
  readonly runtime: Pick<Runtime, 'perform'>
  readonly instruments: Pick<Instruments, 'monotonic'>
}

export class Latecomers {
  readonly #t: LatecomersTools
  /** The last task that was looked at; null where a walk begins. */
  #after: TaskPlace | null = null
  #restsUntilMs = -Infinity

  constructor(tools: LatecomersTools) {
    this.#t = tools
  }

  /** Goes on with the walk, or rests. Two processes may find the same task: the second is not heard. */
  async sweep(): Promise<void> {
    const { db, runtime, instruments } = this.#t
    if (this.#restsUntilMs > instruments.monotonic()) return
    const { tasks, last } = await readUnannounced(db.pool, this.#after, walkedAtOnce)
    await Promise.all(tasks.map((task) => runtime.perform(announceTask, task)))
    this.#after = last
    if (last === null) this.#restsUntilMs = instruments.monotonic() + restMs
  }
}
