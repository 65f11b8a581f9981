/** Code that is loaded when it is first shown, and does not come: its absence is said, and what is there stays. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
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

/** A page on which files of this name do not come until the test lets them. */
async function without(file: RegExp, path: string) {
  const { page } = await openPage(browser)
  const here = { asked: 0, comes: false }
  await page.route(file, (route) => {
    here.asked += 1
    return here.comes ? route.continue() : route.abort()
  })
  await page.goto(`${server.url}${path}`)
  return { page, here }
}
const absence = (page: Page) => page.getByRole('alert').filter({ hasText: 'could not be loaded' })

it('is said to be absent in its place, not asked for by each drawing, and there after a reload', async () => {
  const { page, here } = await without(/\/new-task-[\w-]+\.js$/, '/tasks/new')
  await absence(page).getByText('This page could not be loaded.').waitFor()
  const { asked } = here
  await page.getByRole('button', { name: 'Needs input' }).click()
  await page.goBack()
  await absence(page).waitFor()
  expect(here.asked).toBe(asked)
  here.comes = true
  await absence(page).getByRole('button', { name: 'Reload' }).click()
  await page.getByRole('heading', { name: 'New task' }).waitFor()
  expect(await absence(page).count()).toBe(0)
  await leavePage(page)
})

it('is missed beside what is there: the page stays, and a line says that a part of it is absent', async () => {
  const { page } = await without(/\/palette-[\w-]+\.js$/, '/agents')
  await page.getByRole('heading', { name: 'Agents' }).waitFor()
  await page.keyboard.press('Control+k')
  await absence(page).getByText('A part of this page could not be loaded.').waitFor()
  await page.getByRole('heading', { name: 'Agents' }).waitFor()
  await absence(page).getByRole('button', { name: 'Reload' }).waitFor()
  await leavePage(page)
})
