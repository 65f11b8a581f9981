/** The Actors page in a real browser, over actors that really moved: find one, see where it is, replay how it came there. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { ActorLogPage, ActorPage } from '../../domain/actor.ts'
import type { ActorSummary } from '../../domain/chart.ts'
import { axeFindings } from '../support/axe.ts'
import { drawn, launchBrowser, leaveBrowser, pageForTest, visit } from '../support/browser.ts'
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
    await leaveBrowser(browser)
    await peer.close()
    await server.close()
  })

  const open = (path: string, options = {}): Promise<Page> =>
    visit(browser, path.startsWith('/') ? server.url + path : path, options)
  const pathOf = ({ kind, id }: ActorSummary): string => `/actors/${kind}/${id}`

  it('shows what needs a person first, and says why in words', async () => {
    const page = await open('/actors')
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').getByRole('link')
    await rows.first().getByRole('img', { name: 'Needs attention' }).waitFor()
    await rows.first().click()
    await page.getByText('Not delivered.').waitFor()
    await page.getByText('The agent did not show its card in three tries, so nothing was sent to it.').waitFor()
    await page.getByText('The last try: Agent Card discovery failed. Tried: ').waitFor()
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
    // Counted from the log, which may come after the state.
    const backoff = outline.getByText('after backoff').locator('..')
    await expect.poll(() => backoff.innerText(), patience).toContain('taken 2 times')
  })

  it('moves for less than five seconds, and again with another step', async () => {
    const page = await open(`${pathOf(failed)}?step=1`)
    const chart = page.locator('signalbox-statechart')
    const moving = () =>
      chart.evaluate(({ shadowRoot }) =>
        (shadowRoot?.getAnimations() ?? []).flatMap(({ effect, playState }) => {
          const lastsMs = Number(effect?.getComputedTiming().endTime)
          return playState === 'running' && lastsMs > 1_000 ? [lastsMs] : []
        }),
      )
    await page.getByText('Looking at step 1', { exact: true }).waitFor()
    const last = (await page.getByRole('row').count()) - 1
    for (let step = 2; step < last; step++) {
      await page.getByRole('slider', { name: 'Step' }).focus()
      await page.keyboard.press('.')
      await page.getByText(`Looking at step ${step}`, { exact: true }).waitFor()
      await drawn(page)
      const [lastsMs = Infinity] = await moving()
      expect(lastsMs).toBeLessThan(5_000)
      await chart.evaluate(({ shadowRoot }) => shadowRoot?.getAnimations().forEach((each) => each.finish()))
      expect(await moving()).toEqual([])
    }
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
    await page.getByText('Needs a person', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('')
  })

  it('asks for the log once for each time that the actor moves, also where its last rounds are not kept', async () => {
    const ahead = await vi.waitFor(async () => {
      const actor = await actorIn('reconciliation', 'pausing')
      const log = await fetch(`${server.url}/api/actors/reconciliation/${actor.id}/log`)
      const last = ActorLogPage.parse(await log.json()).steps.at(-1)?.revision ?? 0
      expect(actor.revision).toBeGreaterThan(last)
      return actor
    }, patience)
    const page = await pageForTest(browser)
    const asked: string[] = []
    page.on('request', (request) => void (request.url().includes('/log?') && asked.push(request.url())))
    await page.goto(server.url + pathOf(ahead))
    await page.getByRole('row').nth(1).waitFor()
    for (let click = 0; click < 5; click++) await page.getByRole('button', { name: 'Outline' }).click()
    await page.getByRole('region', { name: 'reconciliation as an outline' }).waitFor()
    const { revision } = await actorIn('reconciliation', 'pausing')
    expect(asked.length).toBeLessThanOrEqual(1 + revision - ahead.revision)
  })

  it('opens a link to a step at that step', async () => {
    const page = await open(`${pathOf(failed)}?step=2`)
    await page.getByText('Looking at step 2', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Go live' }).click()
    await page.getByText('Needs a person', { exact: true }).waitFor()
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
    await page.getByText('Page is live').waitFor()
    await page.getByRole('searchbox', { name: 'Filter actors' }).fill('no such actor')
    await page.getByText('No actor matches').waitFor()
    await page.getByRole('searchbox', { name: 'Filter actors' }).fill('')
    await page.getByRole('button', { name: 'Attention' }).click()
    await expect.poll(() => rows.count(), patience).toBe(1)
  })

  it('calls the agent by its name in the details of what follows a task, and of what looks after the agent', async () => {
    for (const actor of [resting, await actorIn('reconciliation', 'pausing')]) {
      const page = await open(pathOf(actor))
      const details = page.getByRole('complementary', { name: 'Actor details' })
      const agent = details.getByRole('link', { name: 'Test agent 1.0 JSONRPC' })
      expect(await agent.getAttribute('data-route')).toBe(`/agents/${agentId}`)
      expect(await agent.locator('bdi').count()).toBe(1)
    }
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
    const loops = system.getByRole('table', { name: "The supervisor's loops" })
    await expect
      .poll(() => loops.getByRole('row', { name: /^subscription.*Up\s+0 of 8\s+0\s+none/ }).count(), patience)
      .toBe(1)
    const queues = system.getByRole('table', { name: 'What is due, by kind of actor' })
    await queues
      .getByRole('row', { name: /^Delivering messages command Nothing is due 0 none 0/ })
      .getByRole('link', { name: '1 command actors that need attention' })
      .click()
    const rows = page
      .getByRole('region', { name: 'Actors' })
      .getByRole('listitem')
      .getByRole('link', { name: /command/ })
    await expect.poll(() => rows.count(), patience).toBe(1)
    const attention = page.getByRole('button', { name: 'Attention' })
    expect(await attention.getAttribute('aria-pressed')).toBe('true')

    // Once more, after the person went on from there: the same link does the same again.
    await page.getByRole('button', { name: 'All', exact: true }).click()
    await expect.poll(() => attention.getAttribute('aria-pressed')).toBe('false')
    const needing = page.getByRole('link', { name: '1 needs attention' }).first()
    await needing.click()
    await expect.poll(() => attention.getAttribute('aria-pressed')).toBe('true')
    await page.getByRole('button', { name: 'All', exact: true }).click()
    await needing.click()
    await expect.poll(() => attention.getAttribute('aria-pressed')).toBe('true')
    await page.goBack()
    await expect.poll(() => attention.getAttribute('aria-pressed')).toBe('false')
  })

  it('does not say that everything runs while that is not known', async () => {
    const page = await open('about:blank')
    const release = Promise.withResolvers<void>()
    const isAway = { now: false }
    await page.route('**/api/{queues,actors?*}', async (route) => {
      await release.promise
      const body = JSON.stringify({ error: { message: 'Identity service unavailable.' } })
      await (isAway.now ? route.fulfill({ status: 503, contentType: 'application/json', body }) : route.continue())
    })
    await page.goto(`${server.url}/actors?show=system`)
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('Not known yet').waitFor()
    expect(await page.getByText('Everything runs').count()).toBe(0)
    release.resolve()
    await system.getByText('Everything runs').waitFor()
    isAway.now = true
    await system.getByText(/The database does not answer; numbers as of \d/).waitFor()
    expect(await page.getByText('Everything runs').count()).toBe(0)
    // A change makes the list ask, too.
    await send(agentId, 'hello again', 'hello again')
    await page.getByText('Not up to date: The database does not answer.').waitFor()
    const queues = system.getByRole('table', { name: 'What is due, by kind of actor' })
    expect(await queues.getByText('Nothing is due').count()).toBe(0)
    expect(await queues.getByText('Not known').count()).toBeGreaterThan(0)
    isAway.now = false
    await system.getByText('Everything runs').waitFor()
  })

  it('knows nothing of its own process either, once that does not answer', async () => {
    const page = await open(`${server.url}/actors?show=system`)
    const own = page
      .getByRole('list', { name: /^Every process/ })
      .getByRole('listitem')
      .filter({ hasText: 'this process' })
    await own.getByText('Works', { exact: true }).waitFor()
    await own.getByRole('table').waitFor()
    await page.route('**/api/**', (route) => route.abort('connectionrefused'))
    await page
      .getByRole('region', { name: 'System' })
      .getByText(/The console does not answer/)
      .first()
      .waitFor()
    await own.getByText('Not known', { exact: true }).waitFor()
    await own.getByText('does not answer now: what its loops do is not known').waitFor()
    expect(await own.getByRole('table').count()).toBe(0)
    await page.unroute('**/api/**')
    await own.getByText('Works', { exact: true }).waitFor()
  })

  it('does not judge what is old, when no answer comes', async () => {
    // What its clock is told is told to its whole context.
    const context = await browser.newContext()
    const page = await context.newPage()
    onTestFinished(() => context.close())
    await page.clock.install()
    await page.goto(`${server.url}/actors?show=system`)
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('Everything runs').waitFor()
    const unanswered = Promise.withResolvers<void>()
    await page.route('**/api/queues', async (route) => {
      await unanswered.promise
      await route.continue()
    })
    await page.clock.runFor(30_000)
    await system.getByText('Not known since').waitFor()
    await expect.poll(() => page.getByText('Everything runs').count(), patience).toBe(0)
    unanswered.resolve()
    await page.clock.runFor(6_000)
    await system.getByText('Everything runs').waitFor()
  })

  it('finds an actor by the title that its row shows, by an address that can be kept', async () => {
    const page = await open('/actors?q=ARRIVES')
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').getByRole('link')
    await expect.poll(() => rows.allInnerTexts(), patience).toEqual([expect.stringContaining('never arrives')])
    const field = page.getByRole('searchbox', { name: 'Filter actors' })
    expect(await field.inputValue()).toBe('ARRIVES')
    await field.fill('resting')
    await expect.poll(() => new URL(page.url()).searchParams.get('q'), patience).toBe('resting')
    await rows.first().click()
    await page.getByText('Page is live').waitFor()
    expect(await rows.count()).toBe(1)
    await page.goBack()
    expect(await field.inputValue()).toBe('resting')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find or do' }).fill('needs attention')
    await page.keyboard.press('Enter')
    await expect.poll(() => field.inputValue(), patience).toBe('')
    expect(new URL(page.url()).search).toBe('?needs=attention')
  })

  it('says what can happen next in words, with the work and the timers', async () => {
    const page = await open(pathOf(resting))
    const details = page.getByRole('complementary', { name: 'Actor details' })
    await details.getByText('A delivered reply wakes it, and so does a look that finds the task at work.').waitFor()
    await details.getByText('When a person’s reply was delivered').waitFor()
    await details.getByText('When a push or a look brings news of the task').waitFor()
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
    ['dark', 720],
  ] as const)('has no accessibility violations in %s at %d px', async (colorScheme, width) => {
    const page = await open(`${pathOf(resting)}?step=1`, { colorScheme, viewport: { width, height: 900 } })
    await page.getByText('Looking at step 1', { exact: true }).waitFor()
    await page.getByRole('group', { name: /Statechart of subscription/ }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    expect(overflow).toBe(0)
  })
})
