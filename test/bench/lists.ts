/**
 * `GET /api/tasks` with every filter, first page and offset 1,000, and pages of `GET /api/task-views`, as the number of tasks grows:
 * for an administrator, and for an operator who holds two of a hundred agents and a skill of a third. Both databases.
 */
import { Pool } from 'undici'
import { taskFilters } from '../../domain/task.ts'
import { startAgent, startConsole } from './commands.ts'
import { figure, percentile, sharedClock, table } from './figures.ts'
import { asOperator, tasksSql, type Everybody } from './history.ts'
import type { BenchOptions } from './run.ts'
import { openStage } from './stage.ts'

const sizes = [1_000, 100_000]
const largeSize = 1_000_000
const requests = 30
const offsets = [0, 1_000]
const agentCount = 100

/** Milliseconds, p50, by what was asked. */
type Answers = ReadonlyMap<string, number>

const readers = { administrator: {}, operator: { [asOperator]: 'yes' } } as const
const paths = [
  ...taskFilters.flatMap((filter) => offsets.map((offset) => `tasks?filter=${filter}&limit=50&offset=${offset}`)),
  'task-views?limit=50',
  'task-views?limit=50&after=80000000-0000-7000-8000-000000000000',
]

async function ask(http: Pool): Promise<Answers> {
  const samples = new Map<string, number[]>()
  for (let n = -3; n < requests; n++)
    for (const [reader, headers] of Object.entries(readers))
      for (const path of paths) {
        const startMs = sharedClock()
        const { statusCode, body } = await http.request({ method: 'GET', path: `/api/${path}`, headers })
        await body.dump()
        if (statusCode !== 200) throw new Error(`A list was answered with ${statusCode}.`)
        const key = `${reader}: ${path.replace('limit=50', '')}`
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
      const { agentIds, membershipId: otherMembershipId } = await child.call('staff', { agents: agentCount })
      const whose: Everybody = { organizationId, personId, membershipId, agentId, agentIds, otherMembershipId }
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
          `lists, ${name}: p50 in ms (1,000 tasks = 1)`,
          ['list', ...asked.flatMap(({ size }) => [`${size.toLocaleString('en')} tasks`, 'ratio'])],
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
