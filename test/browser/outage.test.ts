/**
 * What a person sees while the database is away, in a real browser over a real server whose wire to it is cut: that it does not answer, on
 * every page, with what was known last; nothing is asked for without pause, and everything comes back by itself.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { launchBrowser, leaveBrowser, leavePage, openPage, type WatchedPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { freshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { Wire } from '../support/wire.ts'

const patience = { timeout: 60_000 }
const away = 'The database does not answer.'

describe('the database is away', () => {
  let browser: Browser
  let fresh: Awaited<ReturnType<typeof freshDatabase>>
  let wire: Wire
  let db: Database
  let server: TestConsole
  let peer: RawPeer
  let agentId: string
  let watched: WatchedPage

  beforeAll(async () => {
    browser = await launchBrowser()
    fresh = await freshDatabase('postgresql')
    if (fresh.profile.kind !== 'postgresql') throw new Error('There is no wire to an embedded database.')
    wire = new Wire(fresh.profile.url)
    db = await openDatabase({ kind: 'postgresql', url: await wire.open() })
    server = await startConsole({ database: db })
    peer = await startRawPeer({ card: { name: 'Ledger Agent' } })
    agentId = (await server.system.agents.register(server.viewer, peer.cardUrl)).id
    await server.finished((await server.send(agentId, { text: 'direct words' })).id)
  })
  afterAll(async () => {
    wire.mend()
    await leaveBrowser(browser)
    await server.close()
    await db.close()
    wire.close()
    await peer.close()
    await fresh.close()
  })
  afterEach(async () => {
    wire.mend()
    await leavePage(watched.page)
    expect(watched.violations).toEqual([])
    // What a test left undone is done once the pool has its connections again.
    await expect.poll(async () => (await server.api.get('/api/tasks')).status, patience).toBe(200)
  })

  async function open(path: string): Promise<Page> {
    watched = await openPage(browser)
    await watched.page.goto(new URL(path, server.url).href)
    return watched.page
  }
  const live = (page: Page) => page.getByRole('navigation', { name: 'Console' }).getByRole('status')
  const tasks = (page: Page) => page.getByRole('region', { name: 'Tasks', exact: true })

  it('is said where the tasks would be, with a way to retry; they are asked for ever more seldom, until they come', async () => {
    const page = await open('about:blank')
    const askedMs: number[] = []
    page.on('request', (request) => {
      if (new URL(request.url()).pathname === '/api/tasks') askedMs.push(performance.now())
    })
    wire.cut()
    await page.goto(`${server.url}/tasks`)
    const why = tasks(page).getByRole('alert')
    await why.getByText(away).waitFor()
    await expect.poll(() => askedMs.length, patience).toBeGreaterThanOrEqual(3)
    await page.getByText(`${away} Trying again`).waitFor()
    expect(await live(page).innerText()).toBe('Reconnecting…')
    await why.getByRole('button', { name: 'Retry' }).waitFor()
    expect(askedMs.length).toBeLessThan(8)
    const pauses = askedMs.slice(1).map((ms, i) => ms - (askedMs[i] ?? 0))
    expect(Math.min(...pauses)).toBeGreaterThan(500)
    // A filter that was not seen yet is asked for at once, and then no more often.
    askedMs.length = 0
    await page.getByRole('button', { name: 'Done' }).click()
    await why.getByText(away).waitFor()
    await expect.poll(() => askedMs.length, patience).toBeGreaterThanOrEqual(2)
    expect(askedMs.length).toBeLessThan(4)
    wire.mend()
    await tasks(page).getByRole('link', { name: 'direct words' }).waitFor(patience)
    await expect.poll(() => live(page).innerText(), patience).toBe('Live')
    expect(await why.count()).toBe(0)
  })

  it('ends "Live" on a page that was there before, although the console answers', async () => {
    const page = await open('/tasks')
    await tasks(page).getByRole('link', { name: 'direct words' }).waitFor()
    await expect.poll(() => live(page).innerText()).toBe('Live')
    wire.cut()
    // The browser says that it has a network again: the stream of changes is asked for anew, as it is every minute.
    await page.evaluate(() => dispatchEvent(new Event('online')))
    await page.getByText(`${away} Trying again`).waitFor()
    expect(await live(page).innerText()).toBe('Reconnecting…')
    wire.mend()
    await expect.poll(() => live(page).innerText(), patience).toBe('Live')
    // What else the page had asked for is told to be back by its own next answer.
    await expect.poll(() => page.getByText(away).count(), patience).toBe(0)
  })

  it('is said above the agents, with the time of what is shown', async () => {
    const page = await open('/agents')
    await page.getByRole('link', { name: 'Ledger Agent' }).waitFor()
    wire.cut()
    await page.getByText(/The database does not answer. What is shown is as of \d/).waitFor()
    await page.getByRole('link', { name: 'Ledger Agent' }).waitFor()
    // The stream of changes was open: it is doubted, once answers say that the database is away.
    await page.getByText(`${away} Trying again`).waitFor()
    expect(await live(page).innerText()).toBe('Reconnecting…')
    wire.mend()
    await expect.poll(() => page.getByText('What is shown is as of').count(), patience).toBe(0)
  })

  it('is why the agents cannot be shown, until they can: nobody has to ask again', async () => {
    const page = await open('/tasks')
    await tasks(page).getByRole('link', { name: 'direct words' }).waitFor()
    wire.cut()
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('alert').getByText(away).waitFor()
    wire.mend()
    await page.getByRole('link', { name: 'Ledger Agent' }).waitFor(patience)
  })

  it('is why a message is not accepted, and a send not settled; nothing is said of signing in', async () => {
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    await server.finished((await server.send(agentId, { text: 'pay the invoice' })).id)
    const page = await open(`/tasks/new?agent=${agentId}`)
    const strip = page.getByRole('region', { name: 'Messages that need you' })
    await strip.getByRole('button', { name: '1 message needs you' }).click()
    await strip.getByRole('button', { name: 'Settle…' }).click()
    await strip.getByRole('radio', { name: 'It no longer matters' }).check()
    const message = page.getByRole('textbox', { name: 'Message', exact: true })
    await message.fill('hello')
    wire.cut()
    await page.keyboard.press('Control+Enter')
    await page.getByRole('alert').filter({ hasText: 'Not accepted' }).getByText(away).waitFor()
    expect(await message.inputValue()).toBe('hello')
    await strip.getByRole('button', { name: 'Settle', exact: true }).click()
    await strip.getByText(`Not settled: ${away}`).waitFor()
    expect(await page.getByText('Identity service').count()).toBe(0)
  })
})
