/** The palette finds what is older than its lists, says how far it looked, and has what was typed before it was there. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { axeFindings } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

let server: TestConsole
let peer: Peer
let browser: Browser
let localId: string

beforeAll(async () => {
  server = await startConsole({ database: 'pglite' })
  ;[peer, browser] = await Promise.all([startSdkPeer({ version: '1.0', binding: 'JSONRPC' }), launchBrowser()])
  const agentId = await server.api.register(peer.cardUrl)
  const { result } = await server.finished((await server.send(agentId, { text: 'ask' })).id)
  localId = result?.localId ?? ''
  await server.finished((await server.send(agentId, { text: 'zebra' })).id)
})
afterAll(async () => {
  await leaveBrowser(browser)
  await peer.close()
  await server.close()
})

async function open(prepare: (page: Page) => Promise<unknown>): Promise<Page> {
  const { page } = await openPage(browser)
  await prepare(page)
  await page.goto(`${server.url}/agents`)
  await page.getByRole('heading', { name: 'Agents' }).waitFor()
  return page
}
/** As if a hundred tasks were newer. */
const withoutNewest = (page: Page): Promise<unknown> =>
  page.route('**/api/tasks?filter=all**', (route) =>
    route.fulfill({ contentType: 'application/json', body: JSON.stringify({ tasks: [] }) }),
  )
const find = (page: Page) => page.getByRole('combobox', { name: 'Find or do' })

it('finds a task that is not among the newest by its title, and says what it looked through', async () => {
  const page = await open(withoutNewest)
  await page.keyboard.press('Control+k')
  await find(page).fill('Ask')
  await page.getByText('Some older ones are found by these words as they stand in a title; Actors has more.').waitFor()
  await page.getByText('Looked through: the newest 100 tasks').waitFor()
  // The message that opened it is called as it is, and is not told beside it.
  const older = page.getByRole('option', { name: /^ask\b/ })
  expect(await older.allInnerTexts()).toEqual([expect.stringMatching(/^ask\s+task$/)])
  expect(await axeFindings(page)).toEqual([])
  await older.click()
  await page.waitForURL(`**/tasks/${localId}`)
  await leavePage(page)
})

it('leaves what somebody is about to choose where it is when older ones come', async () => {
  const held = Promise.withResolvers<void>()
  const page = await open(async (opened) => {
    await withoutNewest(opened)
    await opened.route('**/api/actors?**', async (route) => {
      await held.promise
      await route.continue()
    })
  })
  await page.keyboard.press('Control+k')
  await find(page).fill('zebra')
  const chosen = page.getByRole('option', { selected: true })
  await expect.poll(() => chosen.innerText()).toMatch(/^All actors with these words/)
  held.resolve()
  await page.getByRole('option', { name: /^zebra\b/ }).waitFor()
  expect(await chosen.innerText()).toMatch(/^All actors with these words/)
  await leavePage(page)
})

it('leads to all that have these words, and says when it could not look for older ones', async () => {
  const page = await open((opened) => opened.route('**/api/actors?**', (route) => route.abort()))
  await page.keyboard.press('Control+k')
  await find(page).fill('no such words')
  await page.getByText('Older ones could not be asked for.').waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL('**/actors?q=no+such+words')
  await leavePage(page)
})

it('opens where its code is there, although a page’s could not be loaded', async () => {
  const page = await open((opened) => opened.route(/\/actors-(?!questions)[\w-]+\.js$/, (route) => route.abort()))
  await page.keyboard.press('Control+k')
  await find(page).waitFor()
  await page.keyboard.press('Escape')
  await find(page).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Actors' }).first().click()
  await page.getByText('This page could not be loaded.').waitFor()
  await page.keyboard.press('Control+k')
  await find(page).waitFor()
  await leavePage(page)
})

it('has what was typed before its code was there, and nothing of that reaches the page below', async () => {
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const page = await open((opened) =>
    opened.route(/\/palette-[\w-]{8}\.js$/, async (route) => {
      asked.resolve()
      await held.promise
      await route.continue()
    }),
  )
  await page.keyboard.press('Control+k')
  await asked.promise
  // By itself each of these does something on this page: `n` adds an agent.
  await page.keyboard.type('nex')
  await page.keyboard.press('Backspace')
  await page.keyboard.type('w')
  held.resolve()
  await expect.poll(() => find(page).inputValue()).toBe('new')
  expect(await page.getByRole('dialog').count()).toBe(1)
  await page.keyboard.press('Escape')
  await find(page).waitFor({ state: 'detached' })
  expect(await page.getByRole('textbox', { name: 'Agent Card URL' }).count()).toBe(0)
  // The page has its keys again: with the next frame, for until then the field that is gone has the focus.
  await expect.poll(() => page.evaluate(() => document.activeElement?.localName)).toBe('body')
  await page.keyboard.press('n')
  await page.getByRole('textbox', { name: 'Agent Card URL' }).waitFor()
  await leavePage(page)
})
