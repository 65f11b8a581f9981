/**
 * What a person sees on an agent's page of what stands in its way, in a real browser over a real server and a real agent; and what
 * the composer says of a send in doubt that made no task.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ActorPage } from '../../domain/actor.ts'
import { axeFindings, expectClean } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const patience = { timeout: 40_000 }
const narrow = { viewport: { width: 390, height: 844 } }

describe('an agent that cannot be read', () => {
  let server: TestConsole
  let browser: Browser
  let peer: RawPeer
  let agentId: string
  let localId: string | undefined

  beforeAll(async () => {
    browser = await launchBrowser()
    server = await startConsole({ database: 'postgresql' })
    peer = await startRawPeer({ card: { name: 'Ledger Agent' } })
    agentId = (await server.system.agents.register(server.viewer, peer.cardUrl)).id
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await server.close()
    await peer.close()
  })

  const open = (path: string, options: BrowserContextOptions = {}): Promise<Page> =>
    visit(browser, server.url + path, options)
  const troubles = (page: Page) => page.getByRole('region', { name: 'What stands in its way' })

  it('has nothing said of it while all is well, and leads to its actors', async () => {
    await server.finished((await server.send(agentId, { text: 'direct' })).id)
    const other = await startRawPeer({ card: { name: 'Archive Agent' } })
    const { id } = await server.system.agents.register(server.viewer, other.cardUrl)
    await server.finished((await server.send(id, { text: 'direct' })).id)
    const told = new Set<string>()
    const page = await open('/agents')
    page.on('response', (response) => void told.add(new URL(response.url()).pathname))
    await page.getByRole('link', { name: 'Ledger Agent' }).click()
    await page.getByText('Card as received').waitFor()
    // What would be said is known by now.
    await expect.poll(() => [...told], patience).toContain(`/api/agents/${agentId}/troubles`)
    await expect.poll(() => [...told], patience).toContain('/api/sends/unsettled')
    expect(await troubles(page).count()).toBe(0)
    await page.getByRole('link', { name: 'Its actors' }).click()
    await page.getByRole('button', { name: 'About Ledger Agent Show all' }).waitFor()
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem')
    await expect.poll(() => rows.count(), patience).toBe(1)
    await page.getByRole('button', { name: 'About Ledger Agent Show all' }).click()
    const all = ActorPage.parse((await server.api.get('/api/actors')).body).actors.length
    await expect.poll(() => rows.count(), patience).toBe(all)
    expect(all).toBeGreaterThan(1)
    await other.close()
  })

  it('is told in the composer of a new task what came instead of an answer, and not of a task to look at', async () => {
    for (const operation of ['SubscribeToTask', 'GetTask', 'ListTasks'])
      peer.script.fault(operation, { fault: 'reset', performed: false }, Infinity)
    localId = (await server.finished((await server.send(agentId, { text: 'hold the line' })).id)).result?.localId
    peer.script.fault('SendMessage', { fault: 'reset', performed: false })
    const page = await open(`/tasks/new?agent=${agentId}`)
    await page.getByRole('textbox', { name: 'Message' }).fill('pay the invoice')
    await page.keyboard.press('Control+Enter')
    const notice = page.getByRole('alert').filter({ hasText: 'Outcome unknown' })
    await notice.getByText('The connection broke before the answer was whole.').waitFor()
    await notice.getByText('It made no task here to look at').waitFor()
    expect(await notice.innerText()).not.toContain('Look at the task')
    await expectClean(page)
    await notice.getByRole('link', { name: 'What the command did' }).click()
    await page.getByRole('note').getByText('It ended without an answer that says whether it was done').waitFor()
  })

  it.each([
    ['light', {}],
    ['dark at 390 px', { colorScheme: 'dark', ...narrow }],
  ] as const)('says why, since when, what is in doubt and what it did not get yet: %s', async (_, options) => {
    const page = await open(`/agents/${agentId}`, options)
    const cannot = troubles(page).getByRole('note').filter({ hasText: 'The agent cannot be read' })
    await cannot.waitFor(patience)
    // What is read out again when it changes has no times in it.
    expect(await cannot.getByRole('status').allInnerTexts()).toEqual(['The agent cannot be read'])
    await cannot.getByText('Reason: Agent network request failed.').waitFor()
    await cannot.getByText('Since about').waitFor()
    const doubt = troubles(page).getByRole('note').filter({ hasText: '1 message needs you' })
    await doubt.getByText('pay the invoice').waitFor()
    await expectClean(page)
    await cannot.getByRole('link', { name: 'hold the line' }).waitFor(patience)
    expect(await cannot.locator('a bdi').allInnerTexts()).toEqual(['hold the line'])
    expect(await cannot.getByRole('link', { name: 'hold the line' }).getAttribute('href')).toBe(`/tasks/${localId}`)
    await doubt.getByRole('link', { name: 'What the command did' }).click()
    await page.waitForURL(/\/actors\/command\//)
  })

  it('is marked among the others in the list of agents, in words that its link is read out with', async () => {
    const page = await open('/agents')
    const marked = page.getByRole('link', {
      name: /Ledger Agent .* Cannot be read, tasks not followed, sends need you/,
    })
    await marked.waitFor(patience)
    // The other does not answer any more either, but nothing of it is unfinished.
    const links = page.getByRole('row').getByRole('link')
    expect(await links.count()).toBe(2)
    expect((await links.allInnerTexts()).filter((text) => text.includes('not followed'))).toHaveLength(1)
    // Its name is known from when it answered, and beside it is where it was asked for.
    const silent = page.getByRole('row').filter({ hasText: 'Agent Card discovery failed' })
    expect(await silent.getByRole('link').innerText()).toMatch(/^Archive Agent\s+http:\/\/127\.0\.0\.1:\d+\/\S+$/)
    await expectClean(page)
    await marked.click()
    await troubles(page).waitFor(patience)
  })

  it('has its task told beside the list of tasks, under Attention and in the headline, once that has lasted a minute', async () => {
    const { pool } = server.db
    const path = '/api/unfollowed-tasks'
    expect((await server.api.get(path)).body).toEqual({ tasks: [], more: false })
    // As if it had begun two minutes ago: the log is only ever added to.
    await pool.query(sql.unsafe`update actor set created_at = now() - interval '3 minutes' where kind = 'subscription'`)
    await pool.query(sql.unsafe`
      insert into actor_log (actor_id, kind, revision, machine_version, event, value, facts, cause, at, batch_id)
      select id, kind, 1000, '1', '{"type":"done"}', '"backingOff"', array['subscription.failing'], 'worker',
        now() - interval '2 minutes', gen_random_uuid() from actor where kind = 'subscription' and id = ${localId ?? null}`)
    const page = await open('/tasks')
    const line = page.getByRole('link', { name: '1 task is not followed' })
    await line.waitFor(patience)
    await expectClean(page)
    await line.click()
    await page.waitForURL(`**/tasks/${localId}`)
    await page.goto(`${server.url}/actors?needs=attention`)
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('1 task is not followed').waitFor(patience)
    expect(await page.getByText('Everything runs').count()).toBe(0)
    // It is tried every few seconds, and has not moved by that.
    const row = page.getByRole('region', { name: 'Actors' }).getByRole('link', { name: /subscription/ })
    await expect.poll(() => row.innerText()).toMatch(/\b[23]m\b/)
    await row.click()
    await page.waitForURL(`**/actors/subscription/${localId}**`)
    await page.getByRole('complementary', { name: 'Actor details' }).getByText('Last try').waitFor()
  })

  it('has what was sent to it and made no task found by its words', async () => {
    const page = await open('/agents')
    await page.getByRole('link', { name: 'Ledger Agent' }).waitFor()
    await page.keyboard.press('Control+k')
    const find = page.getByRole('combobox', { name: 'Find or do' })
    await find.fill('pay the inv')
    const found = page.getByRole('option', { name: /pay the invoice/ })
    await found.waitFor(patience)
    expect(await found.innerText()).toContain('Ledger Agent, needs you')
    await expectClean(page)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/actors\/command\//)
    await page.getByRole('note').getByText('It ended without an answer that says whether it was done').waitFor()
  })

  it('counts cancels apart, shows the newest, and leads to all of them and to what is on its way', async () => {
    const { result } = await server.finished((await server.send(agentId, { text: 'hold this too' })).id)
    peer.script.fault('CancelTask', { fault: 'reset', performed: false })
    const cancel = { action: 'cancelTask', taskId: result?.taskId ?? '' } as const
    await server.finished((await server.send(agentId, cancel)).id)
    for (const text of ['one more', 'and another']) {
      peer.script.fault('SendMessage', { fault: 'reset', performed: false })
      await server.finished((await server.send(agentId, { text })).id)
    }
    peer.script.holdReplies()
    await server.send(agentId, { text: 'is anybody there' })
    const page = await open(`/agents/${agentId}`)
    const doubt = troubles(page).getByRole('note').filter({ hasText: '3 messages and 1 cancel need you' })
    await doubt.getByText('Cancel: hold this too').waitFor()
    expect(await doubt.getByRole('listitem').count()).toBe(3)
    const onItsWay = page.getByRole('region', { name: 'Messages under way' })
    await onItsWay.getByRole('button', { name: /^1 message / }).click()
    await onItsWay.getByText('is anybody there').waitFor()
    await expectClean(page)
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find or do' }).fill('anybody there')
    const found = page.getByRole('option', { name: /is anybody there/ })
    await found.getByText('Ledger Agent, begun, no answer yet').waitFor(patience)
    await page.keyboard.press('Escape')
    await doubt.getByRole('link', { name: 'All of them, and older ones' }).click()
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem')
    await expect.poll(() => rows.count(), patience).toBe(4)
    peer.script.release()
  })

  it('is old where it cannot be read, and says as of when: nothing is promised then', async () => {
    const page = await open(`/agents/${agentId}`)
    const cannot = troubles(page).getByRole('note').filter({ hasText: 'The agent cannot be read' })
    await cannot.getByText('Reason: Agent network request failed.').waitFor()
    const body = JSON.stringify({ error: { message: 'Identity service unavailable.' } })
    await page.route(`**/api/agents/${agentId}/troubles`, (route) =>
      route.fulfill({ status: 503, contentType: 'application/json', body }),
    )
    await page.getByText(/The database does not answer. What is shown is as of \d/).waitFor()
    await cannot.getByText('Since about').waitFor()
    const words = await cannot.innerText()
    expect(words).not.toContain('The next try')
    expect(words).not.toContain('Meanwhile')
    await expectClean(page)
    await page.unroute(`**/api/agents/${agentId}/troubles`)
    await page.getByRole('button', { name: 'Retry' }).click()
    await cannot.getByText('Reason: Agent network request failed.').waitFor()
    expect(await page.getByText('What is shown is as of').count()).toBe(0)
  })

  it('counts all that need a person on the list of tasks, by kind, and leads to those that are not shown', async () => {
    const asked = Array.from({ length: 20 }, async (_, i) => {
      peer.script.fault('SendMessage', { fault: 'reset', performed: false })
      await server.finished((await server.send(agentId, { text: `more ${i}` })).id)
    })
    await Promise.all(asked)
    const page = await open('/tasks')
    const strip = page.getByRole('region', { name: 'Messages that need you' })
    await strip.getByRole('button', { name: '23 messages and 1 cancel need you' }).click()
    // Twenty, and the way to the others; each of them has names of its own.
    expect(await strip.getByRole('listitem').filter({ hasText: 'What the command did' }).count()).toBe(20)
    const names = await strip
      .getByRole('listitem')
      .locator('a, button')
      .evaluateAll((all) => all.map((each) => each.ariaLabel ?? each.textContent))
    expect(names.length).toBeGreaterThan(80)
    expect(new Set(names).size).toBe(names.length)
    await expectClean(page)
    await strip.getByRole('link', { name: 'All of them, and older ones' }).click()
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem')
    await expect.poll(() => rows.count(), patience).toBe(24)
  })
})

describe('an agent whose places are all taken', () => {
  let idle: TestConsole
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
    idle = await startConsole({ database: 'postgresql', system: { works: false } })
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await idle.close()
  })

  it('has that said in the words of the queues, with what waits one press away', async () => {
    const { id } = await idle.system.agents.register(idle.viewer, 'http://127.0.0.1:1/card.json')
    await idle.send(id, { text: 'is anybody there' })
    const { pool } = idle.db
    await pool.query(sql.unsafe`update actor set wake_at = now() - interval '1 minute' where kind = 'command'`)
    // As a worker elsewhere leaves its rows that delivers as much to it as one process may.
    await pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, lane, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        lease_token, lease_owner, lease_until, created_at, updated_at)
      select 'command', gen_random_uuid(), ${idle.viewer.organizationId}, ${id}, '1', 1,
        '{"value": "dispatching", "context": {}, "status": "active"}', 'deliver', now() - interval '20 seconds', '{}',
        now() + interval '5 minutes', gen_random_uuid(), 'elsewhere/42/busy', now() + interval '5 minutes', now(), now()
      from generate_series(1, ${idle.system.kinds['command']?.laneLimit ?? 0})`)
    for (const options of [{}, { colorScheme: 'dark', ...narrow } as const]) {
      const page = await visit(browser, `${idle.url}/agents/${id}`, options)
      const note = page.getByRole('note').filter({ hasText: 'All its places for delivering messages are taken' })
      await note.getByText('64 of 64 places are taken. 1 waits for one, and begins as soon as one is free.').waitFor()
      await note.getByText('The first place is free by about').waitFor()
      expect(await axeFindings(page)).toEqual([])
      await note.getByRole('link', { name: 'What waits' }).click()
      const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem')
      await expect.poll(() => rows.count(), patience).toBe(1)
      await rows.getByText('is anybody there').waitFor()
    }
  })
})
