/**
 * The built console behind the built launcher, on one data directory through all its ends: the lock, readiness, a clean
 * stop, and the death of either process. `npm run build` makes what is started here. The launcher's own promises, with
 * any server behind it, are launcher.test.ts.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bareEnvironment } from '../support/child.ts'
import { placeDatabase } from '../support/migrated-dump.ts'
import { type Running, watch } from './stage.ts'
import { freePort } from '../support/free-port.ts'

const launcher = resolve(import.meta.dirname, '../../dist/bin/signalbox.js')
/** A first start makes a database, which takes seconds on an idle machine and many on a busy one. */
const patience = { timeout: 60_000 }

let home: string
let running: Running[]
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'signalbox-console-'))
  running = []
})
afterEach(async () => {
  for (const { process: each } of running) each.kill('SIGKILL')
  await Promise.all(running.map(({ outcome }) => outcome))
  rmSync(home, { recursive: true, force: true })
})

const dataDir = () => join(home, 'data')
function launch(port: number): Running {
  const args = ['--no-open', '--port', String(port), '--data-dir', dataDir()]
  const child = spawn(process.execPath, [launcher, ...args], {
    env: { ...bareEnvironment(), HOME: home, CI: 'true' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const started = watch(child)
  running.push(started)
  return started
}

async function started() {
  const port = await freePort()
  const { says, ...rest } = launch(port)
  await says('is ready at')
  return { ...rest, port, pid: Number(readFileSync(join(dataDir(), 'signalbox.pid'), 'utf8').split('\n')[0]) }
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false // ESRCH: that it is gone is what the test asks
  }
}

test('one console for a data directory, which ends with 0 and leaves no pid file', async () => {
  const first = await started()
  const session = await fetch(`http://127.0.0.1:${first.port}/api/auth/session`)
  expect(session.status).toBe(200)
  for (const name of ['pglite', 'artifacts', 'secrets.json', 'signalbox.pid'])
    expect(existsSync(join(dataDir(), name)), name).toBe(true)

  const second = await launch(await freePort()).outcome
  expect(second.code).toBe(1)
  expect(second.stdout).toBe('')
  expect(second.stderr).toMatch(new RegExp(`signalbox: .*in use by another process \\(pid ${first.pid}\\)`))

  first.process.kill('SIGTERM')
  expect((await first.outcome).code).toBe(0)
  expect(existsSync(join(dataDir(), 'signalbox.pid'))).toBe(false)
})

test('a killed console is no obstacle, and a killed launcher takes its console along', async () => {
  await placeDatabase(dataDir())
  const first = await started()
  process.kill(first.pid, 'SIGKILL')
  expect((await first.outcome).code).toBe(137)

  const second = await started()
  second.process.kill('SIGKILL')
  await expect.poll(() => isAlive(second.pid), patience).toBe(false)

  const third = await started()
  third.process.kill('SIGINT')
  expect((await third.outcome).code).toBe(0)
})
