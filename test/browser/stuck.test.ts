/**
 * What a person sees of a thing that is stuck or uncertain, in a real browser over a real server and real agents: it explains
 * itself, shows its evidence, and names what to do. Messages are counted at the agent.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { ActorAnswer, ActorPage } from '../../domain/actor.ts'
import type { Command } from '../../domain/command.ts'
import { expectClean } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { crowd } from '../support/crowd.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const patience = { timeout: 20_000, interval: 100 }
/** The places that one process has for streams. */
const places = 8
let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => leaveBrowser(browser))

const open = (url: string, options: BrowserContextOptions = {}): Promise<Page> => visit(browser, url, options)

describe('a send whose outcome is unknown', () => {
  let server: TestConsole
  let faulty: RawPeer
  let uncertain: Command
  const message = (page: Page) => page.getByRole('textbox', { name: 'Message' })
  const strip = (page: Page) => page.getByRole('region', { name: 'Messages that need you' })

  beforeAll(async () => {
    server = await startConsole({ database: 'postgresql' })
    faulty = await startRawPeer({ card: { name: 'Ledger Agent' } })
    // Not performed: whoever looks for it afterwards must not find it and change what is said.
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    const agent = await server.system.agents.register(server.viewer, faulty.cardUrl)
    uncertain = await server.finished((await server.send(agent.id, { text: 'pay the invoice' })).id)
  })
  afterAll(async () => {
    await server.close()
    await faulty.close()
  })

  it('shows above the foot of the task list, and with what is on record on its own page', async () => {
    const page = await open(`${server.url}/tasks`)
    await strip(page).getByRole('button', { name: '1 message needs you' }).focus()
    await page.keyboard.press('Enter')
    await strip(page).getByText('pay the invoice').waitFor()
    await strip(page).getByText('Outcome unknown').waitFor()
    expect(await strip(page).innerText()).not.toMatch(/fail/i)
    await strip(page).getByRole('link', { name: 'What the command did' }).click()
    await page.getByRole('note').getByText('It ended without an answer that says whether it was done').waitFor()
    await page.getByRole('note').getByText('From here on the request may have left').waitFor()
    expect(new URL(page.url()).pathname).toBe(`/actors/command/${uncertain.id}`)
    // Its machine is done with it, and a person is not.
    await page.getByRole('complementary', { name: 'Actor details' }).getByText('A person settles it').waitFor()
    await page.locator('signalbox-actor header').getByText('Needs a person', { exact: true }).waitFor()
    expect(await page.getByText('It is finished').count()).toBe(0)
  })

  it('leaves a draft alone that a person had begun, and shows the words beside it', async () => {
    const page = await open(`${server.url}/tasks/new?agent=${uncertain.agentId}`)
    await message(page).fill('something else')
    await page.goto(`${server.url}/tasks/new?agent=${uncertain.agentId}&again=${uncertain.id}`)
    const notice = page.getByRole('status').filter({ hasText: 'Your draft was kept' })
    await notice.getByText('pay the invoice').waitFor()
    expect(await message(page).inputValue()).toBe('something else')
  })

  it('has no accessibility violations in light: the strip, and the words to be sent again', async () => {
    const page = await open(`${server.url}/tasks`)
    await strip(page).getByRole('button', { name: '1 message needs you' }).click()
    await strip(page).getByRole('link', { name: 'Send again…' }).waitFor()
    await expectClean(page)
    await strip(page).getByRole('link', { name: 'Send again…' }).click()
    await page.getByText('The agent may have this message').waitFor()
    await expectClean(page)
  })

  it('has no accessibility violations in dark at 720 px: the command', async () => {
    const page = await open(`${server.url}/actors/command/${uncertain.id}`, {
      colorScheme: 'dark',
      viewport: { width: 720, height: 900 },
    })
    await page.getByRole('note').getByRole('link', { name: 'Send again…' }).waitFor()
    await page.getByRole('group', { name: /Current state: uncertain/ }).waitFor()
    await expectClean(page)
  })

  it('is sent again only by a person, as a new command, in the words that were there', async () => {
    const before = faulty.receipts.length
    const page = await open(`${server.url}/tasks`)
    await strip(page).getByRole('button', { name: '1 message needs you' }).click()
    await strip(page).getByRole('link', { name: 'Send again…' }).click()
    await page.getByText('The agent may have this message').waitFor()
    await page.getByText('If the agent has it already, it gets it twice.').waitFor()
    expect(await message(page).inputValue()).toBe('pay the invoice')
    expect(faulty.receipts.length).toBe(before)
    await page.keyboard.press('Control+Enter')
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
    expect(faulty.receipts.length).toBe(before + 1)
    expect(faulty.receipts.at(-1)?.messageId).not.toBe(uncertain.messageId)
  })

  it('is sent again only after a second yes, where it was found at the agent', async () => {
    const { agentId } = uncertain
    faulty.script.fault('SendMessage', { fault: 'reset', performed: true })
    const sent = await server.finished((await server.send(agentId, { text: 'pay the other invoice' })).id)
    const found = async () => ActorAnswer.parse((await server.api.get(`/api/actors/command/${sent.id}`)).body).evidence
    await expect.poll(async () => (await found())?.outcome, patience).toBe('found')
    const before = faulty.receipts.length
    const page = await open(`${server.url}/tasks/new?agent=${agentId}&again=${sent.id}`)
    await page
      .getByRole('status')
      .getByText(`The agent has this message (task ${(await found())?.taskId})`)
      .waitFor()
    await page.keyboard.press('Control+Enter')
    const dialog = page.getByRole('dialog', { name: 'Say it twice?' })
    await dialog.waitFor()
    await expectClean(page)
    await page.keyboard.press('Enter')
    await expect.poll(() => dialog.count(), patience).toBe(0)
    expect(faulty.receipts.length).toBe(before)
    // Put away, the notice; what it says is so all the same.
    await page.getByRole('button', { name: 'Dismiss' }).click()
    await page.getByRole('button', { name: 'Send' }).click()
    await dialog.getByRole('button', { name: 'Send it a second time' }).click()
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
    expect(faulty.receipts.length).toBe(before + 1)
  })

  it('is not said to have been sent, where nothing left', async () => {
    const nobody = await server.system.agents.register(server.viewer, 'http://127.0.0.1:1/card.json')
    const failed = await server.finished((await server.send(nobody.id, { text: 'is anybody there' })).id)
    const page = await open(`${server.url}/tasks/new?agent=${nobody.id}&again=${failed.id}`)
    const notice = page.getByRole('status').filter({ hasText: 'Nothing of this reached the agent' })
    await notice.waitFor()
    expect(await notice.innerText()).not.toMatch(/sent before|twice/)
    expect(await message(page).inputValue()).toBe('is anybody there')
    await expectClean(page)
  })

  it('says on the task that following does not work, why, and when it is tried again', async () => {
    for (const operation of ['SubscribeToTask', 'GetTask'])
      faulty.script.fault(operation, { fault: 'reset', performed: false }, Infinity)
    const sent = await server.finished((await server.send(uncertain.agentId, { text: 'hold' })).id)
    const page = await open(`${server.url}/tasks/${sent.result?.localId}`)
    const notice = page.getByRole('status').filter({ hasText: 'Following does not work' })
    await notice.getByText('Reason: Agent network request failed.').waitFor()
    await notice.getByText('The next try to follow').waitFor()
    await notice.getByText('Since about').waitFor()
    await notice.getByText('about every 15 seconds, up to a minute apart while that fails too').waitFor()
    const beside = page.getByRole('complementary', { name: 'Details' })
    await beside.getByRole('link', { name: 'Following does not work' }).waitFor()
    await expectClean(page)
    // Of one notice nothing is below an edge on a narrow screen: when it is tried next is its last line.
    await page.setViewportSize({ width: 390, height: 844 })
    const inTheWay = page.getByRole('region', { name: 'What stands in its way' })
    expect(await inTheWay.evaluate((box) => box.scrollHeight - box.clientHeight)).toBeLessThanOrEqual(0)
    faulty.script.heal()
  })

  it('says on the agent’s page that following does not work in the words of the task’s own, where the agent can be read', async () => {
    const deaf = await startRawPeer({ card: { name: 'Archive Agent' } })
    onTestFinished(() => deaf.close())
    deaf.script.fault('SubscribeToTask', { fault: 'reset', performed: false }, Infinity)
    const agent = await server.system.agents.register(server.viewer, deaf.cardUrl)
    const sent = await server.finished((await server.send(agent.id, { text: 'hold' })).id)
    const page = await open(`${server.url}/agents/${agent.id}`)
    const troubles = page.getByRole('region', { name: 'What stands in its way' })
    const note = troubles.getByRole('note').filter({ hasText: 'Following 1 task does not work' })
    await note.getByText('The next try to follow').waitFor(patience)
    expect(await note.innerText()).not.toMatch(/cannot be/)
    await expectClean(page)
    await note.getByRole('link', { name: 'hold' }).click()
    await page.waitForURL(`**/tasks/${sent.result?.localId}`)
    await page.getByRole('status').filter({ hasText: 'Following does not work' }).waitFor(patience)
  })

  it('shows on the task that an answer arrived of which nobody heard, and does not offer to say it twice', async () => {
    const { agentId } = uncertain
    const asked = await server.finished((await server.send(agentId, { text: 'ask' })).id)
    const { localId, taskId } = asked.result ?? { localId: '', taskId: null }
    const task = await server.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const page = await open(`${server.url}/tasks/${localId}`)
    faulty.script.fault('SendMessage', { fault: 'reset', performed: true })
    const reply = { text: 'blue', taskId: taskId ?? '', contextId: task.contextId ?? '' }
    await server.finished((await server.send(agentId, reply)).id)
    const note = page.getByRole('note').filter({ hasText: 'It reached the agent' })
    await note.getByText('The agent has the message').waitFor()
    expect(await note.getByRole('link', { name: 'Send again…' }).count()).toBe(0)
    await note.getByRole('link', { name: 'What the command did' }).waitFor()
    await expectClean(page)
  })

  it('shows the whole of it on a narrow screen, and the chart beside it', async () => {
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id } = await server.finished((await server.send(uncertain.agentId, { text: 'pay the rent' })).id)
    const page = await open(`${server.url}/actors/command/${id}`, { viewport: { width: 390, height: 844 } })
    const parts = page.getByRole('group', { name: 'Parts of this page' })
    const told = page.getByRole('region', { name: 'What there is to know' })
    await told.getByText('It ended without an answer that says whether it was done').waitFor()
    await told.getByRole('link', { name: 'Send again…' }).waitFor()
    // Nothing of it is out of sight.
    expect(await told.evaluate((box) => box.scrollHeight - box.clientHeight)).toBeLessThanOrEqual(0)
    const chart = page.getByRole('group', { name: /Current state: uncertain/ })
    expect(await chart.isVisible()).toBe(false)
    await parts.getByRole('button', { name: 'Chart' }).click()
    await chart.waitFor()
    expect(await told.isVisible()).toBe(false)
    await parts.getByRole('button', { name: 'Log' }).click()
    await page.getByRole('button', { name: 'Look at step 1: created' }).click()
    await page.getByText('Looking at step 1', { exact: true }).waitFor()
    await expectClean(page)
  })

  it.each([1440, 390])('says on its page at %d px what was sent, to whom, and by what to ask for it', async (width) => {
    const text = `Pay invoice 4472 to Atlas Freight. ${'It covers the containers of Monday. '.repeat(8)}By Friday.`
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    const { id, messageId } = await server.finished((await server.send(uncertain.agentId, { text })).id)
    const page = await open(`${server.url}/actors/command/${id}`, { viewport: { width, height: 844 } })
    const sent = page.getByRole('region', { name: 'What was sent' })
    await sent.getByText('Message to Ledger Agent: “Pay invoice 4472').waitFor()
    await sent.getByRole('link', { name: 'Ledger Agent' }).waitFor()
    await sent.getByText(messageId, { exact: true }).waitFor()
    await sent.getByRole('button', { name: 'Copy: Message id' }).waitFor()
    await sent.getByRole('button', { name: 'Show the whole message' }).click()
    await sent.getByText(text, { exact: true }).waitFor()
    const note = page.getByRole('note')
    await note.getByText('ask whoever runs the agent, by the message id').waitFor()
    expect(await note.innerText()).not.toContain('Look at the task')
    await expectClean(page)
  })
})

