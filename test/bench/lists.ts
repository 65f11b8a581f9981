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

/** By what was asked. */
type Answers = ReadonlyMap<string, Answered>
interface Answered {
  /** How many tasks were on the page: among a thousand some have fewer than fit, and those are no measure for a full one. */
  readonly rows: number
  /** p50. */
  readonly ms: number
}

const readers = { administrator: {}, operator: { [asOperator]: 'yes' } } as const
const paths = [
  ...taskFilters.flatMap((filter) => offsets.map((offset) => `tasks?filter=${filter}&limit=50&offset=${offset}`)),
  'task-views?limit=50',
  'task-views?limit=50&after=80000000-0000-7000-8000-000000000000',
]

async function ask(http: Pool): Promise<Answers> {
  const samples = new Map<string, number[]>()
  const rows = new Map<string, number>()
  for (let n = -3; n < requests; n++)
    for (const [reader, headers] of Object.entries(readers))
      for (const path of paths) {
        const startMs = sharedClock()
        const { statusCode, body } = await http.request({ method: 'GET', path: `/api/${path}`, headers })
        const text = await body.text()
        const answeredMs = sharedClock()
        if (statusCode !== 200) throw new Error(`A list was answered with ${statusCode}.`)
        const key = `${reader}: ${path.replace('limit=50', '')}`
        // The first few prepare the statement on each connection.
        if (n >= 0) samples.set(key, [...(samples.get(key) ?? []), answeredMs - startMs])
        else rows.set(key, rowsIn(text))
      }
  return new Map([...samples].map(([key, ms]) => [key, { rows: rows.get(key) ?? 0, ms: percentile(ms, 0.5) }]))
}

/** Both answers are an object with one list. */
function rowsIn(text: string): number {
  const lists = Object.values(JSON.parse(text) as Record<string, unknown>).filter((value) => Array.isArray(value))
  return lists[0]?.length ?? 0
}

/** `*`: of another number of rows, and so no ratio of the same thing. */
const against = (base: Answered, now: Answered): readonly string[] => [
  String(now.rows),
  figure(now.ms),
  `${figure(now.ms / base.ms)}${now.rows === base.rows ? '' : ' *'}`,
]
/** Of pages with as many rows; no number where there are none. */
function dearest(base: Answers = new Map(), now: Answers = new Map()): number {
  const ratios = [...base].flatMap(([key, { rows, ms }]) => {
    const grown = now.get(key)
    return grown?.rows === rows ? [grown.ms / ms] : []
  })
  return ratios.length === 0 ? Number.NaN : Math.max(...ratios)
}
const missing: Answered = { rows: 0, ms: Number.NaN }

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
      if (url !== null) options.judge('lists', dearest(first?.answers, asked.at(-1)?.answers))
      process.stdout.write(
        table(
          `lists, ${name}: p50 in ms (1,000 tasks = 1; * of another number of rows)`,
          ['list', ...asked.flatMap(({ size }) => ['rows', `${size.toLocaleString('en')} tasks`, 'ratio'])],
          [...(first?.answers ?? [])].map(([key, base]) => [
            key,
            ...asked.flatMap(({ answers }) => against(base, answers.get(key) ?? missing)),
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
