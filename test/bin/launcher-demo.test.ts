/** Where `--demo` puts its agents: where they were at the last start with the same data directory, so that they are there again. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startAgents } from '../../bin/launcher-demo.ts'
import { freePort } from '../support/free-port.ts'

let dataDir: string
let file: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'signalbox-demo-'))
  file = join(dataDir, 'demo-agents.port')
})
afterEach(() => rmSync(dataDir, { recursive: true }))

async function portOfAStart(): Promise<number> {
  const agents = await startAgents({}, dataDir)
  await agents.close()
  return agents.port
}

it('are on the port of the last start', async () => {
  const port = await freePort()
  writeFileSync(file, `${port}\n`)
  expect([await portOfAStart(), await portOfAStart()]).toEqual([port, port])
})

it('are on another where somebody has taken that, and stay there', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const address = other.address()
  const taken = typeof address === 'object' ? (address?.port ?? 0) : 0
  writeFileSync(file, `${taken}\n`)
  const port = await portOfAStart()
  other.close()
  expect(port).not.toBe(taken)
  expect(readFileSync(file, 'utf8')).toBe(`${port}\n`)
})

it('start also where what was kept is no port', async () => {
  writeFileSync(file, 'seventy\n')
  expect(await portOfAStart()).toBeGreaterThan(0)
})
