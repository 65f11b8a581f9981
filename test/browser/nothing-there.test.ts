/** What pages say where there is nothing to show: that it is so, once, and what can be done about it; nothing else is offered. */
import { randomUUID } from 'node:crypto'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { expectClean } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, leavePage, openPage, type WatchedPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'

let server: TestConsole
let browser: Browser
let watched: WatchedPage
beforeAll(async () => {
  ;[server, browser] = await Promise.all([startConsole({ database: 'pglite' }), launchBrowser()])
})
afterAll(async () => {
  await leaveBrowser(browser)
  await server.close()
})
afterEach(async () => {
  await leavePage(watched.page)
  expect(watched.violations).toEqual([])
})

async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  watched = await openPage(browser, options)
  await watched.page.goto(server.url + path)
  return watched.page
}

it.each([
  ['light', {}],
  ['dark at 390 px', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
] as const)(
  'an agent that is not there is told so, and nothing is offered but the way back: %s',
  async (_, options) => {
    const page = await open(`/agents/${randomUUID()}`, options)
    await page.getByRole('heading', { name: 'There is no such agent' }).waitFor()
    const agent = page.locator('signalbox-agent')
    expect(await agent.getByRole('button').count()).toBe(0)
    expect(await agent.getByRole('link').allInnerTexts()).toEqual(['Back to the list'])
    expect(await agent.getByText(/agent|registered|credential/i).allInnerTexts()).toEqual(['There is no such agent'])
    await expectClean(page)
    await page.keyboard.press('c')
    expect(new URL(page.url()).pathname).toMatch(/^\/agents\//)
    await page.getByRole('link', { name: 'Back to the list' }).click()
    await page.waitForURL(/\/agents$/)
  },
)

it.each(['light', 'dark'] as const)('an audit trail without a record blames no filter, in %s', async (colorScheme) => {
  const page = await open('/audit', { colorScheme })
  await page.getByText('Nothing is recorded yet').waitFor()
  expect(await page.getByRole('button', { name: 'Clear' }).count()).toBe(0)
  await expectClean(page)
  await page.getByRole('button', { name: 'Messages' }).click()
  await page.getByText('No record matches').waitFor()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByText('Nothing is recorded yet').waitFor()
})

it('when the chain was followed is a time, not how long it took', async () => {
  watched = await openPage(browser, { locale: 'en-GB', timezoneId: 'UTC' })
  const { page } = watched
  const at = new Date()
  at.setUTCHours(9, 7)
  await page.route('**/api/audit/chain', async (route) => {
    const known = await route.fetch()
    await route.fulfill({ json: { ...((await known.json()) as object), checkedAt: at.toISOString() } })
  })
  await page.goto(`${server.url}/audit`)
  await page.getByRole('definition').filter({ hasText: 'At 09:07, and found whole' }).waitFor()
})
