/** The Actors page in a real browser, over actors that really moved: find one, see where it is, replay how it came there. */
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ActorPage } from '../../domain/actor.ts'
import type { ActorSummary } from '../../domain/chart.ts'
import { axeOn, launchBrowser, openPage, type WatchedPage } from '../support/browser.ts'
import { startConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

/** Nobody listens on this port, so discovery is tried three times and the command fails. */
const deadCardUrl = 'http://127.0.0.1:1/card.json'
const patience = { timeout: 20_000, interval: 200 }

describe('the Actors page', () => {
  let server: Awaited<ReturnType<typeof startConsole>>
  let peer: Peer
  let browser: Browser
  let watched: WatchedPage
  let agentId: string
  let failed: ActorSummary
  let resting: ActorSummary

  async function post<T>(path: string, body: unknown, key = ''): Promise<T> {
    const headers = { 'content-type': 'application/json', ...(key === '' ? {} : { 'idempotency-key': key }) }
    const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(response.ok, `${path} ${response.status}`).toBe(true)
    return (await response.json()) as T
  }
  const register = async (cardUrl: string): Promise<string> =>
    (await post<{ agent: { id: string } }>('/api/agents', { cardUrl })).agent.id
  const send = (agent: string, text: string, key: string) => post(`/api/agents/${agent}/commands`, { text }, key)

  const actorIn = (kind: string, state: string): Promise<ActorSummary> =>
    vi.waitFor(async () => {
      const response = await fetch(`${server.url}/api/actors?kind=${kind}&state=${state}`)
      const [found] = ActorPage.parse(await response.json()).actors
      if (!found) throw new Error(`No ${kind} came to be ${state}.`)
      return found
    }, patience)

  beforeAll(async () => {
    server = await startConsole({ database: 'pglite' })
    peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    browser = await launchBrowser()
    agentId = await register(peer.cardUrl)
    await send(await register(deadCardUrl), 'never arrives', 'dead')
    await send(agentId, 'ask', 'ask')
    resting = await actorIn('subscription', 'resting')
    failed = await actorIn('command', 'failed')
  })
  afterAll(async () => {
    await browser.close()
    await peer.close()
    await server.close()
  })
  afterEach(async () => {
    await watched.page.context().close()
    if (watched.violations.length > 0) throw new Error(watched.violations.join('\n'))
  })

  async function open(path: string, options = {}) {
    watched = await openPage(browser, options)
    await watched.page.goto(server.url + path)
    return watched.page
  }
  const pathOf = ({ kind, id }: ActorSummary): string => `/actors/${kind}/${id}`

  it('shows what needs a person first, and says why in words', async () => {
    const page = await open('/actors')
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').getByRole('link')
    await rows.first().getByRole('img', { name: 'Needs attention' }).waitFor()
    await rows.first().click()
    await page.getByText('Not delivered.').waitFor()
    await page.getByText('The agent did not show its card in three tries, so nothing was sent to it.').waitFor()
    await page.getByText('Given up before anything was sent').waitFor()
    await page.getByRole('link', { name: 'Send again…' }).waitFor()
    expect(new URL(page.url()).pathname).toBe(pathOf(failed))
  })

  it('draws the chart with the present state, and says the same as an outline', async () => {
    const page = await open(pathOf(failed))
    await page.getByRole('group', { name: /Statechart of command\. Current state: failed/ }).waitFor()
    await page.getByRole('button', { name: 'Outline' }).click()
    const outline = page.getByRole('region', { name: 'command as an outline' })
    await expect.poll(() => outline.locator('[aria-current]').allInnerTexts(), patience).toHaveLength(2)
    expect(await outline.locator('.leaf .key').innerText()).toBe('failed')
    expect(await outline.getByText('after backoff').locator('..').innerText()).toContain('taken 2 times')
  })

  it('replays the log with the keyboard alone and comes back to live', async () => {
    const page = await open(pathOf(failed))
    await page.getByRole('row').nth(1).waitFor()
    // Without steps there is nowhere to slide to, and a field that is disabled takes no focus.
    await page.getByRole('slider', { name: 'Step' }).focus()
    const last = await page.getByRole('row').count()
    await page.keyboard.press(',')
    await page.getByText(`Looking at step ${last - 2}`, { exact: true }).waitFor()
    await page.keyboard.press('Home')
    await page.getByText('Looking at step 1', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('?step=1')
    await page.getByRole('group', { name: /Current state: pending › discovering/ }).waitFor()
    await page.getByRole('button', { name: 'Look at step 2: discover done' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('Looking at step 2', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('Finished', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('')
  })

  it('opens a link to a step at that step', async () => {
    const page = await open(`${pathOf(failed)}?step=2`)
    await page.getByText('Looking at step 2', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Go live' }).click()
    await page.getByText('Finished', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('')
  })

  it('filters by words and by attention, and says when nothing is left', async () => {
    const page = await open('/actors')
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').getByRole('link')
    await rows.first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('resting')
    await expect.poll(() => rows.count(), patience).toBe(1)
    await rows.first().click()
    await page.getByText('Following live').waitFor()
    await page.getByRole('searchbox', { name: 'Filter actors' }).fill('no such actor')
    await page.getByText('No actor matches').waitFor()
    await page.getByRole('searchbox', { name: 'Filter actors' }).fill('')
    await page.getByRole('button', { name: 'Attention' }).click()
    await expect.poll(() => rows.count(), patience).toBe(1)
  })

  it('keeps rows in their places when new actors arrive', async () => {
    const page = await open('/actors')
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').getByRole('link')
    await rows.first().waitFor()
    const before = await rows.count()
    await send(agentId, 'hello', 'hello')
    const show = page.getByRole('button', { name: /new actors?\. Show/ })
    await show.waitFor()
    expect(await rows.count()).toBe(before)
    await show.click()
    await expect.poll(() => rows.count(), patience).toBeGreaterThan(before)
  })

  it('shows the whole at a glance: queues, leases, loops, and the way to what needs a person', async () => {
    const page = await open('/actors')
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('Everything runs').waitFor()
    const loops = system.getByRole('table', { name: "The supervisor's loops in this process" })
    await expect
      .poll(() => loops.getByRole('row', { name: /^subscription.*Up\s+0 of 8\s+0\s+none/ }).count(), patience)
      .toBe(1)
    const queues = system.getByRole('table', { name: 'What is due, by kind of actor' })
    await queues
      .getByRole('row', { name: /^command 0 none 0 Nothing waits/ })
      .getByRole('link', { name: '1 command actors' })
      .click()
    const rows = page
      .getByRole('region', { name: 'Actors' })
      .getByRole('listitem')
      .getByRole('link', { name: /command/ })
    await expect.poll(() => rows.count(), patience).toBe(1)
    expect(await page.getByRole('button', { name: 'Attention' }).getAttribute('aria-pressed')).toBe('true')
  })

  it('says what can happen next in words, with the work and the timers', async () => {
    const page = await open(pathOf(resting))
    const details = page.getByRole('complementary', { name: 'Actor details' })
    await details.getByText('A delivered reply wakes it.').waitFor()
    await details.getByText('When a person’s reply was delivered, or somebody else saw the task move').waitFor()
  })

  it('shows the machines, and the supervisor where it is now', async () => {
    const page = await open('/actors')
    await page.getByRole('link', { name: 'Machines' }).click()
    await page.getByRole('button', { name: 'supervisor' }).click()
    const chart = page.getByRole('group', { name: /^Statechart of supervisor/ })
    await expect
      .poll(() => chart.getAttribute('aria-label'), patience)
      .toContain('Current state: running › leases › up')
  })

  it('says that an actor is not there', async () => {
    const page = await open('/actors/command/00000000-0000-7000-8000-000000000000')
    const told = page.getByRole('region', { name: 'The chosen actor' })
    await expect.poll(() => told.getByText('Actor not found').count(), patience).toBe(1)
  })

  it.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 720],
    ['dark', 720],
  ] as const)('has no accessibility violations in %s at %d px', async (colorScheme, width) => {
    const page = await open(`${pathOf(resting)}?step=1`, { colorScheme, viewport: { width, height: 900 } })
    await page.getByText('Looking at step 1', { exact: true }).waitFor()
    await page.getByRole('group', { name: /Statechart of subscription/ }).waitFor()
    const { violations } = await axeOn(page).analyze()
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ target }) => target)])).toEqual([])
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    expect(overflow).toBe(0)
  })
})
