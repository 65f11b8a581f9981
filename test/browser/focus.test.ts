/** The focus stays in the page when what had it goes away by an action of its own: where somebody reads on, or in the main part. */
import { randomUUID } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { drawn, goTo, launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

let server: TestConsole
let peer: Peer
let browser: Browser
let agentId: string

beforeAll(async () => {
  server = await startConsole({ database: 'pglite' })
  ;[peer, browser] = await Promise.all([startSdkPeer({ version: '1.0', binding: 'JSONRPC' }), launchBrowser()])
  agentId = await server.api.register(peer.cardUrl)
})
afterAll(async () => {
  await leaveBrowser(browser)
  await peer.close()
  await server.close()
})

async function open(path: string, options = {}): Promise<Page> {
  const { page } = await openPage(browser, options)
  await page.goto(server.url + path)
  return page
}
/** What has the focus, through every shadow root. */
const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    let at = document.activeElement
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
    return at?.getAttribute('data-route') ?? at?.getAttribute('aria-label') ?? at?.localName ?? ''
  })
const press = async (page: Page, role: 'button' | 'link', name: string): Promise<void> => {
  await page.getByRole(role, { name }).focus()
  await page.keyboard.press('Enter')
}

it('is in the page of an agent that was opened, and back at its row', async () => {
  const page = await open('/agents')
  await page.locator(`[data-route='/agents/${agentId}']`).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Back to the list' }).waitFor()
  await expect.poll(() => focused(page)).toBe('main')
  await press(page, 'link', 'Back to the list')
  await expect.poll(() => focused(page)).toBe(`/agents/${agentId}`)
  await page.keyboard.press('/')
  await page.keyboard.type('no such agent')
  await press(page, 'button', 'Clear filter')
  await expect.poll(() => focused(page)).toBe('Filter agents')
  await leavePage(page)
})

