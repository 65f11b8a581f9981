/**
 * What a light route waits while eight heavy streams come in (5 MB each, in events of 75 and of 300 KB): parsing in threads, as
 * the product does, against parsing where the sockets are. Rounds alternate.
 */
import { Pool } from 'undici'
import type { AskerMethods } from './asker.ts'
import { startChild } from './child.ts'
import { startAgent, startConsole } from './commands.ts'
import { median, percentile, ratioOf, ratiosOf, table, withSpread } from './figures.ts'
import { until } from './rounds.ts'
import type { BenchOptions } from './run.ts'
import { openStage } from './stage.ts'

const streams = 8
const eventKilobytes = [75, 300]

/** Milliseconds. */
interface Round {
  readonly routeP50: number
  readonly routeP99: number
  readonly routeMax: number
  readonly loopP99: number
  readonly loopMax: number
  readonly wholeMs: number
}
const head = [
  'parsing',
  'loop stall, worst',
  'ratio',
  'p99',
  'light route, worst',
  'ratio',
  'p99',
  'ratio',
  'p50',
  'ratio',
  'all streams',
]
const figures = ['loopMax', 'loopP99', 'routeMax', 'routeP99', 'routeP50', 'wholeMs'] as const

type Subject = Awaited<ReturnType<typeof subject>>

async function subject(parsing: 'in threads' | 'in place', url: string, folder: string, cardUrl: string) {
  const child = startConsole()
  const { origin, agentId } = await child.call('open', { url, folder, cardUrl, parsing })
  const http = new Pool(origin, { connections: streams })
  const asker = startChild<AskerMethods>(new URL('asker.ts', import.meta.url))
  await asker.call('open', { origin })
  const send = async (): Promise<void> => {
    const { statusCode, body } = await http.request({
      method: 'POST',
      path: `/api/agents/${agentId}/messages`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'Stream.' }),
    })
    await body.dump()
    if (statusCode !== 200) throw new Error(`A message was answered with ${statusCode}.`)
  }
  const round = async (profileTo: string | null): Promise<Round> => {
    if (profileTo !== null) await child.call('profile', null)
    await child.call('watchLoop', null)
    const startMs = performance.now()
    await asker.call('begin', null)
    await Promise.all(Array.from({ length: streams }, send))
    await until(async () => (await child.call('following', null)) === 0)
    const route = await asker.call('end', null)
    const { max, p99 } = await child.call('loopDelay', null)
    if (profileTo !== null) await child.call('endProfile', { folder: profileTo, name: `streams ${parsing}` })
    return {
      routeP50: percentile(route, 0.5),
      routeP99: percentile(route, 0.99),
      routeMax: Math.max(...route),
      loopP99: p99,
      loopMax: max,
      wholeMs: performance.now() - startMs,
    }
  }
  const close = async (): Promise<void> => {
    await asker.end()
    await http.close()
    await child.end()
  }
  return { parsing, round, close, rounds: [] as Round[] }
}

export async function benchStreams(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const agent = startAgent()
  try {
    const { heavy } = await agent.call('open', null)
    await agent.call('giveWay', null)
    for (const kilobytes of eventKilobytes) {
      const subjects: Subject[] = []
      for (const parsing of ['in place', 'in threads'] as const) {
        const folder = stage.folder(`${parsing} ${kilobytes}`)
        subjects.push(await subject(parsing, await stage.database(), folder, `${heavy}/${kilobytes}/card.json`))
      }
      try {
        await compare(subjects, kilobytes, options)
      } finally {
        for (const each of subjects) await each.close()
      }
    }
  } finally {
    await agent.end()
    await stage.close()
  }
}

async function compare(subjects: readonly Subject[], kilobytes: number, options: BenchOptions): Promise<void> {
  for (let n = -1; n < options.rounds; n++)
    for (const each of subjects) {
      // Profiling slows what it looks at: the profiled round is one more.
      const result = await each.round(null)
      if (n >= 0) each.rounds.push(result)
    }
  if (options.profileFolder !== null) for (const each of subjects) await each.round(options.profileFolder)
  const of = (rounds: readonly Round[], name: keyof Round): number[] => rounds.map((each) => each[name])
  const base = subjects[0]?.rounds ?? []
  const stalls = ratiosOf(of(subjects[1]?.rounds ?? [], 'routeMax'), of(base, 'routeMax'))
  options.judge(kilobytes === eventKilobytes[0] ? 'stall' : 'stallOfLarge', median(stalls))
  process.stdout.write(
    table(
      `streams: ${streams} heavy streams in events of ${kilobytes} KB, milliseconds, ${options.rounds} rounds (in place = 1)`,
      head,
      subjects.map(({ parsing, rounds }) => {
        const [loopMax, loopP99, routeMax, routeP99, routeP50, whole] = figures.map((name) => of(rounds, name))
        const ratio = (mine: number[] = [], name: keyof Round): string => ratioOf(mine, of(base, name))
        return [
          parsing,
          withSpread(loopMax ?? []),
          ratio(loopMax, 'loopMax'),
          withSpread(loopP99 ?? []),
          withSpread(routeMax ?? []),
          ratio(routeMax, 'routeMax'),
          withSpread(routeP99 ?? []),
          ratio(routeP99, 'routeP99'),
          withSpread(routeP50 ?? []),
          ratio(routeP50, 'routeP50'),
          withSpread(whole ?? []),
        ]
      }),
    ),
  )
}
