/**
 * Every page at the widths of a telephone, and of a desktop that is enlarged fourfold (WCAG 1.4.10): nothing is cut off or scrolls
 * sideways but charts and logs, no word of a heading is broken, and no name is squeezed until nobody can read it.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { drawn, goTo, launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import type { Peer } from '../support/peers/peer.ts'

const patience = { timeout: 20_000, interval: 100 }
let server: TestConsole
let peer: Peer
let raw: RawPeer
let browser: Browser
let longNamed: Peer
let agentId: string
let longNamedId: string
const tasks = new Map<string, string>()
const actors = new Map<string, string>()
/** As an address or a name of a German ship is: nothing in it to break at. */
const word = (letters: number): string => 'Donaudampfschiff'.repeat(letters / 16 + 1).slice(0, letters)

beforeAll(async () => {
  server = await startConsole({ database: 'pglite' })
  ;[peer, longNamed, raw, browser] = await Promise.all([
    startSdkPeer({ version: '1.0', binding: 'JSONRPC' }),
    startSdkPeer({
      version: '1.0',
      binding: 'JSONRPC',
      card: {
        name: word(180),
        skills: [{ id: word(160), name: word(160), description: word(160), tags: [word(160)] }],
      },
    }),
    startRawPeer(),
    launchBrowser(),
  ])
  agentId = await server.api.register(peer.cardUrl)
  longNamedId = await server.api.register(longNamed.cardUrl)
  const dead = await server.api.register('http://127.0.0.1:1/a-path-that-is-longer-than-most/agent-card.json')
  const ledger = await server.api.register(raw.cardUrl)
  await server.api.post('/api/admin/security', { action: 'createTeam', name: 'Day shift of the northern yard' })
  raw.script.fault('SendMessage', { fault: 'reset', performed: false })
  const uncertain = await server.finished((await server.send(ledger, { text: 'pay the invoice of last month' })).id)
  const failed = await server.finished((await server.send(dead, { text: 'never arrives' })).id)
  for (const { id, status } of [uncertain, failed]) actors.set(status, `/actors/command/${id}`)
  for (const text of ['ask', 'files', 'hold']) {
    const { result } = await server.finished((await server.send(agentId, { text })).id)
    tasks.set(text, result?.localId ?? '')
  }
  const { result } = await server.finished((await server.send(longNamedId, { text: 'ask' })).id)
  tasks.set('long', result?.localId ?? '')
  await vi.waitFor(async () => {
    const { status } = await server.api.get(`/api/actors/subscription/${tasks.get('ask')}`)
    if (status !== 200) throw new Error('The task is not followed yet.')
  }, patience)
  actors.set('followed', `/actors/subscription/${tasks.get('ask')}`)
})
afterAll(async () => {
  await leaveBrowser(browser)
  await Promise.all([peer.close(), longNamed.close(), raw.close()])
  await server.close()
})

/** What does not fit, in words; of the page itself and of every shadow root in it. */
const misfits = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const found = new Set<string>()
    const told = (element: Element): string =>
      `${element.tagName.toLowerCase()}.${element.getAttribute('class') ?? ''} “${(element.textContent ?? '').trim().slice(0, 40)}”`
    /** Wide by its nature: a picture, and a log of columns. */
    const isExempt = (element: Element): boolean => element.closest('signalbox-statechart, svg, .log') !== null
    const isForEars = (element: Element): boolean => {
      for (let at: Element | null = element; at; at = at.parentElement)
        if (getComputedStyle(at).clipPath !== 'none') return true
      return false
    }
    const look = (element: Element): void => {
      const style = getComputedStyle(element)
      const { clientWidth, scrollWidth } = element
      const isWider = clientWidth > 0 && scrollWidth > clientWidth + 1
      if (isWider && style.textOverflow === 'ellipsis' && clientWidth < 40) found.add(`squeezed ${told(element)}`)
      if (isWider && style.textOverflow !== 'ellipsis' && style.overflowX !== 'visible')
        found.add(`cut ${told(element)}`)
      if (!element.matches('h1, h2, h3, h3 bdi, button, b') || element.childElementCount > 0) return
      const range = document.createRange()
      range.selectNodeContents(element)
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
      if (lines.size > (element.textContent ?? '').trim().split(/[\s/-]+/).length) found.add(`broken ${told(element)}`)
    }
    const visit = (root: ParentNode): void => {
      for (const element of root.querySelectorAll('*')) {
        if (isExempt(element)) continue
        const { width, height } = element.getBoundingClientRect()
        if (width > 1 && height > 1 && !isForEars(element)) look(element)
        if (element.shadowRoot) visit(element.shadowRoot)
      }
    }
    visit(document)
    return [...found]
  })

