/**
 * One change, and when 200 and 2,000 open pages hear of it: committed by the replica that holds their streams, and by
 * another one on the same PostgreSQL. And what a page costs: memory of the console with and without them.
 */
import { Pool } from 'undici'
import { startChild, type Child } from './child.ts'
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

type Watchers = Child<WatcherMethods>

/** Milliseconds from the request that makes a change until each page has heard of it. */
async function fan(origin: string, number: number, watchers: Watchers, count: number): Promise<Fanned> {
  const http = new Pool(origin, { connections: 1 })
  await watchers.call('forget', null)
  const startMs = sharedClock()
  const { body, statusCode } = await http.request({
    method: 'POST',
    path: '/api/agents',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ cardUrl: `http://127.0.0.1:9/${number}/card.json` }),
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

function rowsOf({ count, here, elsewhere, bytesEach, openMs }: Measured): string[][] {
  const row = (where: string, fans: readonly Fanned[]): string[] => [
    String(count),
    where,
    ...(['p50', 'p99', 'last'] as const).map((name) => figure(median(fans.map((each) => each[name])))),
    figure(Math.max(...fans.map(({ last }) => last))),
    figure(bytesEach / 1024),
    figure(openMs),
  ]
  return [row('here', here), row('at another replica', elsewhere)]
}

export async function benchFreshness(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const watchers: Watchers = startChild<WatcherMethods>(new URL('watchers.ts', import.meta.url))
  const replicas = [startConsole(), startConsole()] as const
  try {
    const url = await stage.database()
    const origins: string[] = []
    for (const [i, replica] of replicas.entries()) {
      const cardUrl = 'http://127.0.0.1:9/card.json'
      origins.push((await replica.call('open', { url, folder: stage.folder(`replica-${i}`), cardUrl })).origin)
    }
    const [near = '', far = ''] = origins
    let changes = 0
    const measured: Measured[] = []
    const rounds = Math.min(changesLimit, options.rounds * 2)
    for (const count of counts) {
      const empty = await replicas[0].call('memory', null)
      const startMs = sharedClock()
      await watchers.call('open', { origin: near, count })
      const openMs = sharedClock() - startMs
      await fan(near, ++changes, watchers, count)
      const bytesEach = ((await replicas[0].call('memory', null)) - empty) / count
      const [here, elsewhere]: [Fanned[], Fanned[]] = [[], []]
      for (let round = 0; round < rounds; round++) {
        here.push(await fan(near, ++changes, watchers, count))
        elsewhere.push(await fan(far, ++changes, watchers, count))
      }
      await watchers.call('close', null)
      measured.push({ count, here, elsewhere, bytesEach, openMs })
    }
    const title = 'freshness: one change, until the pages of one process have heard of it; milliseconds, median of'
    const head = ['pages', 'committed', 'p50', 'p99', 'last', 'worst last', 'KB a page', 'all open after']
    const most = measured.at(-1)?.here ?? []
    options.judge('freshness', median(most.map(({ p99 }) => p99)))
    process.stdout.write(table(`${title} ${rounds}`, head, measured.flatMap(rowsOf)))
  } finally {
    await watchers.end()
    for (const replica of replicas) await replica.end()
    await stage.close()
  }
}