describe('work that waits', () => {
  let server: TestConsole
  let idle: TestConsole
  let peer: Peer
  let silent: Command

  /** Streams take turns at the places: whoever waits now may have one in ten seconds, and another waits. */
  const waiter = () =>
    vi.waitFor(async () => {
      const { actors } = ActorPage.parse((await server.api.get('/api/actors?kind=subscription')).body)
      for (const { id } of actors) {
        const { wait } = ActorAnswer.parse((await server.api.get(`/api/actors/subscription/${id}`)).body)
        if (wait && wait.taken.reduce((sum, { taken }) => sum + taken, 0) === places) return id
      }
      throw new Error('No stream waits for a place.')
    }, patience)

  /** The page of one that waits, seen before its turn came: looked for again where it came meanwhile. */
  async function atWaiter(pathOf: (id: string) => string, seen: (page: Page) => Promise<void>): Promise<Page> {
    const page = await open(server.url)
    await vi.waitFor(
      async () => {
        await page.goto(`${server.url}${pathOf(await waiter())}`)
        await seen(page)
      },
      { timeout: 150_000, interval: 100 },
    )
    return page
  }

  beforeAll(async () => {
    peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    // Whoever hunts for the one that waits reads more often than a person may.
    server = await startConsole({ database: 'postgresql', system: { limits: crowd } })
    const agent = await server.system.agents.register(server.viewer, peer.cardUrl)
    const sends = Array.from({ length: places + 1 }, () => server.send(agent.id, { text: 'hold' }))
    for (const sent of sends) await server.finished((await sent).id)
    // The row as a worker leaves it that is killed while it delivers: nobody works in this console, so nobody takes over.
    idle = await startConsole({ database: 'postgresql', system: { works: false } })
    const unreached = await idle.system.agents.register(idle.viewer, peer.cardUrl)
    silent = await idle.send(unreached.id, { text: 'is anybody there' })
    await idle.db.pool.query(sql.unsafe`
      update actor set lease_token = gen_random_uuid(), lease_owner = 'elsewhere/42/dead', work_started_at = now() - interval '2 minutes',
        lease_until = now() - interval '1 minute', wake_at = now() - interval '1 minute'
      where kind = 'command' and id = ${silent.id}`)
  })
  afterAll(async () => {
    await server.close()
    await idle.close()
    await peer.close()
  })

  it('says whose places it waits for, and leads to the queues', async () => {
    const page = await atWaiter(
      (id) => `/actors/subscription/${id}`,
      async (shown) => {
        await shown.getByText('Waits for a place.').first().waitFor({ timeout: 5000 })
        await shown.getByText(`${places} of ${places} places are taken by`).first().waitFor({ timeout: 5000 })
      },
    )
    await page.goto(`${server.url}/actors?show=system`)
    const system = page.getByRole('region', { name: 'System' })
    const leases = system.getByRole('table', { name: 'Who holds work, by process' })
    await leases.getByRole('row', { name: new RegExp(`this process subscription ${places} `) }).waitFor()
    const queues = system.getByRole('table', { name: 'What is due, by kind of actor' })
    await queues.getByRole('row', { name: new RegExp(`^Following tasks subscription .* 1 .* ${places} `) }).waitFor()
  }, 180_000)

  it('says beside a task who looks after it meanwhile', async () => {
    await atWaiter(
      (id) => `/tasks/${id}`,
      async (page) => {
        const beside = page.getByRole('complementary', { name: 'Details' })
        await beside.getByRole('link', { name: 'Waits for a place' }).waitFor({ timeout: 5000 })
        await beside
          .getByRole('link', { name: /^Its agent’s tasks were last looked through at \d/ })
          .waitFor({ timeout: 20_000 })
      },
    )
  }, 180_000)

  it('shows on the list of tasks what is accepted and not delivered, in every tab, since when and where', async () => {
    const page = await open(`${idle.url}/tasks`)
    await page.getByText('No task yet, and what you sent is not delivered yet').waitFor()
    const line = page.getByRole('region', { name: 'Messages under way' })
    await line.getByRole('button', { name: /1 message waits to be delivered, since \d/ }).click()
    await line.getByText('is anybody there').waitFor()
    await expectClean(page)
    await line.getByRole('link', { name: 'What the command does' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/actors/command/${silent.id}`)
  })

  it('keeps the words beside "Accepted" while an agent does not answer, with the time and the command', async () => {
    const hanging = await startRawPeer({ card: { name: 'Archive Agent' } })
    onTestFinished(() => hanging.close())
    hanging.script.holdReplies()
    const agent = await server.system.agents.register(server.viewer, hanging.cardUrl)
    const page = await open(`${server.url}/tasks/new?agent=${agent.id}`)
    await page.getByRole('textbox', { name: 'Message' }).fill('archive the contracts of 2019')
    await page.keyboard.press('Control+Enter')
    await page.getByText('Accepted, being delivered').waitFor()
    const beside = page.locator('signalbox-composer .under-way')
    await beside.getByText('archive the contracts of 2019').waitFor()
    await beside.getByText(/Accepted at \d/).waitFor()
    await beside.getByRole('link', { name: 'What the command does' }).waitFor()
    await expectClean(page)
    hanging.script.release()
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
  })

  it('says that a worker is silent, since when, and that nobody has taken over', async () => {
    const page = await open(`${idle.url}/actors/command/${silent.id}`)
    const note = page.getByRole('note').filter({ hasText: 'Its worker is silent' })
    await note.getByText('elsewhere/42/dead held "discover" and stopped renewing its lease.').waitFor()
    await note.getByText('The lease ran out').waitFor()
    await note.getByRole('link', { name: 'See the queues' }).click()
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('No worker runs: what was accepted waits until one does').waitFor()
    await system.getByText('Stuck: 1 lease ran out and nobody took over').waitFor()
    await system.getByText('It leaves the work to workers in processes of their own.').waitFor()
    await page.getByRole('row', { name: /elsewhere\/42\/dead command 1 .* 1 ran out/ }).waitFor()
  })

  it('does not call finished what a newer release left in a state that this one does not know', async () => {
    const sent = await idle.send(silent.agentId, { text: 'for a newer one' })
    await idle.db.pool.query(sql.unsafe`
      update actor set snapshot = jsonb_set(snapshot, '{value}', '"embargoed"') where kind = 'command' and id = ${sent.id}`)
    const page = await open(`${idle.url}/actors/command/${sent.id}`)
    const note = page.getByRole('note').filter({ hasText: 'embargoed' })
    await note.getByText('No process of this release can move it').waitFor()
    await page.getByText('Not known: this release does not know this state.').waitFor()
    expect(await page.getByText('It is finished').count()).toBe(0)
    await expectClean(page)
  })

  it.each([
    ['light', 1440],
    ['dark', 720],
  ] as const)('has no accessibility violations in %s at %d px', async (colorScheme, width) => {
    const page = await open(`${idle.url}/actors?show=system`, { colorScheme, viewport: { width, height: 900 } })
    await page.getByRole('region', { name: 'System' }).getByText('ran out').first().waitFor()
    await expectClean(page)
  })
})