it.each([
  ['light', 390],
  ['dark', 320],
] as const)('every page fits in %s at %d px', async (colorScheme, width) => {
  const { page } = await openPage(browser, { colorScheme, viewport: { width, height: 800 } })
  const pages: readonly (readonly [path: string | undefined, shown: string])[] = [
    ['/tasks', 'ask'],
    [`/tasks/${tasks.get('ask')}`, 'Which colour?'],
    [`/tasks/${tasks.get('files')}`, 'not opened'],
    [`/tasks/new?agent=${agentId}`, 'New task'],
    ['/agents', 'Agent Card discovery failed'],
    [`/agents/${agentId}`, 'Compliance report'],
    ['/access', 'People who may sign in'],
    ['/access/teams', 'Day shift'],
    ['/access/grants', 'What of it'],
    ['/audit', 'created the team'],
    ['/actors', 'pay the invoice'],
    ['/actors?show=system', 'Queues'],
    ['/actors?show=machines', 'These are the machines'],
    [actors.get('uncertain'), 'Outcome unknown'],
    [actors.get('failed'), 'Not delivered'],
    [actors.get('followed'), 'Go live'],
  ]
  await page.goto(`${server.url}/tasks`)
  for (const [path = '', shown] of pages) {
    await goTo(page, path)
    await page.getByText(shown).locator('visible=true').first().waitFor()
    expect.soft(await misfits(page), path).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), path).toBeLessThanOrEqual(0)
  }
  await leavePage(page)
})

it.each([
  ['light', 1440],
  ['dark', 390],
] as const)('a word without an end is broken in %s at %d px', async (colorScheme, width) => {
  const { page } = await openPage(browser, { colorScheme, viewport: { width, height: 900 } })
  const pages: readonly (readonly [path: string, shown: string])[] = [
    [`/tasks/${tasks.get('long')}`, 'Which colour?'],
    [`/tasks/new?agent=${longNamedId}`, 'New task'],
    ['/tasks', 'ask'],
    ['/agents', 'Agent Card discovery failed'],
    [`/agents/${longNamedId}`, 'Skills'],
  ]
  // A word that has to be broken or cut short is: what is asked is whether the page keeps its width.
  const wide = async (): Promise<string[]> => (await misfits(page)).filter((each) => each.startsWith('cut'))
  await page.addInitScript(() => localStorage.setItem('signalbox.task-side', 'open'))
  await page.goto(`${server.url}/actors`)
  for (const [path, shown] of pages) {
    await goTo(page, path)
    await page.getByText(shown).locator('visible=true').first().waitFor()
    expect.soft(await wide(), path).toEqual([])
    const field = page.getByRole('textbox', { name: 'Message' })
    if (!/^.tasks.+/.test(path)) continue
    await field.fill(word(320))
    expect.soft(await wide(), `${path}, with a long word in the field`).toEqual([])
    const send = await page.getByRole('button', { name: 'Send', exact: false }).boundingBox()
    expect.soft((send?.x ?? Infinity) + (send?.width ?? 0), `${path}: Send`).toBeLessThanOrEqual(width)
  }
  await leavePage(page)
})

/** Links, buttons and fields that are lower or narrower than a finger's target has to be (WCAG 2.2, 2.5.8), in words. */
const smallTargets = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const found: string[] = []
    const visit = (root: ParentNode): void => {
      for (const element of root.querySelectorAll('*')) {
        if (element.shadowRoot) visit(element.shadowRoot)
        const { width, height } = element.getBoundingClientRect()
        if (!element.matches('a, button, input, select, summary') || width < 2 || height < 2) continue
        if (element.checkVisibility() && Math.min(width, height) < 24)
          found.push(`${element.localName} “${(element.textContent ?? '').trim().slice(0, 40)}” ${width} × ${height}`)
      }
    }
    visit(document)
    return found
  })

it('a finger finds everything on the pages of actors, at 390 px', async () => {
  const { page } = await openPage(browser, { viewport: { width: 390, height: 844 } })
  await page.goto(`${server.url}/actors`)
  await page.getByText('pay the invoice').first().waitFor()
  expect.soft(await smallTargets(page)).toEqual([])
  await goTo(page, '/actors?show=system')
  await page.getByRole('link', { name: /command actors that need attention/ }).waitFor()
  expect.soft(await smallTargets(page)).toEqual([])
  for (const path of actors.values()) {
    await goTo(page, path)
    await page.getByRole('heading', { name: path.slice(-6) }).waitFor()
    for (const part of ['Details', 'Log', 'Chart']) {
      await page.getByRole('button', { name: part, exact: true }).click()
      await drawn(page)
      expect.soft(await smallTargets(page), `${path} ${part}`).toEqual([])
    }
    const told = page.getByRole('button', { name: 'To know' })
    if (await told.count()) await told.click()
    expect.soft(await smallTargets(page), path).toEqual([])
  }
  await leavePage(page)
})
