/** What a page does that is told to wait because too much was asked: it does, says why, and is whole again by itself. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

let browser: Browser
let server: TestConsole
let peer: RawPeer
let agentId: string
beforeAll(async () => {
  ;[server, browser] = await Promise.all([startConsole({ database: 'pglite' }), launchBrowser()])
  peer = await startRawPeer({ card: { name: 'Ledger Agent' } })
  agentId = (await server.system.agents.register(server.viewer, peer.cardUrl)).id
})
afterAll(async () => {
  await leaveBrowser(browser)
  await server.close()
  await peer.close()
})

it.each([
  ['the agents', () => '/agents', 'Unsigned'],
  ['one agent', (): string => `/agents/${agentId}`, 'Card as received'],
  ['the system', () => '/actors?show=system', 'Everything runs, nothing is due'],
])('is whole again by itself, with all that an administrator may do: %s', async (_, path, whole) => {
  const page = await visit(browser, `${server.url}/audit`)
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  const refused: string[] = []
  const reads = /\/api\/(?!tasks\/events)/
  await page.route(reads, (route) => {
    refused.push(new URL(route.request().url()).pathname)
    return route.fulfill({
      status: 429,
      headers: { 'retry-after': '4' },
      json: { error: { message: 'Too many requests. Try again shortly.' } },
    })
  })
  await page.goto(server.url + path())
  // Also what is not asked for, because something else was refused.
  await page.getByText('Too many requests. Try again shortly.').first().waitFor()
  // Nobody asks twice within one wait.
  expect(refused.filter((path, i) => refused.indexOf(path) < i)).toEqual([])
  await page.unroute(reads)
  await page.getByText(whole).first().waitFor()
  await page.getByRole('link', { name: 'Audit' }).waitFor()
  await expect.poll(() => page.getByText('Too many requests').count()).toBe(0)
})

it('shows an agent that answers again, without a press', async () => {
  peer.script.fault('GetAgentCard', { fault: 'reset', performed: false }, Infinity)
  const page = await visit(browser, `${server.url}/agents/${agentId}`)
  await page.getByText('Agent Card discovery failed.').waitFor()
  peer.script.heal()
  await page.getByText('Card as received').waitFor()
  expect(await page.getByText('Agent Card discovery failed.').count()).toBe(0)
})
