/**
 * The main job in a real browser, against the real console and real agents: add an agent, send, watch, answer, cancel; and
 * what must hold while the network, the agent or the session fails. Messages are counted at the agent.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type DemoAgents, startDemoAgents } from '../../bin/demo-agent.ts'
import type { Role } from '../../domain/access.ts'
import { launchBrowser, leaveBrowser, leavePage, openPage, type WatchedPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

/** Nobody listens on this port, so discovery is tried three times, 1 s and 2 s apart. */
const deadCardUrl = 'http://127.0.0.1:1/card.json'
const patience = { timeout: 20_000, interval: 50 }

describe('the console', () => {
  let server: TestConsole
  let peer: Peer
  let faulty: RawPeer
  let demo: DemoAgents
  let browser: Browser
  let watched: WatchedPage
  let signedIn = true
  let role: Role = 'admin'

  beforeAll(async () => {
    server = await startConsole({
      database: 'pglite',
      identify: (person) => (signedIn ? { ...person, role } : null),
    })
    peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    faulty = await startRawPeer({ card: { name: 'Faulty Agent' } })
    demo = await startDemoAgents({ port: 0, pace: { chunkMs: 5, stepMs: 50 } })
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await Promise.all([peer.close(), faulty.close(), demo.close()])
    await server.close()
  })
  beforeEach(async () => {
    watched = await openPage(browser)
  })
  afterEach(async () => {
    signedIn = true
    role = 'admin'
    await leavePage(watched.page)
    expect(watched.violations).toEqual([])
  })

  async function open(path: string): Promise<Page> {
    await watched.page.goto(server.url + path)
    return watched.page
  }
  async function register(cardUrl: string): Promise<string> {
    const body = JSON.stringify({ cardUrl })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${server.url}/api/agents`, { method: 'POST', headers, body })
    const { agent } = (await response.json()) as { agent: { id: string } }
    return agent.id
  }
  const compose = async (cardUrl: string): Promise<Page> => open(`/tasks/new?agent=${await register(cardUrl)}`)
  const message = (page: Page) => page.getByRole('textbox', { name: 'Message' })
  const state = (page: Page, word: string) => page.locator('signalbox-task .chips').getByText(word, { exact: true })

  async function send(page: Page, text: string): Promise<void> {
    await message(page).fill(text)
    await page.getByRole('button', { name: 'Send' }).click()
  }

  const taskIn = (wanted: string): Promise<string> =>
    vi.waitFor(async () => {
      const response = await fetch(`${server.url}/api/tasks`)
      const { tasks } = (await response.json()) as { tasks: { localId: string; state: string }[] }
      const found = tasks.find((task) => task.state === wanted)
      if (!found) throw new Error(`No task came to be ${wanted}.`)
      return found.localId
    }, patience)

  it('does the main job with the keyboard alone', async () => {
    const page = await open('/')
    const { keyboard } = page
    await page.getByText('Live', { exact: true }).waitFor()
    const before = peer.receipts.length

    await keyboard.press('g')
    await keyboard.press('a')
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    await keyboard.press('n')
    await page.getByRole('textbox', { name: 'Agent Card URL' }).waitFor()
    await keyboard.type(peer.cardUrl)
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Compliance report' }).waitFor()

    await keyboard.press('c')
    await expect.poll(() => message(page).evaluate((field) => field.matches(':focus'))).toBe(true)
    await keyboard.type('ask')
    await keyboard.press('Control+Enter')
    await page.getByText('Which colour?').waitFor()
    await state(page, 'Needs input').waitFor()

    // Who sent from the keyboard is already where the answer is written.
    await expect.poll(() => message(page).evaluate((field) => field.matches(':focus'))).toBe(true)
    await keyboard.type('Signal red')
    await keyboard.press('Control+Enter')
    await page.getByText('You said: Signal red').waitFor()
    await state(page, 'Completed').waitFor()

    await keyboard.press('Escape')
    await keyboard.press('c')
    await page.getByRole('heading', { name: 'New task' }).waitFor()
    await message(page).waitFor()
    await expect.poll(() => message(page).isEnabled()).toBe(true)
    await message(page).focus()
    await keyboard.type('hold')
    await keyboard.press('Control+Enter')
    await state(page, 'Working').waitFor()
    await expect.poll(() => message(page).evaluate((field) => field.matches(':focus'))).toBe(true)
    await keyboard.press('Escape')
    await keyboard.press('x')
    await page.getByRole('heading', { name: 'Cancel this task?' }).waitFor()
    await keyboard.press('Tab')
    await keyboard.press('Enter')
    await state(page, 'Canceled').waitFor()

    expect(peer.receipts.slice(before).map(({ method }) => method)).toEqual([
      'SendMessage',
      'SendMessage',
      'SendMessage',
      'CancelTask',
    ])
  })

  it('shows a preview and the report before adding, and says what is wrong with a URL', async () => {
    const page = await open('/agents')
    await page.getByRole('button', { name: 'Add agent' }).click()
    const field = page.getByRole('textbox', { name: 'Agent Card URL' })
    await field.fill(`${peer.cardUrl}?version=2`)
    await page.getByRole('button', { name: 'Add agent' }).click()
    await page.getByText('must not contain credentials, query strings or fragments').waitFor()
    await field.fill(peer.cardUrl)
    await page.getByRole('button', { name: 'Preview' }).click()
    await page
      .getByRole('status', { name: 'Preview' })
      .getByText(/A2A 1\.0/)
      .waitFor()
    expect(await page.getByRole('dialog').isVisible()).toBe(true)
  })

  it('shows an artifact growing while it is streamed', async () => {
    const page = await compose(peer.cardUrl)
    await send(page, 'stream 20')
    await page.getByText('chunk 20').waitFor()
    await state(page, 'Completed').waitFor()
    expect(await page.getByRole('region', { name: /^Content of/ }).innerText()).toMatch(/chunk 1 chunk 2 .*chunk 20/)
  })

  it('has room for the name of whoever is here, and ends a reason with a full stop before it goes on', async () => {
    const page = await compose(deadCardUrl)
    await page.getByText('(unreachable). A message is kept').waitFor()
    const name = page.locator('signalbox-me .names bdi')
    expect(await name.innerText()).toBe('Local administrator')
    expect(await name.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0)
  })

  it('shows files as rows: data as a tree, bytes as a download, an address as letters', async () => {
    const page = await compose(peer.cardUrl)
    await send(page, 'files')
    await state(page, 'Completed').waitFor()
    const artifacts = page.getByRole('region', { name: 'Artifacts' })
    const link = artifacts.getByRole('link')
    await link.first().waitFor()
    expect(await link.count()).toBe(1)
    expect(await link.getAttribute('href')).toMatch(/^\/api\/artifacts\/[0-9a-f]{64}$/)
    await artifacts.getByText('not opened').waitFor()
  })

  it('shows a direct reply as replied', async () => {
    const page = await compose(peer.cardUrl)
    await send(page, 'direct')
    await page.getByText('No task needed.').waitFor()
    await state(page, 'Replied').waitFor()
  })

  it('keeps a draft over a reload and the way to another page', async () => {
    const page = await compose(peer.cardUrl)
    await message(page).fill('half a thought')
    await page.reload()
    await expect.poll(() => message(page).inputValue()).toBe('half a thought')
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.goBack()
    await expect.poll(() => message(page).inputValue()).toBe('half a thought')
  })

  it('retries what nobody confirmed under the same key, and the agent receives it once', async () => {
    const page = await compose(peer.cardUrl)
    const before = peer.receipts.length
    // The console takes it and the agent works; only the answer is lost on the way to the browser.
    await page.route('**/stream', async (route) => void (await route.fetch(), await route.abort()), { times: 1 })
    await send(page, 'once and only once')
    await page.getByText('Not confirmed').waitFor()
    expect(await message(page).inputValue()).toBe('once and only once')
    await page.getByRole('button', { name: 'Retry' }).click()
    await state(page, 'Completed').waitFor()
    expect(peer.receipts.length - before).toBe(1)
  })

  it('says that an outcome is unknown, never that it failed, and does not send again', async () => {
    const page = await compose(faulty.cardUrl)
    const before = faulty.receipts.length
    // Not performed: what is found at the agent afterwards is told as having reached it.
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    await send(page, 'pay the invoice')
    const notice = page.getByRole('alert')
    await notice.getByText('Outcome unknown').waitFor()
    await notice.getByText('may or may not have received').waitFor()
    expect(await notice.innerText()).not.toMatch(/fail/i)
    await page.reload()
    await notice.getByText('Outcome unknown').waitFor()
    expect(faulty.receipts.length - before).toBe(1)
    await notice.getByRole('link', { name: 'What the command did' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toMatch(/^\/actors\/command\//)
  })

  it('says that what nobody heard of reached the agent, as soon as it was found there', async () => {
    const page = await compose(faulty.cardUrl)
    faulty.script.fault('SendMessage', { fault: 'reset', performed: true })
    await send(page, 'pay the other invoice')
    const notice = page.getByRole('alert')
    await notice.getByText('It reached the agent').waitFor()
    await notice.getByText('The agent has the message').waitFor()
  })

  it('explains a failure and gives the words back', async () => {
    const page = await compose(deadCardUrl)
    await send(page, 'is anybody there')
    const notice = page.getByRole('alert').filter({ hasText: 'Not delivered' })
    await notice.getByText('did not show its card in three tries').waitFor()
    await notice.getByRole('button', { name: 'Put text back' }).click()
    expect(await message(page).inputValue()).toBe('is anybody there')
  })

  it('lets new rows wait until they are asked for', async () => {
    const page = await open('/tasks')
    const rows = page.getByRole('region', { name: 'Tasks' }).getByRole('link')
    await rows.first().waitFor()
    const first = await rows.first().getAttribute('data-id')
    const headers = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }
    const agent = await register(peer.cardUrl)
    const body = JSON.stringify({ text: 'somebody else' })
    await fetch(`${server.url}/api/agents/${agent}/commands`, { method: 'POST', headers, body })
    await page.getByRole('button', { name: '1 new. Show it' }).waitFor()
    expect(await rows.first().getAttribute('data-id')).toBe(first)
    await page.keyboard.press('n')
    await expect.poll(() => rows.first().innerText()).toContain('somebody else')
  })

  it('opens the stream again when its time is over', async () => {
    const agent = await register(peer.cardUrl)
    const headers = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }
    const body = JSON.stringify({ text: 'hold', messageId: 'hold-and-look' })
    await fetch(`${server.url}/api/agents/${agent}/commands`, { method: 'POST', headers, body })
    let streams = 0
    const over = 'event: end\ndata: {"sessionId":"s","requestId":"r"}\n\n'
    await watched.page.route('**/stream', async (route) => {
      streams += 1
      await (streams === 1 ? route.fulfill({ contentType: 'text/event-stream', body: over }) : route.continue())
    })
    const page = await open(`/tasks/${await taskIn('TASK_STATE_WORKING')}`)
    await expect.poll(() => streams, { timeout: 10_000 }).toBe(2)
    await state(page, 'Working').waitFor()
    peer.script.finish('Signal cleared.')
    await page.getByText('Signal cleared.').waitFor()
    await state(page, 'Completed').waitFor()
  })

  it('leaves a task while its stream is still being asked for, and nothing is left unanswered', async () => {
    const agent = await register(peer.cardUrl)
    const headers = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }
    const body = JSON.stringify({ text: 'hold', messageId: 'hold-and-leave' })
    await fetch(`${server.url}/api/agents/${agent}/commands`, { method: 'POST', headers, body })
    const asked = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    await watched.page.route('**/stream', async (route) => {
      asked.resolve()
      await left.promise
      await route.abort()
    })
    const page = await open(`/tasks/${await taskIn('TASK_STATE_WORKING')}`)
    await asked.promise
    const cut = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/stream'))
    await page.getByRole('link', { name: 'Agents' }).click()
    await cut
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    left.resolve()
    peer.script.finish('Left.')
  })

  it('shows a trace beside the task, not among its artifacts, and again after a reload', async () => {
    const page = await compose(demo.cardUrls.showcase)
    await send(page, 'What leaves this morning?')
    await state(page, 'Needs input').waitFor()
    const trace = page.getByRole('complementary', { name: 'Details' })
    await trace.getByText('Agent finished').waitFor()
    expect(await page.getByRole('article', { name: /^Artifact trace/ }).count()).toBe(0)
    await page.reload()
    await trace.getByText('Agent finished').waitFor()
    await trace.getByRole('button', { name: /debug$/ }).click()
    await trace.getByRole('button', { name: /^Hide \d debug/ }).waitFor()
  })

  it('holds one change stream for all tabs, and another tab takes it over', async () => {
    const streams: string[] = []
    const context = watched.page.context()
    context.on('request', (request) => {
      if (request.url().endsWith('/api/tasks/events')) streams.push(request.url())
    })
    const first = await open('/tasks')
    await first.getByText('Live', { exact: true }).waitFor()
    const second = await context.newPage()
    await second.goto(`${server.url}/tasks`)
    await second.getByText('Live', { exact: true }).waitFor()
    expect(streams).toHaveLength(1)
    await first.close()
    await expect.poll(() => streams.length).toBe(2)
    await second.getByText('Live', { exact: true }).waitFor()
  })

  it('tells a viewer that sending is not theirs', async () => {
    const path = `/tasks/new?agent=${await register(peer.cardUrl)}`
    role = 'viewer'
    const page = await open(path)
    await page.getByText('You may read here. Sending needs the role operator.').waitFor()
    expect(await message(page).count()).toBe(0)
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByText('What is granted to you shows here.').waitFor()
    expect(await page.getByRole('button', { name: 'Add agent' }).count()).toBe(0)
    for (const place of ['Access', 'Audit']) expect(await page.getByRole('link', { name: place }).count()).toBe(0)
  })

  it('finds a task by its words', async () => {
    const page = await open('/agents')
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find or do' }).fill('stream 20')
    await page.getByRole('option', { name: /stream 20/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'stream 20' }).waitFor()
  })

  it('says that the session ended, keeps the draft, and goes on after signing in', async () => {
    const page = await compose(peer.cardUrl)
    await message(page).fill('not lost')
    signedIn = false
    // Whichever comes first: this send is refused, or the page has noticed by itself.
    await page.keyboard.press('Control+Enter')
    await page.getByText('You are signed out.').waitFor()
    expect(await page.getByRole('link', { name: 'Sign in again' }).getAttribute('href')).toContain('/api/auth/login')
    expect(await page.getByText('Local administrator').count()).toBe(0)
    signedIn = true
    await page.reload()
    await expect.poll(() => message(page).inputValue()).toBe('not lost')
  })

  it('removes an agent after asking, and its tasks stay', async () => {
    const page = await open(`/agents/${await register(faulty.cardUrl)}`)
    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByRole('button', { name: 'Remove agent' }).click()
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    await expect.poll(() => page.getByText('Faulty Agent').count()).toBe(0)
  })
})
