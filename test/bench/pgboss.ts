/** pg-boss doing enqueue → no-op → done in one process: batches, woken by NOTIFY, as its documentation has it for speed. */
import { PgBoss } from 'pg-boss'
import { answerParent } from './child.ts'
import { sharedClock } from './figures.ts'
import type { PeerMethods } from './graphile.ts'
import { flow, until } from './rounds.ts'

const queue = 'bench'
let boss: PgBoss
let enqueued = 0
let done = 0
const started = new Map<number, number>()

const enqueue = async (n: number): Promise<void> => {
  enqueued++
  await boss.send(queue, { n })
}

const methods: PeerMethods = {
  open: async ({ url, concurrency }) => {
    boss = new PgBoss({ connectionString: url, max: concurrency + 4, useListenNotify: true })
    boss.on('error', (error) => process.stderr.write(`pg-boss: ${String(error)}\n`))
    await boss.start()
    await boss.createQueue(queue, { notify: true })
    const options = { batchSize: 100, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true, localConcurrency: 2 }
    await boss.work<{ n: number }>(queue, options, (jobs) => {
      const at = sharedClock()
      for (const job of jobs) started.set(job.data.n, at)
      // Counted before pg-boss has marked them: in its favour.
      done += jobs.length
      return Promise.resolve()
    })
  },
  flow: ({ forMs, concurrency }) =>
    flow({ forMs, concurrency, accept: (n) => enqueue(n), unfinished: () => enqueued - done }),
  starts: async ({ count }) => {
    const samples: number[] = []
    for (let i = 0; i < count; i++) {
      const n = -1 - i
      started.delete(n)
      const sentMs = sharedClock()
      await enqueue(n)
      await until(() => started.has(n))
      samples.push((started.get(n) ?? Number.NaN) - sentMs)
    }
    return samples
  },
}

answerParent(methods, () => boss.stop({ graceful: false }))