it('is at the first row of the last page that was asked for', async () => {
  const { organizationId } = server.viewer
  const insert = async (title: string) => {
    const id = randomUUID()
    await server.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, created_at, updated_at)
      values ('subscription', ${id}, ${organizationId}, '1', 1,
        jsonb_build_object('value', ${title}::text, 'context', '{}'::jsonb, 'status', 'active'), '{}'::jsonb, now(), now())`)
    return `/actors/subscription/${id}`
  }
  const oldest = await insert('resting')
  for (let count = 0; count < 100; count++) await insert('resting')
  const page = await open('/actors?kind=subscription&q=resting')
  await press(page, 'button', 'Load more')
  await expect.poll(() => focused(page)).toBe(oldest)
  await leavePage(page)
})

it.each([1440, 390])(
  'goes on with Enter from a row into the actor, and with Escape back to its row, at %s px',
  async (width) => {
    const { id } = await server.finished((await server.send(agentId, { text: 'hello' })).id)
    const path = `/actors/command/${id}`
    const page = await open('/actors?kind=command', { viewport: { width, height: 844 } })
    const row = page.locator(`[data-route='${path}']`)
    await row.focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('h2')
    expect(new URL(page.url()).pathname).toBe(path)
    await page.locator('input[type=range]:enabled').waitFor()
    await page.keyboard.press(',')
    await page.getByText(/Looking at step \d/, { exact: true }).waitFor()
    // From the past it leads to the present first.
    await page.keyboard.press('Escape')
    await page.getByText('Finished', { exact: true }).waitFor()
    expect(await focused(page)).toBe('h2')
    await page.keyboard.press('Escape')
    await expect.poll(() => focused(page)).toBe(path)
    // Where the list has room it stayed, and stays; else it is what it was, narrowed as it was.
    expect(new URL(page.url()).pathname).toBe(width > 720 ? path : '/actors')
    if (width <= 720) expect(new URL(page.url()).search).toBe('?kind=command')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('h2')
    await leavePage(page)
  },
)

it('stays with the list where a row is clicked', async () => {
  const { id } = await server.finished((await server.send(agentId, { text: 'hello' })).id)
  const page = await open('/actors')
  await page.locator(`[data-route='/actors/command/${id}']`).click()
  await page.getByRole('button', { name: 'Look at step 1: created' }).waitFor()
  expect(await focused(page)).toBe(`/actors/command/${id}`)
  await leavePage(page)
})

it.each([1440, 390])(
  'stays where somebody went while an actor that was opened was on its way, at %s px',
  async (width) => {
    const { id } = await server.finished((await server.send(agentId, { text: 'hello' })).id)
    const page = await open('/actors', { viewport: { width, height: 844 } })
    let answer = (): void => {}
    const asked = new Promise<void>((resolve) => (answer = resolve))
    await page.route(`**/api/actors/command/${id}`, async (route) => {
      await asked
      await route.continue()
    })
    await page.locator(`[data-route='/actors/command/${id}']`).focus()
    await page.keyboard.press('Enter')
    await page.locator('signalbox-actor .loading').waitFor()
    await page.getByRole('link', { name: 'Agents' }).focus()
    answer()
    await page.locator('signalbox-actor h2').waitFor()
    await drawn(page)
    expect(await focused(page)).toBe('/agents')
    await leavePage(page)
  },
)

it.each([1440, 390])(
  'is at the button of the session menu that Escape closed, on the same page, at %s px',
  async (width) => {
    const { id } = await server.finished((await server.send(agentId, { text: 'hello' })).id)
    const page = await open('/actors', { viewport: { width, height: 844 } })
    const button = page.getByRole('button', { name: 'your session' })
    const panel = page.getByRole('region', { name: 'Your session' })
    for (const path of [`/actors/command/${id}`, `/agents/${agentId}`]) {
      await goTo(page, path)
      await page.locator('signalbox-actor h2, signalbox-agent h1').first().waitFor()
      const closes = async (): Promise<void> => {
        await page.keyboard.press('Escape')
        await panel.waitFor({ state: 'hidden' })
        expect(await button.evaluate((element) => element.matches(':focus'))).toBe(true)
        expect(new URL(page.url()).pathname).toBe(path)
      }
      await button.focus()
      await page.keyboard.press('Enter')
      await panel.waitFor()
      await closes()
      await button.click()
      // Its words take no focus: then nothing has it.
      await panel.getByText('Nobody signs in here').click()
      expect(await focused(page)).toBe('body')
      await closes()
    }
    await leavePage(page)
  },
)

it('stays in the navigation where Escape is pressed there beside an actor', async () => {
  const { id } = await server.finished((await server.send(agentId, { text: 'hello' })).id)
  for (const width of [1440, 390]) {
    const page = await open(`/actors/command/${id}`, { viewport: { width, height: 844 } })
    await page.locator('signalbox-actor h2').waitFor()
    await page.getByRole('link', { name: 'Agents' }).focus()
    await page.keyboard.press('Escape')
    await drawn(page)
    expect(await focused(page)).toBe('/agents')
    expect(new URL(page.url()).pathname).toBe(`/actors/command/${id}`)
    await leavePage(page)
  }
})

it('goes back to its row with Escape also from an actor where nothing has it, or the main part', async () => {
  const { id } = await server.finished((await server.send(agentId, { text: 'hello' })).id)
  const path = `/actors/command/${id}`
  const page = await open('/actors', { viewport: { width: 390, height: 844 } })
  for (const place of ['body', 'main']) {
    // The list is taken away, and the focus with it.
    await page.locator(`[data-route='${path}']`).click()
    await page.locator('signalbox-actor h2').waitFor()
    if (place === 'main') await press(page, 'button', 'Skip to content')
    expect(await focused(page)).toBe(place)
    await page.keyboard.press('Escape')
    await expect.poll(() => focused(page)).toBe(path)
  }
  await leavePage(page)
})

it('is in the page of a task whose cancel took its own button away', async () => {
  const { result } = await server.finished((await server.send(agentId, { text: 'hold' })).id)
  const page = await open(`/tasks/${result?.localId}`)
  await press(page, 'button', 'Cancel task')
  await press(page, 'button', 'Yes, cancel it')
  await page.getByRole('button', { name: 'Cancel task' }).waitFor({ state: 'detached' })
  await page.locator('signalbox-task .chips').getByText('Canceled').waitFor()
  await expect.poll(() => focused(page)).toBe('main')
  await leavePage(page)
})
