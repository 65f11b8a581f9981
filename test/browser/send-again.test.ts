/**
 * Sending a message again in a real browser: it settles the earlier send where it is that message, however many people send it at once
 * and whatever becomes of the page; and what is asked before it is said twice.
 */
import type { Browser, Page } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Command } from '../../domain/command.ts'
import { SentWordsAnswer, UnsettledAnswer } from '../../domain/unsettled-send.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const patience = { timeout: 20_000, interval: 100 }

describe('a message that is sent again', () => {
  let browser: Browser
  let server: TestConsole
  let faulty: RawPeer
  let other: RawPeer
  let agentId: string

  beforeAll(async () => {
    browser = await launchBrowser()
    server = await startConsole({ database: 'postgresql' })
    faulty = await startRawPeer({ card: { name: 'Ledger Agent' } })
    other = await startRawPeer({ card: { name: 'Other Agent' } })
    agentId = (await server.system.agents.register(server.viewer, faulty.cardUrl)).id
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await server.close()
    await faulty.close()
    await other.close()
  })

  const open = (path: string): Promise<Page> => visit(browser, server.url + path)
  const lost = async (body: Parameters<TestConsole['send']>[1]): Promise<Command> => {
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    return server.finished((await server.send(agentId, body)).id)
  }
  const settlementOf = async (id: string) =>
    SentWordsAnswer.parse((await server.api.get(`/api/sends/${id}`)).body).send.settlement
  const strip = (page: Page) => page.getByRole('region', { name: 'Messages that need you' })

  it('is asked about once more where somebody says that the agent has it', async () => {
    const { id } = await lost({ text: 'pay the roofer' })
    const page = await open(`/tasks/new?agent=${agentId}&again=${id}`)
    await page.getByText('Accepted with these words').waitFor()
    await server.api.post(`/api/sends/${id}/settle`, { decision: 'arrived' })
    await page.getByText(/Local administrator.? settled it: the agent has it/).waitFor()
    expect(await page.getByText('Accepted with these words').count()).toBe(0)
    await page.keyboard.press('Control+Enter')
    await page.getByRole('dialog', { name: 'Say it twice?' }).getByRole('button', { name: 'Leave it' }).click()
  })

  it('settles the earlier send with the commit that accepts it', async () => {
    const { id } = await lost({ text: 'pay the electrician' })
    const page = await open('/tasks')
    await strip(page).getByRole('button', { name: '1 message needs you' }).click()
    await strip(page).getByRole('link', { name: 'Send again…' }).click()
    await page.getByText('Accepted with these words, it settles the earlier one.').waitFor()
    expect(await settlementOf(id)).toBeNull()
    await page.keyboard.press('Control+Enter')
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
    await expect.poll(() => strip(page).count(), patience).toBe(0)
    const settlement = await settlementOf(id)
    expect(settlement).toMatchObject({ decision: 'sent-again' })
    const { send } = SentWordsAnswer.parse((await server.api.get(`/api/sends/${settlement?.successorId}`)).body)
    expect(send).toMatchObject({ text: 'pay the electrician', replaces: id })
  })

  it('settles it also where its words were read before it ended', async () => {
    const { id } = await lost({ text: 'pay the glazier' })
    const page = await open('/agents')
    // As the page had it from when it was under way: its words are not asked for again.
    await page.route(`**/api/sends/${id}`, async (route) => {
      const response = await route.fetch()
      const { send } = SentWordsAnswer.parse(await response.json())
      await route.fulfill({ response, json: { send: { ...send, status: 'dispatching' } } })
    })
    await page.goto(`${server.url}/tasks/new?agent=${agentId}&again=${id}`)
    await page.getByText('Accepted with these words, it settles the earlier one.').waitFor()
    await page.keyboard.press('Control+Enter')
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
    await expect.poll(async () => (await settlementOf(id))?.decision, patience).toBe('sent-again')
  })

  it.each(['other words', 'the notice put away', 'another agent'] as const)('settles nothing with %s', async (how) => {
    const { id } = await lost({ text: 'pay' })
    const elsewhere = (await server.system.agents.register(server.viewer, other.cardUrl)).id
    const page = await open(`/tasks/new?agent=${agentId}&again=${id}`)
    const asked: string[] = []
    page.on('request', (request) => request.postData()?.includes('replaces') === true && asked.push(request.url()))
    await page.getByText('Accepted with these words').waitFor()
    if (how === 'other words') await page.getByRole('textbox', { name: 'Message' }).fill('do not pay yet')
    if (how === 'the notice put away') await page.getByRole('button', { name: 'Dismiss' }).click()
    if (how === 'another agent') {
      await page.getByRole('combobox', { name: 'Agent' }).selectOption(elsewhere)
      await expect.poll(() => page.getByText('Accepted with these words').count()).toBe(0)
      await page.getByRole('textbox', { name: 'Message' }).fill('pay')
    }
    await page.getByRole('textbox', { name: 'Message' }).focus()
    await page.keyboard.press('Control+Enter')
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
    await strip(page).getByRole('button', { name: '1 message needs you' }).waitFor()
    expect([asked, await settlementOf(id)]).toEqual([[], null])
    await server.api.post(`/api/sends/${id}/settle`, { decision: 'no-matter' })
  })

  it('is sent by one of two people at once; the other is told, and asked before it is said twice', async () => {
    const { id } = await lost({ text: 'pay the painter' })
    const page = await open(`/tasks/new?agent=${agentId}&again=${id}`)
    await page.getByText('Accepted with these words').waitFor()
    const before = faulty.receipts.length
    // A colleague's is accepted while this one's is on its way.
    await page.route('**/stream', async (route) => {
      await server.api.post(`/api/agents/${agentId}/messages`, { text: 'pay the painter', replaces: id })
      await route.continue()
    })
    await page.keyboard.press('Control+Enter')
    const refused = page.getByRole('alert').filter({ hasText: 'Not accepted' })
    await refused.getByText('Somebody has settled it already.').waitFor()
    await page.getByText('This message was sent again already').waitFor()
    expect(faulty.receipts.length).toBe(before + 1)
    // It was refused, which a reload does not make uncertain.
    await page.unroute('**/stream')
    await page.reload()
    await page.getByText('This message was sent again already').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await page.getByRole('textbox', { name: 'Message' }).focus()
    await page.keyboard.press('Control+Enter')
    await page.getByRole('dialog', { name: 'Say it twice?' }).getByRole('button', { name: 'Leave it' }).click()
    expect(faulty.receipts.length).toBe(before + 1)
  })

  it('is sent once where nobody heard of its acceptance, and the page was reloaded meanwhile', async () => {
    const { id } = await lost({ text: 'pay the tiler' })
    const page = await open(`/tasks/new?agent=${agentId}&again=${id}`)
    await page.getByText('Accepted with these words').waitFor()
    const before = faulty.receipts.length
    await page.route('**/stream', async (route) => {
      await route.fetch()
      await route.abort()
    })
    await page.keyboard.press('Control+Enter')
    await page.getByRole('alert').filter({ hasText: 'Not confirmed' }).waitFor()
    await page.unroute('**/stream')
    await page.reload()
    await page.getByRole('alert').getByRole('button', { name: 'Retry' }).click()
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
    expect(faulty.receipts.length).toBe(before + 1)
    expect(await settlementOf(id)).toMatchObject({ decision: 'sent-again' })
  })

  it('settles the earlier send also from the composer that sent it, on its task’s page', async () => {
    const asked = await server.finished((await server.send(agentId, { text: 'ask' })).id)
    const { localId = '' } = asked.result ?? {}
    await server.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const page = await open(`/tasks/${localId}`)
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    const field = page.getByRole('textbox', { name: 'Message' })
    await field.fill('blue please')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('alert').filter({ hasText: 'Outcome unknown' }).waitFor()
    const { sends } = UnsettledAnswer.parse((await server.api.get('/api/sends/unsettled')).body)
    const { id = '' } = sends.find(({ title }) => title === 'blue please') ?? {}
    await page.goto(`${server.url}/tasks/${localId}?again=${id}`)
    await page.getByText('Accepted with these words, it settles the earlier one.').waitFor()
    await field.focus()
    await page.keyboard.press('Control+Enter')
    await expect.poll(async () => (await settlementOf(id))?.decision, patience).toBe('sent-again')
    await expect.poll(() => page.getByText('Accepted with these words').count()).toBe(0)
  })

  it('settles nothing from a task of another skill, and is accepted all the same', async () => {
    const asked = await server.finished((await server.send(agentId, { text: 'ask' })).id)
    const { localId = '' } = asked.result ?? {}
    await server.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    // As of a message with a skill that was found in a task which the agent's list told of.
    const { id } = await lost({ text: 'green please' })
    await server.db.pool.query(sql.unsafe`update command set skill_id = 'paint' where id = ${id}`)
    const page = await open(`/tasks/${localId}?again=${id}`)
    await page.getByText('The agent may have this message').waitFor()
    expect(await page.getByText('Accepted with these words').count()).toBe(0)
    await page.getByRole('textbox', { name: 'Message' }).focus()
    await page.keyboard.press('Control+Enter')
    await page.locator('signalbox-task .chips').getByText('Completed', { exact: true }).waitFor()
    expect(await settlementOf(id)).toBe(null)
  })
})
