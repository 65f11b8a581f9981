/**
 * What a person sees beside the banner once the console's process is gone, in a real browser: what was known last, as that; nothing goes
 * on counting, and nothing is said to happen that nobody can know of.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { Client } from '../support/api.ts'
import { axeFindings } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { spawnConsole, type SpawnedConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

let dataDirectory: string
let server: SpawnedConsole
let peer: RawPeer
let browser: Browser

beforeAll(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'signalbox-gone-'))
  ;[server, peer, browser] = await Promise.all([
    spawnConsole({ dataDirectory, database: 'pglite' }),
    startRawPeer({ card: { name: 'Ledger Agent' } }),
    launchBrowser(),
  ])
})
afterAll(async () => {
  await leaveBrowser(browser)
  await server.kill()
  await peer.close()
  await rm(dataDirectory, { recursive: true, force: true })
})

it('counts nothing down beside what was known last, and says as of when a task was followed', async () => {
  const api = new Client(server.url)
  const agentId = await api.register(peer.cardUrl)
  const { localId } = await api.send(agentId, { text: 'hold' })
  peer.script.holdReplies()
  const sending = await api.stream(`/api/agents/${agentId}/stream`, { text: 'is anybody there' })
  const { data } = await sending.until('accepted')
  sending.cancel()
  const { commandId } = z.object({ commandId: z.guid() }).parse(data)
  const task = await visit(browser, `${server.url}/tasks/${localId}`)
  await task.getByText('Following', { exact: true }).waitFor()
  const actor = await visit(browser, `${server.url}/actors/command/${commandId}`)
  const until = actor.getByRole('complementary', { name: 'Actor details' }).locator('div:has(> dt:text-is("Until")) dd')
  await expect.poll(() => until.innerText()).toMatch(/^in \d+ s$/)
  await server.kill()
  await actor.getByText('As last known').waitFor()
  expect(await until.innerText()).toMatch(/^\d+:\d\d:\d\d/)
  expect(await axeFindings(actor)).toEqual([])
  await task.bringToFront()
  await task.getByText(/^Not up to date: as it was at \d+:\d\d:\d\d/).waitFor()
  expect(await axeFindings(task)).toEqual([])
})
