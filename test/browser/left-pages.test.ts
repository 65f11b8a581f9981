/**
 * A page that was left is gone: its keys are not heard on the next one, and nothing holds on to what it had drawn. The console removes
 * a page in the turn in which the page is told of the new address, while an update of it is pending.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { drawn, goTo, launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

let server: TestConsole
let peer: Peer
let browser: Browser
let localId: string
let agentId: string
beforeAll(async () => {
  server = await startConsole({ database: 'pglite' })
  ;[peer, browser] = await Promise.all([startSdkPeer({ version: '1.0', binding: 'JSONRPC' }), launchBrowser()])
  agentId = await server.api.register(peer.cardUrl)
  localId = (await server.finished((await server.send(agentId, { text: 'ask' })).id)).result?.localId ?? ''
})
afterAll(async () => {
  await leaveBrowser(browser)
  await peer.close()
  await server.close()
})

const places = { tasks: 'g t', agents: 'g a', actors: 'g d', audit: 'g u' } as const
type Place = keyof typeof places
const nav = 'nav[aria-label=Console]'

/** The page's own element, drawn. */
const shown = (page: Page, name: string): Promise<void> => page.locator(`signalbox-${name} h1`).first().waitFor()

async function leave(page: Page, to: Place, by: 'key' | 'click'): Promise<void> {
  if (by === 'click') return page.locator(`${nav} [data-route="/${to}"]`).click()
  await page.locator(`${nav} [aria-current]`).focus()
  for (const key of places[to].split(' ')) await page.keyboard.press(key)
}

it.each(['key', 'click'] as const)('the keys of a page are not heard once it was left by %s', async (by) => {
  const { page, violations } = await openPage(browser)
  const ways: readonly (readonly [Place, Place])[] = [
    ['tasks', 'actors'],
    ['tasks', 'audit'],
    ['tasks', 'agents'],
    ['actors', 'tasks'],
    ['agents', 'actors'],
  ]
  await page.goto(`${server.url}/tasks`)
  for (const [from, to] of ways) {
    await goTo(page, `/${from}`)
    await shown(page, from)
    await page.locator(`${nav} [data-route="/${from}"]`).focus()
    await leave(page, to, by)
    await shown(page, to)
    for (const key of ['Escape', '1', '2']) {
      await page.keyboard.press(key)
      await drawn(page)
      expect.soft(new URL(page.url()).pathname, `${key} at ${to}, after ${from}`).toBe(`/${to}`)
    }
  }
  expect(violations).toEqual([])
  await leavePage(page)
})

it('nothing of a page is kept when it is left', async () => {
  const { page } = await openPage(browser)
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Performance.enable')
  await devtools.send('HeapProfiler.enable')
  const kept = async () => {
    await devtools.send('HeapProfiler.collectGarbage')
    await drawn(page)
    await devtools.send('HeapProfiler.collectGarbage')
    const { metrics } = await devtools.send('Performance.getMetrics')
    const value = (name: string): number => metrics.find((each) => each.name === name)?.value ?? NaN
    return { nodes: value('Nodes'), listeners: value('JSEventListeners') }
  }
  await page.goto(`${server.url}/agents`)
  const visit = async (path: string, name: string): Promise<void> => {
    await goTo(page, path)
    await shown(page, name)
    await goTo(page, '/agents')
    await shown(page, 'agents')
  }
  const paths = [
    ['/tasks', 'tasks'],
    [`/tasks/${localId}`, 'task'],
    ['/actors', 'actors'],
    ['/actors?show=system', 'actors'],
    ['/audit', 'audit'],
    ['/access', 'access'],
  ] as const
  for (const [path, name] of paths) {
    // What is loaded and cached once is no leak.
    for (let count = 0; count < 2; count++) await visit(path, name)
    const before = await kept()
    const visits = 8
    for (let count = 0; count < visits; count++) await visit(path, name)
    const more = async () => {
      const after = await kept()
      return { nodes: (after.nodes - before.nodes) / visits, listeners: (after.listeners - before.listeners) / visits }
    }
    // A page has more than a hundred nodes. The last one may still be held by an answer on its way; one that is kept stays kept.
    await expect.poll(more, { message: `${path}: kept a visit` }).toEqual({
      nodes: expect.toSatisfy((count: number) => count < 50),
      listeners: expect.toSatisfy((count: number) => count < 1),
    })
  }
  await leavePage(page)
})
