/** What pages say where there is nothing to show: that it is so, once, and what can be done about it; and that they then ask for nothing. */
import { randomUUID } from 'node:crypto'
import type { Browser, BrowserContextOptions, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { expectClean } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, pageForTest, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'

let server: TestConsole
let browser: Browser
beforeAll(async () => {
  ;[server, browser] = await Promise.all([startConsole({ database: 'pglite' }), launchBrowser()])
})
afterAll(async () => {
  await leaveBrowser(browser)
  await server.close()
})

const open = (path: string, options: BrowserContextOptions = {}): Promise<Page> =>
  visit(browser, server.url + path, options)

const looks = [
  ['light', {}],
  ['dark at 390 px', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
] as const

describe.each(looks)('in %s', (_, options) => {
  it.each(['agent', 'task'] as const)(
    'of an %s that is not there it is said so, and nothing is offered but the way back',
    async (what) => {
      const page = await open(`/${what}s/${randomUUID()}`, options)
      const heading = page.getByRole('heading', { name: `There is no such ${what}` })
      await heading.waitFor()
      const view = page.locator(`signalbox-${what}`)
      expect(await view.getByRole('button').count()).toBe(0)
      expect(await view.getByRole('link').allInnerTexts()).toEqual(['Back to the list'])
      expect(await view.locator('.empty').boundingBox()).toEqual(await view.boundingBox())
      await expectClean(page)
      await page.getByRole('link', { name: 'Back to the list' }).click()
      await page.waitForURL(`${server.url}/${what}s`)
    },
  )

  it('an agent that is not there is not spoken of any further', async () => {
    const page = await open(`/agents/${randomUUID()}`, options)
    await page.getByRole('heading', { name: 'There is no such agent' }).waitFor()
    const said = page.locator('signalbox-agent').getByText(/agent|registered|credential/i)
    expect(await said.allInnerTexts()).toEqual(['There is no such agent'])
    await page.keyboard.press('c')
    expect(new URL(page.url()).pathname).toMatch(/^\/agents\//)
  })
})

it.each([
  [...looks[0], '/taks'],
  [...looks[1], '/agents/x/y/z'],
  ['light, where no URL can be read', {}, '//:taks'],
] as const)('an address that is mistyped is told so beside the ways on: %s', async (_, options, path) => {
  const page = await pageForTest(browser, options)
  const answer = await page.goto(server.url + path)
  expect(answer?.status()).toBe(404)
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  const rail = page.getByRole('navigation', { name: 'Console' })
  expect(await rail.getByRole('link', { name: 'Agents' }).count()).toBe(1)
  await expectClean(page)
  await page.getByRole('link', { name: 'Go to Tasks' }).click()
  await page.waitForURL(`${server.url}/tasks`)
  await page.getByText('No tasks yet').waitFor()
})

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
  const page = await pageForTest(browser, { locale: 'en-GB', timezoneId: 'UTC' })
  const at = new Date()
  at.setUTCHours(9, 7)
  await page.route('**/api/audit/chain', async (route) => {
    const known = await route.fetch()
    await route.fulfill({ json: { ...((await known.json()) as object), checkedAt: at.toISOString() } })
  })
  await page.goto(`${server.url}/audit`)
  await page.getByRole('definition').filter({ hasText: 'At 09:07, and found whole' }).waitFor()
})

/** Its server's stream of changes is silent for 15 s as often as is told. */
const silence = (page: Page): Promise<boolean> => page.evaluate(() => dispatchEvent(new Event('silence')))

it('a list of tasks at rest asks for nothing but what only time tells', async () => {
  // What its clock is told is told to its whole context.
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.clock.install()
  await page.addInitScript(() => {
    globalThis.EventSource = class extends EventSource {
      constructor(url: string | URL) {
        super(url)
        addEventListener('silence', () => this.dispatchEvent(new Event('resync')))
      }
    }
  })
  const asked = new Map<string, number>()
  const open = new Set<Request>()
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (pathname === '/api/tasks/events') return
    open.add(request)
    asked.set(pathname, (asked.get(pathname) ?? 0) + 1)
  })
  page.on('requestfinished', (request) => void open.delete(request))
  await page.goto(`${server.url}/tasks`)
  await page.getByRole('navigation', { name: 'Console' }).getByText('Live', { exact: true }).waitFor()
  await expect.poll(() => asked.get('/api/unfollowed-tasks')).toBeGreaterThan(0)
  await page.clock.runFor(2_000)
  await expect.poll(() => open.size).toBe(0)
  asked.clear()
  for (let quarter = 0; quarter < 4; quarter += 1) {
    await silence(page)
    await page.clock.runFor(15_000)
    await expect.poll(() => open.size).toBe(0)
  }
  expect([...asked.keys()]).toEqual(['/api/unfollowed-tasks'])
  expect(asked.get('/api/unfollowed-tasks')).toBeLessThanOrEqual(5)
})
