/**
 * Going from page to page: whatever was looked at before, each page shows what it shows when it is the first. What is known already is
 * there at once and brings no answer that a page could wait for.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { chanceOf } from '../chaos/seed.ts'
import { goTo, launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { sized } from '../support/pass.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

let server: TestConsole
let browser: Browser
let peer: RawPeer
let paths: readonly [string, ...string[]]
beforeAll(async () => {
  ;[server, peer, browser] = await Promise.all([
    startConsole({ database: 'postgresql' }),
    startRawPeer(),
    launchBrowser(),
  ])
  const agentId = await server.api.register(peer.cardUrl)
  await server.api.post('/api/admin/security', { action: 'createTeam', name: 'Day shift' })
  const done = await server.finished((await server.send(agentId, { text: 'files' })).id)
  const direct = await server.finished((await server.send(agentId, { text: 'direct' })).id)
  const localId = done.result?.localId ?? ''
  paths = [
    '/tasks',
    `/tasks/${localId}`,
    `/tasks/new?agent=${agentId}`,
    '/agents',
    `/agents/${agentId}`,
    '/access',
    '/access/teams',
    '/access/grants',
    '/audit',
    '/audit?group=commands',
    '/actors',
    '/actors?show=system',
    '/actors?show=machines',
    `/actors/command/${direct.id}`,
  ]
})
afterAll(async () => {
  await leaveBrowser(browser)
  await server.close()
  await peer.close()
})

/** What is read out, but for numbers that go on by themselves: how long ago it was, and who has a connection just now. */
const moving = /\bnow\b|\b\d+[mhd]\b|\d+ \w+ ago|[\d.]+ (?:m?s|min)\b|\d+ connections? in use, \d+ idle/g
const told = async (page: Page): Promise<string> =>
  (await page.locator('signalbox-console main').ariaSnapshot()).replaceAll(moving, '…')

/** Shorter than what is asked for again by itself (5 s): that would heal a page which waits for nothing. */
const patience = { timeout: 4_000 }

it('each page shows what it shows when it is the first', { timeout: 600_000 }, async () => {
  const first = new Map<string, string>()
  for (const path of paths) {
    const { page } = await openPage(browser)
    await page.goto(server.url + path, { waitUntil: 'networkidle' })
    first.set(path, await told(page))
    await leavePage(page)
  }
  const chance = chanceOf('walks')
  const { page } = await openPage(browser)
  await page.goto(`${server.url}/agents`)
  const walked = ['/agents']
  // Each once, and then as chance has it: not so often that a person's reads of a minute are used up.
  const drawn = Array.from({ length: sized(6, 100) }, () => chance.pick(paths))
  for (const path of [...paths, ...drawn]) {
    walked.push(path)
    await goTo(page, path)
    await expect.poll(() => told(page), { ...patience, message: walked.slice(-3).join(' → ') }).toBe(first.get(path))
  }
  await leavePage(page)
})
