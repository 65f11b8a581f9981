/**
 * A composition root for storms: the product's console or worker with a driver, sockets, a clock and a rhythm that misbehave
 * as argv and stdin say. The product knows nothing of it. Runs like bin/console.ts, by the same environment.
 *
 * `node test/chaos/doomed/process.ts console|worker [--lease-ms n] [--die-at point [--nth n]] [--lose-commits rate] [--seed n]`
 * stdin takes one JSON object a line: `{"dieAt": point}`, with `"of": name` only for what names that, with `"nth": n` not the next time
 * but that one, `{"stopAt": point}` (it stands still there), `{"clockMs": n}` (its wall clock jumps by that much), `{"loseCommits": rate}`, `{"weigh": true}` (it says `holds n`,
 * the bytes it holds once its garbage is collected); each is answered with `heard` on stdout.
 */
import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import * as z from 'zod/mini'
import type { Kinds } from '../../../actors/loop/kinds.ts'
import { instruments, type SystemOptions } from '../../../actors/system.ts'
import { openSystem, type Parts } from '../../../bin/composition.ts'
import { openLog } from '../../../bin/log.ts'
import { readConfig, readWorkerConfig } from '../../../bin/config.ts'
import { serveConsole } from '../../../bin/console-process.ts'
import { ending, runProcess } from '../../../bin/process.ts'
import { crowd } from '../../support/crowd.ts'
import { heldBytes } from '../../support/held-memory.ts'
import { chanceOf } from '../seed.ts'
import { crashPoints, Doom, isCrashPoint } from './doom.ts'
import { withFaults } from './driver.ts'
import { watchFiles } from './files.ts'
import { DoomedOutbound, watchSockets } from './sockets.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'lease-ms': { type: 'string' },
    'die-at': { type: 'string', default: '' },
    nth: { type: 'string', default: '1' },
    'lose-commits': { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
  },
})

const Told = z.object({
  dieAt: z.optional(z.enum(crashPoints)),
  of: z.optional(z.string()),
  nth: z.optional(z.number()),
  stopAt: z.optional(z.enum(crashPoints)),
  clockMs: z.optional(z.number()),
  loseCommits: z.optional(z.number()),
  weigh: z.optional(z.boolean()),
})

const doom = new Doom()
const point = values['die-at']
if (isCrashPoint(point)) doom.dieAt(point, null, Number(values.nth))
else if (point !== '') throw new Error(`There is no crash point "${point}".`)
const chance = chanceOf('lost commits', Number(values.seed))
let lossRate = Number(values['lose-commits'])
let clockMs = 0

function hear(line: string): void {
  const told = Told.parse(JSON.parse(line))
  if (told.dieAt !== undefined) doom.dieAt(told.dieAt, told.of, told.nth)
  if (told.stopAt !== undefined) doom.stopAt(told.stopAt)
  lossRate = told.loseCommits ?? lossRate
  clockMs += told.clockMs ?? 0
  if (told.weigh) process.stdout.write(`holds ${heldBytes()}\n`)
  process.stdout.write('heard\n')
}

const leaseMs = values['lease-ms'] === undefined ? null : Number(values['lease-ms'])
const shorter = (kinds: Kinds): Kinds =>
  leaseMs === null
    ? kinds
    : Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, { ...kind, leaseMs }]))

const partsFor = (policy: SystemOptions['policy']): Parts => ({
  backend: withFaults(doom, () => lossRate > 0 && chance.next() < lossRate),
  outbound: new DoomedOutbound(doom, policy),
  instruments: { ...instruments, now: () => new Date(Date.now() + clockMs) },
  rhythm: shorter,
  limits: crowd,
})

watchSockets(doom)
watchFiles(doom)
// What dies leaves nothing behind by itself: its heir starts in a sixth less of a processor.
flushCompileCache()
// Its stdin ends with whoever started it, and nobody else is to be left with it.
createInterface(process.stdin)
  .on('line', hear)
  .on('close', () => process.exit(1))
await runProcess('storm', async () => {
  if (positionals[0] !== 'worker') {
    return serveConsole(process.env, partsFor(readConfig(process.env).network))
  }
  const config = readWorkerConfig(process.env)
  const log = openLog(config.logLevel)
  const running = await openSystem(config, log, true, false, partsFor(config.network))
  log.info({ pid: process.pid }, 'worker ready')
  await ending([running.system.supervisor.ended])
  await running.close()
})
