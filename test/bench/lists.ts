/** `GET /api/tasks` with every filter, first page and offset 1,000, as the number of tasks grows. Both databases. */
import { Pool } from 'undici'
import { taskFilters } from '../../domain/task.ts'
import { startAgent, startConsole } from './commands.ts'
import { figure, percentile, sharedClock, table } from './figures.ts'
import { tasksSql, type Whose } from './history.ts'
import type { BenchOptions } from './run.ts'
import { openStage } from './stage.ts'

const sizes = [1_000, 100_000]
const largeSize = 1_000_000
const requests = 30
const offsets = [0, 1_000]

/** Milliseconds, p50, by what was asked. */
type Answers = ReadonlyMap<string, number>

async function ask(http: Pool): Promise<Answers> {
  const samples = new Map<string, number[]>()
  for (let n = -3; n < requests; n++)
    for (const filter of taskFilters)
      for (const offset of offsets) {
        const startMs = sharedClock()
        const { statusCode, body } = await http.request({
          method: 'GET',
          path: `/api/tasks?filter=${filter}&limit=50&offset=${offset}`,
        })
        await body.dump()
        if (statusCode !== 200) throw new Error(`A list was answered with ${statusCode}.`)
        const key = `${filter}, offset ${offset}`
        // The first few prepare the statement on each connection.
        if (n >= 0) samples.set(key, [...(samples.get(key) ?? []), sharedClock() - startMs])
      }
  return new Map([...samples].map(([key, ms]) => [key, percentile(ms, 0.5)]))
}

export async function benchLists(options: BenchOptions): Promise<void> {
  const stage = await openStage()
  const agent = startAgent()
  try {
    const { fast: cardUrl } = await agent.call('open', null)
    for (const [name, url] of [['postgresql', await stage.database()] as const, ['embedded', null] as const]) {
      const child = startConsole()
      const { origin, agentId, viewer } = await child.call('open', { url, folder: stage.folder(name), cardUrl })
      const { organizationId, userId: personId, membershipId } = viewer
      const whose: Whose = { organizationId, personId, membershipId, agentId }
      const http = new Pool(origin, { connections: 1 })
      const asked: { size: number; answers: Answers }[] = []
      let made = 0
      for (const size of options.large && url !== null ? [...sizes, largeSize] : sizes) {
        await child.call('write', { statements: [tasksSql(whose, made + 1, size)] })
        made = size
        asked.push({ size, answers: await ask(http) })
      }
      const [first] = asked
      process.stdout.write(
        table(
          `lists, ${name}: GET /api/tasks, p50 in ms (1,000 tasks = 1)`,
          ['filter', ...asked.flatMap(({ size }) => [`${size.toLocaleString('en')} tasks`, 'ratio'])],
          [...(first?.answers ?? [])].map(([key, base]) => [
            key,
            ...asked.flatMap(({ answers }) => {
              const ms = answers.get(key) ?? Number.NaN
              return [figure(ms), figure(ms / base)]
            }),
          ]),
        ),
      )
      await http.close()
      await child.end()
    }
  } finally {
    await agent.end()
    await stage.close()
  }
}
