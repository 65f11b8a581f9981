/**
 * What a hundred megabytes of one task cost everybody else, in events of 1 KB and in events of 24 MiB (a stream may bring
 * 25 MiB, so both take several): how long a light route waits, and how large the process grows. One stream, then several.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { startConsole } from './commands.ts'
import { startChild } from './child.ts'
import { figure, percentile, sharedClock, table } from './figures.ts'
import type { BenchOptions } from './run.ts'
import { openStage } from './stage.ts'
import type { TorrentMethods } from './torrent-agent.ts'

const MiB = 1024 * 1024
const taskBytes = 100 * MiB
const limitMs = 300_000
/** The route is asked now and then, as by people: asked without a pause it takes the processor that the streams need. */
const betweenMs = 5
/** One that needs the process only, and one that reads the database: the embedded one has a single session for all. */
const routes = { light: '/api/auth/session', reading: '/api/agents' }

interface Torrent {
  /** Of the light route. */
  readonly p99Ms: number
  /** Milliseconds and MiB. */
  readonly columns: readonly string[]
}

async function torrent(
  url: string | null,
  folder: string,
  cardUrl: string,
  streams: number,
  profileTo: { readonly folder: string; readonly name: string } | null,
): Promise<Torrent> {
  const child = startConsole()
  try {
    const { origin, agentId } = await child.call('open', { url, folder, cardUrl })
    const http = new Pool(origin, { connections: 4 })
    const ask = async (path: string): Promise<number> => {
      const askedMs = sharedClock()
      await (await http.request({ method: 'GET', path })).body.dump()
      return sharedClock() - askedMs
    }
    for (let n = 0; n < 50; n++) for (const path of Object.values(routes)) await ask(path)
    const before = await child.call('memory', null)
    await child.call('watchLoop', null)
    if (profileTo !== null) await child.call('profile', null)
    const startMs = performance.now()
    for (let n = 0; n < streams; n++)
      await (
        await http.request({
          method: 'POST',
          path: `/api/agents/${agentId}/messages`,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ text: 'Talk.' }),
        })
      ).body.dump()
    let over = false
    const watch = async (path: string): Promise<readonly number[]> => {
      const waits: number[] = []
      while (!over) {
        waits.push(await ask(path))
        await pause(betweenMs)
      }
      return waits
    }
    const watching = Promise.all([watch(routes.light), watch(routes.reading)])
    // Timers included: between two connections a subscription has no work.
    while ((await child.call('subscriptions', null)) > 0) {
      if (performance.now() - startMs > limitMs) throw new Error('The tasks are not over.')
      await pause(betweenMs)
    }
    over = true
    const [light, reading] = await watching
    const seconds = (performance.now() - startMs) / 1000
    const { max, p99 } = await child.call('loopDelay', null)
    if (profileTo !== null) await child.call('endProfile', profileTo)
    const peak = await child.call('peakMemory', null)
    const after = await child.call('memory', null)
    await http.close()
    const columns = [
      ...[light, reading].flatMap((each) =>
        [Math.max(...each), percentile(each, 0.99), percentile(each, 0.5)].map(figure),
      ),
      figure(max),
      figure(p99),
      figure(before / MiB),
      figure(peak / MiB),
      figure(after / MiB),
      figure((streams * taskBytes) / MiB / seconds),
    ]
    return { p99Ms: percentile(light, 0.99), columns }
  } finally {
    await child.end()
  }
}

export async function benchTorrents(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const agent = startChild<TorrentMethods>(new URL('torrent-agent.ts', import.meta.url))
  try {
    const cards = await agent.call('open', { bytes: taskBytes })
    const rows: string[][] = []
    /** Of one task at a time. */
    const waits: number[] = []
    for (const profile of ['postgresql', 'pglite'] as const)
      for (const size of ['small', 'huge'] as const)
        for (const streams of options.large ? [1, 4, 8] : [1, 4]) {
          const url = profile === 'postgresql' ? await stage.database() : null
          const folder = stage.folder(`${profile}-${size}-${streams}`)
          const name = `torrents ${profile} ${size} ${streams}`
          const profileTo = options.profileFolder === null ? null : { folder: options.profileFolder, name }
          const { p99Ms, columns } = await torrent(url, folder, cards[size], streams, profileTo)
          rows.push([profile, size, String(streams), ...columns])
          if (streams === 1) waits.push(p99Ms)
        }
    options.judge('torrent', Math.max(...waits))
    process.stdout.write(
      table(
        `torrents: 100 MiB a task, milliseconds and MiB`,
        [
          'database',
          'events',
          'tasks',
          'route, worst',
          'p99',
          'p50',
          'reading, worst',
          'p99',
          'p50',
          'loop stall, worst',
          'p99',
          'RSS before',
          'peak',
          'after',
          'MiB/s',
        ],
        rows,
      ),
    )
  } finally {
    await agent.end()
    await stage.close()
  }
}
