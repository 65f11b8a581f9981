/**
 * Settling a send in a real browser: with the keyboard alone, heard by everybody's pages, and what is said where it does not work.
 * Sending it again is send-again.test.ts.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Command } from '../../domain/command.ts'
import { SentWordsAnswer, UnsettledAnswer } from '../../domain/unsettled-send.ts'
import { expectClean } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const patience = { timeout: 20_000, interval: 100 }

describe('a send that needs a person', () => {
  let browser: Browser
  let server: TestConsole
  let faulty: RawPeer
  let other: RawPeer
  let agentId: string
  /** Who looks is a viewer only. */
  let reads = false

  beforeAll(async () => {
    browser = await launchBrowser()
    server = await startConsole({
      database: 'postgresql',
      identify: (person) => (reads ? { ...person, role: 'viewer' } : person),
    })
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

  const open = (path: string, options: BrowserContextOptions = {}): Promise<Page> =>
    visit(browser, server.url + path, options)
  const lost = async (body: Parameters<TestConsole['send']>[1]): Promise<Command> => {
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    return server.finished((await server.send(agentId, body)).id)
  }
  const settlementOf = async (id: string) =>
    SentWordsAnswer.parse((await server.api.get(`/api/sends/${id}`)).body).send.settlement
  const strip = (page: Page) => page.getByRole('region', { name: 'Messages that need you' })
  const focused = (page: Page) =>
    page.evaluate(() => {
      let at = document.activeElement
      while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
      return at?.textContent.trim().replaceAll(/\s+/g, ' ') ?? ''
    })

  it('is settled with the keyboard, and leaves the lists of everybody who looks', async () => {
    const { id } = await lost({ text: 'pay the invoice' })
    const others = await open('/actors?attention=true')
    await others.getByText('1 needs attention').first().waitFor()
    const page = await open('/tasks')
    await strip(page).getByRole('button', { name: '1 message needs you' }).focus()
    await page.keyboard.press('Enter')
    // Read without its row, the button still says what is settled by it.
    await strip(page).getByRole('button', { name: 'Settle… pay the invoice', exact: true }).focus()
    await page.keyboard.press('Enter')
    await expectClean(page)
    // Left, from the button or from the form, it is where it was: the button has the focus.
    await page.keyboard.press('Escape')
    await expect.poll(() => strip(page).getByRole('radio').count()).toBe(0)
    expect(await focused(page)).toBe('Settle…')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Escape')
    expect(await focused(page)).toBe('Settle…')
    expect(await strip(page).getByRole('radio').count()).toBe(0)
    await page.keyboard.press('Enter')
    // What was written stays while it is folded.
    await strip(page).getByLabel('Note').fill('Not in')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Enter')
    expect(await strip(page).getByLabel('Note').inputValue()).toBe('Not in')
    await strip(page).getByRole('button', { name: 'Settle…' }).focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await page.keyboard.press('ArrowDown')
    expect(await strip(page).getByRole('radio', { name: 'The agent does not have it' }).isChecked()).toBe(true)
    await page.keyboard.press('Tab')
    await page.keyboard.press('End')
    await page.keyboard.type(' their log.')
    await page.keyboard.press('Control+Enter')
    await expect.poll(() => strip(page).count(), patience).toBe(0)
    await expect.poll(() => focused(page), patience).toBe('Settled: no message needs you')
    await expect.poll(() => others.getByText('1 needs attention').count(), patience).toBe(0)
    expect(await settlementOf(id)).toMatchObject({ decision: 'not-arrived', note: 'Not in their log.' })
  })

  it('says on its own page who settled it, how, and with what words', async () => {
    const { id } = await lost({ text: 'pay the rent' })
    const page = await open(`/actors/command/${id}`, { colorScheme: 'dark' })
    const told = page.getByRole('region', { name: 'What there is to know' })
    await told.getByRole('button', { name: 'Settle…' }).click()
    await expectClean(page)
    await told.getByRole('radio', { name: 'It no longer matters' }).check()
    await told.getByLabel('Note').fill('They moved out.')
    await told.getByRole('button', { name: 'Settle', exact: true }).click()
    const note = page.getByRole('note').filter({ hasText: 'Settled: it no longer matters' })
    await note.getByText('They moved out.').waitFor()
    await note.getByText(/Local administrator.? settled it/).waitFor()
    expect(await told.getByRole('button', { name: 'Settle…' }).count()).toBe(0)
    expect(await page.evaluate(() => document.activeElement !== document.body)).toBe(true)
    await expectClean(page)
  })

  it('tells where somebody else was quicker, and shows what they decided', async () => {
    const { id } = await lost({ text: 'pay the gardener' })
    const page = await open(`/actors/command/${id}`)
    const told = page.getByRole('region', { name: 'What there is to know' })
    await told.getByRole('button', { name: 'Settle…' }).click()
    await told.getByRole('radio', { name: 'The agent has it', exact: false }).first().check()
    // Their decision is not heard of before this page's own answer.
    await page.route('**/settle', async (route) => {
      await server.api.post(`/api/sends/${id}/settle`, { decision: 'no-matter' })
      await route.continue()
    })
    await told.getByRole('button', { name: 'Settle', exact: true }).click()
    await page.getByRole('note').filter({ hasText: 'Settled: it no longer matters' }).waitFor()
    expect(await settlementOf(id)).toMatchObject({ decision: 'no-matter' })
  })

  it.each([
    ['with room', {}],
    ['where one part is shown at a time', { viewport: { width: 390, height: 844 } }],
  ])(
    'keeps on its own page what somebody writes while another settles it, and says who was quicker: %s',
    async (_, options) => {
      const { id } = await lost({ text: 'pay the miller' })
      const page = await open(`/actors/command/${id}`, options)
      const told = page.getByRole('region', { name: 'What there is to know' })
      await told.getByRole('button', { name: 'Settle…' }).click()
      await told.getByRole('radio', { name: 'The agent has it' }).check()
      await told.getByLabel('Note').fill('I called them.')
      await server.api.post(`/api/sends/${id}/settle`, { decision: 'no-matter', note: 'They closed.' })
      await page.getByRole('note').filter({ hasText: 'Settled: it no longer matters' }).waitFor()
      const said = told.getByRole('alert')
      await said.getByText(/Local administrator.? settled it: it no longer matters/).waitFor()
      await said.getByText('Your note was not kept, and stays here until you close this').waitFor()
      // Who writes goes on writing, and neither Escape nor sending it off takes the words away.
      await page.keyboard.type(' Twice.')
      for (const key of ['Escape', 'Control+Enter']) await page.keyboard.press(key)
      expect(await told.getByLabel('Note').inputValue()).toBe('I called them. Twice.')
      expect(await told.getByRole('button', { name: 'Settle', exact: true }).count()).toBe(0)
      await expectClean(page)
      await told.getByRole('button', { name: 'Close' }).click()
      await told.getByRole('button', { name: 'Reopen…' }).waitFor()
      expect(await page.evaluate(() => document.activeElement !== document.body)).toBe(true)
      expect(await settlementOf(id)).toMatchObject({ decision: 'no-matter', note: 'They closed.' })
    },
  )

  it('keeps on its own page what somebody writes while another reopens it, and can be settled once that is read', async () => {
    const { id } = await lost({ text: 'pay the brewer' })
    await server.api.post(`/api/sends/${id}/settle`, { decision: 'arrived' })
    const page = await open(`/actors/command/${id}`)
    const told = page.getByRole('region', { name: 'What there is to know' })
    await told.getByRole('button', { name: 'Reopen…' }).click()
    await told.getByLabel('Note').fill('It was another one.')
    await server.api.post(`/api/sends/${id}/reopen`, {})
    await told
      .getByRole('alert')
      .getByText(/Local administrator.? reopened it/)
      .waitFor()
    expect(await told.getByLabel('Note').inputValue()).toBe('It was another one.')
    await expectClean(page)
    await told.getByRole('button', { name: 'Close' }).click()
    await told.getByRole('button', { name: 'Settle…' }).waitFor()
    await server.api.post(`/api/sends/${id}/settle`, { decision: 'no-matter' })
  })

  it('says on the strip who was quicker, keeps what was written until it is read, and keeps the focus', async () => {
    const { id } = await lost({ text: 'pay the baker' })
    const page = await open('/tasks')
    await strip(page).getByRole('button', { name: '1 message needs you' }).click()
    await strip(page).getByRole('button', { name: 'Settle…' }).click()
    await strip(page).getByRole('radio', { name: 'The agent has it' }).check()
    await strip(page).getByLabel('Note').fill('I called them.')
    // One that was asked for before may still be on its way, and shows it.
    const heard = page.waitForResponse(
      async (response) =>
        response.url().endsWith('/api/sends/unsettled') &&
        UnsettledAnswer.parse(await response.json()).sends.length === 0,
    )
    await server.api.post(`/api/sends/${id}/settle`, { decision: 'no-matter', note: 'They closed.' })
    // It has left the list, and stays where somebody is about to settle it.
    await heard
    await strip(page).getByRole('button', { name: 'Settle', exact: true }).click()
    const said = strip(page).getByRole('alert')
    await said.getByText(/Local administrator.? settled it: it no longer matters/).waitFor()
    await said.getByText('They closed.').waitFor()
    await said.getByText('I called them.').waitFor()
    await expect.poll(() => said.evaluate((box) => box.matches(':focus')), patience).toBe(true)
    await expectClean(page)
    await said.getByRole('button', { name: 'Close' }).click()
    await expect.poll(() => strip(page).count(), patience).toBe(0)
    await expect.poll(() => focused(page), patience).toBe('Settled: no message needs you')
  })

  it('is reopened on its own page, asked once more in place', async () => {
    const { id } = await lost({ text: 'pay the tailor' })
    await server.api.post(`/api/sends/${id}/settle`, { decision: 'arrived', note: 'It is in their log.' })
    const page = await open(`/actors/command/${id}`)
    const told = page.getByRole('region', { name: 'What there is to know' })
    await told.getByRole('button', { name: 'Reopen…' }).click()
    await expectClean(page)
    await told.getByLabel('Note').fill('It was another one.')
    await page.keyboard.press('Escape')
    expect(await focused(page)).toBe('Reopen…')
    await page.keyboard.press('Enter')
    await told.getByLabel('Note').fill('It was another one.')
    await told.getByRole('button', { name: 'Reopen', exact: true }).click()
    await page.getByRole('note').filter({ hasText: 'Outcome unknown' }).waitFor()
    const takenBack = told.getByRole('list', { name: 'Decisions that were taken back' })
    await takenBack.getByText('“It is in their log.”').waitFor()
    await takenBack.getByText('“It was another one.”').waitFor()
    await expectClean(page)
    await told.getByRole('button', { name: 'Settle…' }).waitFor()
    expect(await page.evaluate(() => document.activeElement !== document.body)).toBe(true)
    expect(await settlementOf(id)).toBeNull()
    await server.api.post(`/api/sends/${id}/settle`, { decision: 'no-matter' })
  })

  it('is named with the one that took its place, by its address', async () => {
    const { id } = await lost({ text: 'pay the plumber' })
    const later = await server.finished((await server.send(agentId, { text: 'pay the plumber' })).id)
    const page = await open(`/actors/command/${id}`)
    const told = page.getByRole('region', { name: 'What there is to know' })
    await told.getByRole('button', { name: 'Settle…' }).click()
    await told.getByRole('radio', { name: 'It was sent again' }).check()
    await told.getByLabel('Address or id of the later command').fill(`${server.url}/actors/command/${id}`)
    await told.getByRole('button', { name: 'Settle', exact: true }).click()
    await told.getByRole('alert').getByText('That is not a later message of the same kind').waitFor()
    await told.getByLabel('Address or id of the later command').fill(`${server.url}/actors/command/${later.id}`)
    await told.getByRole('button', { name: 'Settle', exact: true }).click()
    await page.getByRole('link', { name: 'See the one sent again' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/actors/command/${later.id}`)
    await page.getByRole('region', { name: 'What was sent' }).getByRole('link', { name: 'an earlier one' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/actors/command/${id}`)
  })

  it('stands in a task’s way until it is settled there, and the focus stays on the page', async () => {
    const asked = await server.finished((await server.send(agentId, { text: 'ask' })).id)
    const { localId = '', taskId } = asked.result ?? {}
    await server.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const { id } = await lost({ text: 'blue', taskId: taskId ?? '' })
    const page = await open(`/tasks/${localId}`, { viewport: { width: 390, height: 844 } })
    const troubles = page.getByRole('region', { name: 'What stands in its way' })
    await troubles.getByRole('button', { name: 'Settle…' }).click()
    await expectClean(page)
    await troubles.getByRole('radio', { name: 'The agent has it' }).check()
    await troubles.getByRole('button', { name: 'Settle', exact: true }).click()
    await expect.poll(() => troubles.count(), patience).toBe(0)
    expect(await page.getByRole('textbox', { name: 'Message' }).evaluate((field) => field.matches(':focus'))).toBe(true)
    expect(await settlementOf(id)).toMatchObject({ decision: 'arrived' })
  })

  it('leaves a task whose own stream is open, and what its composer told, when another settles it', async () => {
    const held = await server.finished((await server.send(agentId, { text: 'hold' })).id)
    const { localId = '' } = held.result ?? {}
    const streaming = Promise.withResolvers<void>()
    const page = await open('/agents')
    page.on('request', (request) => request.url().endsWith('/stream') && streaming.resolve())
    await page.goto(`${server.url}/tasks/${localId}`)
    await streaming.promise
    const field = page.getByRole('textbox', { name: 'Message' })
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    await field.fill('and quickly')
    await page.keyboard.press('Control+Enter')
    const told = page.getByRole('alert').filter({ hasText: 'Outcome unknown' })
    await told.waitFor()
    const { sends } = UnsettledAnswer.parse((await server.api.get('/api/sends/unsettled')).body)
    const { id = '' } = sends.find(({ title }) => title === 'and quickly') ?? {}
    const other = await lost({ text: 'and well', taskId: held.result?.taskId ?? '' })
    const troubles = page.getByRole('region', { name: 'What stands in its way' })
    await troubles.getByText('Outcome unknown').waitFor()
    for (const each of [id, other.id]) await server.api.post(`/api/sends/${each}/settle`, { decision: 'no-matter' })
    await page.getByRole('alert').filter({ hasText: 'Settled: it no longer matters' }).waitFor()
    await expect.poll(() => told.count(), patience).toBe(0)
    await expect.poll(() => troubles.count(), patience).toBe(0)
    faulty.script.finish('Done.')
  })

  it('is only shown to who may not act on it', async () => {
    const { id } = await lost({ text: 'pay the carpenter' })
    const everybody = { subjectType: 'organization', subjectId: server.viewer.organizationId, permission: 'read' }
    await server.api.post('/api/admin/security', { action: 'grant', agentId, skillId: null, ...everybody })
    reads = true
    const page = await open('/tasks')
    await strip(page).getByRole('button', { name: '1 message needs you' }).click()
    await strip(page).getByText('pay the carpenter').waitFor()
    expect(await strip(page).getByRole('button', { name: 'Settle…' }).count()).toBe(0)
    await page.goto(`${server.url}/actors/command/${id}`)
    await page.getByRole('note').getByText('Outcome unknown').waitFor()
    expect(await page.getByRole('button', { name: 'Settle…' }).count()).toBe(0)
    reads = false
  })
})
