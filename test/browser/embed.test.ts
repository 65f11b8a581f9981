/**
 * The console on somebody else's page: a rude host with its own type, its own shortcuts and a strict policy. What must hold
 * is that neither side disturbs the other. The host page is the test's own, laid over an address of the console's origin.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, leaveBrowser, leavePage, openPage, type WatchedPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const policyWith = (policies: string): string =>
  `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types ${policies}`
const module = '/embed/signalbox-console.js'

const rudeStyle = `
  * { box-sizing: content-box; letter-spacing: 4px; }
  body { margin: 0; font: 900 30px/3 cursive; text-transform: uppercase; color: red; direction: ltr; }
  button, input, textarea, a, p { display: none; border: 9px solid lime; }
  signalbox-console, signalbox-tasks, signalbox-agents { height: 600px; }
`
const hostScript = `
  window.heard = []
  window.told = []
  document.addEventListener('keydown', (event) => window.heard.push(event.key))
  for (const type of ['signalbox-navigate', 'signalbox-signed-out', 'signalbox-error']) {
    document.addEventListener(type, (event) => {
      window.told.push([type, event.detail])
      if (event.detail.path === window.vetoed) event.preventDefault()
    })
  }
`

declare global {
  interface Window {
    heard: string[]
    told: [string, unknown][]
    vetoed: string | undefined
  }
}

describe('embedding', () => {
  let server: TestConsole
  let peer: Peer
  let browser: Browser
  let watched: WatchedPage

  beforeAll(async () => {
    server = await startConsole({ database: 'pglite' })
    peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    browser = await launchBrowser()
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ cardUrl: peer.cardUrl })
    await fetch(`${server.url}/api/agents`, { method: 'POST', headers, body })
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await peer.close()
    await server.close()
  })
  afterEach(async () => {
    await leavePage(watched.page)
    expect(watched.violations).toEqual([])
  })

  async function host(markup: string, modules: readonly string[] = [module], policies = 'lit-html'): Promise<Page> {
    watched = await openPage(browser)
    const { page } = watched
    const files: Record<string, [type: string, body: string]> = {
      '/portal/rude.css': ['text/css', rudeStyle],
      '/portal/host.js': ['text/javascript', hostScript],
      '/portal': [
        'text/html',
        `<!doctype html><html lang="en"><head><title>Portal</title><link rel="stylesheet" href="/portal/rude.css">
         <script src="/portal/host.js"></script>${modules.map((src) => `<script type="module" src="${src}"></script>`).join('')}</head>
         <body>${markup}</body></html>`,
      ],
    }
    for (const [path, [contentType, body]] of Object.entries(files)) {
      const headers = { 'content-security-policy': policyWith(policies) }
      await page.route(server.url + path, (route) => route.fulfill({ contentType, body, headers }))
    }
    await page.goto(`${server.url}/portal`)
    return page
  }

  it('looks like itself on a page that styles everything', async () => {
    const page = await host('<signalbox-console routing="memory" theme="dark"></signalbox-console>')
    const link = page.getByRole('link', { name: 'Agents' })
    await link.waitFor()
    const style = await link.evaluate((element) => {
      const { letterSpacing, textTransform, borderTopWidth, fontSize, lineHeight } = getComputedStyle(element)
      return { letterSpacing, textTransform, borderTopWidth, fontSize, lineHeight }
    })
    expect(style).toEqual({
      letterSpacing: 'normal',
      textTransform: 'none',
      borderTopWidth: '0px',
      fontSize: '13px',
      lineHeight: '20px',
    })
    expect(await page.getByRole('button', { name: /^Theme/ }).count()).toBe(0)
  })

  it('leaves the address and the title alone in memory routing, and can be vetoed', async () => {
    const page = await host('<signalbox-console routing="memory"></signalbox-console>')
    await page.evaluate(() => {
      window.vetoed = '/actors'
    })
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    await page.getByRole('link', { name: 'Actors' }).click()
    await expect
      .poll(() => page.evaluate(() => window.told))
      .toContainEqual(['signalbox-navigate', { path: '/actors' }])
    expect(await page.getByRole('heading', { name: 'Agents' }).isVisible()).toBe(true)
    expect(new URL(page.url()).pathname).toBe('/portal')
    expect(await page.title()).toBe('Portal')
  })

  it('keeps its place in the hash when asked to', async () => {
    const page = await host('<signalbox-console routing="hash"></signalbox-console>')
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    expect(new URL(page.url()).hash).toBe('#/agents')
    await page.goBack()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
  })

  it('hears keys only while focus is inside', async () => {
    const page = await host('<signalbox-console routing="memory"></signalbox-console>')
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    await page.evaluate(() => document.body.focus())
    await page.keyboard.press('?')
    expect(await page.evaluate(() => window.heard)).toContain('?')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('link', { name: 'Tasks' }).focus()
    await page.keyboard.press('?')
    await page.getByRole('heading', { name: 'Keyboard' }).waitFor()
  })

  /** Every Lit on a page makes a policy of the same name: a host that loads two has to allow it. */
  it('leaves the first definition alone when it is loaded twice', async () => {
    const twice = [module, `${module}?again`]
    const page = await host(
      '<signalbox-console routing="memory"></signalbox-console>',
      twice,
      "lit-html 'allow-duplicates'",
    )
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
  })

  it('offers its views alone', async () => {
    const page = await host('<signalbox-tasks></signalbox-tasks><signalbox-agents theme="dark"></signalbox-agents>')
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    const agents = page.locator('signalbox-agents')
    await agents.getByRole('row').nth(1).getByRole('link').click()
    await agents.getByRole('heading', { name: 'Compliance report' }).waitFor()
    await page.locator('signalbox-tasks').getByRole('button', { name: 'New task' }).click()
    await page.getByRole('textbox', { name: 'Message' }).fill('hello')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('signalbox-task').getByText('Hello.').waitFor()
    expect(new URL(page.url()).pathname).toBe('/portal')
  })
})
