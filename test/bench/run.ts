/**
 * `npm run bench -- [bench…] [--seconds n] [--rounds n] [--large] [--check] [--profile <folder>]`: runs the named benches, or all. Each
 * prints one table whose ratios come from one run; absolute numbers are the machine's. What we want of them stands at the end; with
 * `--check` the run fails where it was not met.
 */
import { parseArgs } from 'node:util'
import { benchAudit } from './audit.ts'
import { benchCommands } from './commands.ts'
import { benchCost } from './cost.ts'
import { benchFreshness } from './freshness.ts'
import { Verdicts, type Judge } from './goals.ts'
import { benchLatency } from './latency.ts'
import { benchLists } from './lists.ts'
import { benchStart } from './start.ts'
import { benchStreams } from './streams.ts'
import { benchTorrents } from './torrents.ts'

export interface BenchOptions {
  /** Length of a round. */
  readonly seconds: number
  readonly rounds: number
  /** Also at a million rows: minutes, and some gigabytes of disk. */
  readonly large: boolean
  /** Where CPU profiles of the console's last round go. */
  readonly profileFolder: string | null
  readonly judge: Judge
}

interface Bench {
  readonly run: (options: BenchOptions) => Promise<void>
  /** Where neither is asked for. What is judged by a ratio of a busy machine takes many short rounds: three are decided by the moment. */
  readonly seconds: number
  readonly rounds: number
}
const few = { seconds: 4, rounds: 3 }
const many = { seconds: 2, rounds: 12 }

const benches: Readonly<Record<string, Bench>> = {
  commands: { run: benchCommands, ...many },
  cost: { run: benchCost, ...few },
  audit: { run: benchAudit, ...few },
  latency: { run: benchLatency, ...few },
  streams: { run: benchStreams, ...many },
  torrents: { run: benchTorrents, ...few },
  freshness: { run: benchFreshness, ...few },
  lists: { run: benchLists, ...few },
  start: { run: benchStart, ...few },
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    large: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    profile: { type: 'string' },
  },
})

const verdicts = new Verdicts()
const wanted = positionals.length > 0 ? positionals : Object.keys(benches)
for (const name of wanted) {
  const bench = benches[name]
  if (!bench) throw new Error(`There is no bench called "${name}": ${Object.keys(benches).join(', ')}.`)
  await bench.run({
    seconds: Number(values.seconds ?? bench.seconds),
    rounds: Number(values.rounds ?? bench.rounds),
    large: values.large,
    profileFolder: values.profile ?? null,
    judge: verdicts.judge,
  })
}
process.stdout.write(verdicts.table())
if (values.check && verdicts.missed.length > 0) process.exitCode = 1
