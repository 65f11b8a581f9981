/**
 * The second start: `signalbox start` on a data directory that exists, from the process's start to an answering session route.
 * Needs a built console (`npm run build`).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { median, table, withSpread } from './figures.ts'
import type { BenchOptions } from './run.ts'
import { freePort } from '../support/free-port.ts'

const launcher = fileURLToPath(new URL('../../dist/bin/signalbox.js', import.meta.url))
const answerLimitMs = 60_000
const lookMs = 20

/** Milliseconds until the session route answers; then the console is stopped as a person would stop it. */
async function startOnce(dataDir: string): Promise<number> {
  const port = await freePort()
  const startMs = performance.now()
  const args = [launcher, 'start', '--no-open', '--port', String(port), '--data-dir', dataDir]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const gone = once(child, 'exit')
  try {
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(`signalbox ended with ${child.exitCode}.`)
      if (performance.now() - startMs > answerLimitMs) throw new Error('signalbox does not answer.')
      await pause(lookMs)
    }
    return performance.now() - startMs
  } finally {
    child.kill('SIGTERM')
    await gone
  }
}

async function answers(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/api/auth/session`)
    await response.arrayBuffer()
    return response.ok
  } catch (error) {
    // Nobody listens yet; anything else is a defect of this bench.
    if (error instanceof TypeError) return false
    throw error
  }
}

export async function benchStart(options: BenchOptions): Promise<void> {
  if (!existsSync(launcher)) throw new Error('Nothing is built: npm run build.')
  const dataDir = mkdtempSync(join(tmpdir(), 'signalbox-bench-start-'))
  try {
    const first = await startOnce(dataDir)
    const later: number[] = []
    for (let n = 0; n < options.rounds; n++) later.push(await startOnce(dataDir))
    options.judge('start', median(later))
    process.stdout.write(
      table(
        'start: milliseconds to an answering session route, embedded',
        ['start', 'ms'],
        [
          ['first, empty directory', withSpread([first])],
          [`second and later, ${options.rounds} rounds`, withSpread(later)],
        ],
      ),
    )
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}
