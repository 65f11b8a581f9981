/** graphile-worker doing enqueue → no-op → done in one process: the yardstick. As its documentation has it, 16 at once. */
import { makeWorkerUtils, run, Logger, type Runner, type WorkerUtils } from 'graphile-worker'
import { answerParent } from './child.ts'
import { sharedClock } from './figures.ts'
import { flow, until } from './rounds.ts'

const silent = new Logger(() => () => undefined)
let utils: WorkerUtils
let runner: Runner
let enqueued = 0
let done = 0
const started = new Map<number, number>()

const enqueue = async (n: number): Promise<void> => {
  enqueued++
  await utils.addJob('noop', { n })
}

const methods = {
  open: async ({ url, concurrency }: { url: string; concurrency: number }) => {
    const options = { connectionString: url, maxPoolSize: concurrency + 4, logger: silent }
    utils = await makeWorkerUtils(options)
    await utils.migrate()
    runner = await run({
      ...options,
      concurrency,
      noHandleSignals: true,
      pollInterval: 1000,
      taskList: { noop: (payload) => void started.set((payload as { n: number }).n, sharedClock()) },
    })
    runner.events.on('job:complete', () => done++)
  },
  flow: ({ forMs, concurrency }: { forMs: number; concurrency: number }) =>
    flow({
      forMs,
      concurrency,
      accept: (n) => enqueue(n),
      unfinished: () => enqueued - done,
    }),
  /** Enqueue → handler starts, one at a time, milliseconds. */
  starts: async ({ count }: { count: number }) => {
    const samples: number[] = []
    for (let i = 0; i < count; i++) {
      const n = -1 - i
      started.delete(n)
      const before = done
      const sentMs = sharedClock()
      await enqueue(n)
      await until(() => done > before)
      samples.push((started.get(n) ?? Number.NaN) - sentMs)
    }
    return samples
  },
}
export type PeerMethods = typeof methods

answerParent(methods, async () => {
  await runner.stop()
  await utils.release()
})
