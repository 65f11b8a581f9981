/**
 * One change, and when 200 and 2,000 open pages hear of it: committed by the replica that holds their streams, and by
 * another one on the same PostgreSQL. And what a page costs: memory of the console with and without them.
 */
import { Pool } from 'undici'
import { startChild } from './child.ts'
import { startConsole } from './commands.ts'
import { figure, median, percentile, sharedClock, table } from './figures.ts'
import { until } from './rounds.ts'
import type { BenchOptions } from './run.ts'
import { openStage } from './stage.ts'
import type { WatcherMethods } from './watchers.ts'

const counts = [200, 2_000]
/** A change a second: what people do, and slower than any gap between two signals. */
const betweenMs = 1_000
/** Streams live 55 s: what is measured on one set of them ends before. */
const changesLimit = 12

interface Fanned {
  readonly p50: number
  readonly p99: number
  readonly last: number
}

interface Measured {
  readonly count: number
  readonly here: readonly Fanned[]
  readonly elsewhere: readonly Fanned[]
  readonly bytesEach: number
  readonly openMs: number
}

export async function benchFreshness(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const watchers = startChild<WatcherMethods>(new URL('watchers.ts', import.meta.url))
  const replicas = [startConsole(), startConsole()] as const
  try {
    const url = await stage.database()
    const cardUrl = 'http://127.0.0.1:9/card.json'
    const origins: string[] = []
    for (const [i, replica] of replicas.entries())
      origins.push((await replica.call('open', { url, folder: stage.folder(`replica-${i}`), cardUrl })).origin)
    const [near = '', far = ''] = origins
    let changes = 0
    /** Milliseconds from the request that makes a change until each page has heard of it. */
    const fan = async (origin: string, count: number): Promise<Fanned> => {
      const http = new Pool(origin, { connections: 1 })
      await watchers.call('forget', null)
      const startMs = sharedClock()
      const { body, statusCode } = await http.request({
        method: 'POST',
        path: '/api/agents',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cardUrl: `http://127.0.0.1:9/${++changes}/card.json` }),
      })
      await body.dump()
      if (statusCode >= 300) throw new Error(`A change was answered with ${statusCode}.`)
      let heard: readonly number[] = []
      await until(async () => {
        heard = await watchers.call('heard', null)
        return heard.length === count && sharedClock() - startMs >= betweenMs
      })
      await http.close()
      const waits = heard.map((ms) => ms - startMs)
      return { p50: percentile(waits, 0.5), p99: percentile(waits, 0.99), last: Math.max(...waits) }
    }
    const measured: Measured[] = []
    const rounds = Math.min(changesLimit, options.rounds * 2)
    for (const count of counts) {
      const empty = await replicas[0].call('memory', null)
      const startMs = sharedClock()
      await watchers.call('open', { origin: near, count })
      const openMs = sharedClock() - startMs
      await fan(near, count)
      const full = await replicas[0].call('memory', null)
      const here: Fanned[] = []
      const elsewhere: Fanned[] = []
      for (let round = 0; round < rounds; round++) {
        here.push(await fan(near, count))
        elsewhere.push(await fan(far, count))
      }
      await watchers.call('close', null)
      measured.push({ count, here, elsewhere, bytesEach: (full - empty) / count, openMs })
    }
    process.stdout.write(
      table(
        `freshness: one change, until the pages of one process have heard of it; milliseconds, median of ${rounds}`,
        ['pages', 'committed', 'p50', 'p99', 'last', 'worst last', 'KB a page', 'all open after'],
        measured.flatMap(({ count, here, elsewhere, bytesEach, openMs }) =>
          (
            [
              ['here', here],
              ['at another replica', elsewhere],
            ] as const
          ).map(([where, fans]) => [
            String(count),
            where,
            ...(['p50', 'p99', 'last'] as const).map((name) => figure(median(fans.map((each) => each[name])))),
            figure(Math.max(...fans.map(({ last }) => last))),
            figure(bytesEach / 1024),
            figure(openMs),
          ]),
        ),
      ),
    )
  } finally {
    await watchers.end()
    for (const replica of replicas) await replica.end()
    await stage.close()
  }
}
