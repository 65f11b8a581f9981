/**
 * The build's step for statecharts: every machine becomes `charts/<kind>@<version>.json`, definition and geometry in one
 * file, so that the browser ships no layout engine (ELK is 442 kB gzipped and cold for 1.5 s there). Owns which machines
 * are drawn, the files and their cache; how one is laid out is chart-layout.ts.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AnyStateMachine } from 'xstate'
import { statesOf, type ChartDefinition } from '../../domain/chart.ts'
import { chartOf } from '../../machines/chart.ts'
import { commandMachine } from '../../machines/command.ts'
import { ownershipMachine } from '../../machines/ownership.ts'
import { pushMachine } from '../../machines/push.ts'
import { reconciliationMachine } from '../../machines/reconciliation.ts'
import { subscriptionMachine } from '../../machines/subscription.ts'
import { supervisorMachine } from '../../machines/supervisor.ts'
import type { ChartFile, ChartIndex, ChartLayouts } from '../../ui/statechart/layout.ts'
import { layOut, startElk } from './chart-layout.ts'

const machines: readonly AnyStateMachine[] = [
  commandMachine,
  ownershipMachine,
  pushMachine,
  reconciliationMachine,
  subscriptionMachine,
  supervisorMachine,
]

const root = fileURLToPath(new URL('../../', import.meta.url))
const cacheDir = join(root, 'node_modules/.cache/signalbox-charts')
/** What decides a layout beside the definition: a cached one is only as good as the code that made it. */
const ingredients = [
  'bin/build/chart-layout.ts',
  'bin/build/chart-lanes.ts',
  'ui/statechart/metrics.ts',
  'ui/statechart/layout.ts',
  'domain/chart.ts',
  'domain/next-words.ts',
]

async function ingredientsHash(): Promise<string> {
  const hash = createHash('sha256')
  for (const file of ingredients) hash.update(await readFile(join(root, file)))
  hash.update(await readFile(createRequire(import.meta.url).resolve('elkjs/package.json')))
  return hash.digest('hex')
}

const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT'

async function readCached(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Written beside and renamed, so that a build that dies or runs twice leaves no half a file. */
async function writeWhole(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  const draft = `${file}.${process.pid}`
  await writeFile(draft, text)
  await rename(draft, file)
}

/** Both orientations of one machine; from the cache when neither the machine nor the code has changed. */
async function layoutsOf(definition: ChartDefinition, codeHash: string): Promise<ChartLayouts> {
  const key = createHash('sha256').update(codeHash).update(JSON.stringify(definition)).digest('hex')
  const file = join(cacheDir, `${definition.id}-${key.slice(0, 32)}.json`)
  const cached = await readCached(file)
  if (cached !== null) return JSON.parse(cached) as ChartLayouts
  const elk = startElk()
  const layouts = { wide: await layOut(elk, definition, 'RIGHT'), tall: await layOut(elk, definition, 'DOWN') }
  await writeWhole(file, JSON.stringify(layouts))
  return layouts
}

/** Writes `<outDir>/<kind>@<version>.json` for every machine and `<outDir>/index.json`, which lists them. */
export async function buildCharts(outDir: string): Promise<void> {
  const codeHash = await ingredientsHash()
  const charts: ChartIndex['charts'][number][] = []
  for (const machine of machines) {
    const definition = chartOf(machine)
    const file: ChartFile = { definition, layout: await layoutsOf(definition, codeHash) }
    const href = `${definition.id}@${definition.version}.json`
    await writeWhole(join(outDir, href), JSON.stringify(file))
    const { id: kind, version, description } = definition
    const states = [...statesOf(definition.root)].length - 1
    charts.push({ kind, version, href, states, ...(description === undefined ? {} : { description }) })
  }
  const index: ChartIndex = { charts }
  await writeWhole(join(outDir, 'index.json'), JSON.stringify(index))
}
