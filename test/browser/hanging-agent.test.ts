/**
 * What a person sees while an agent's card hangs, in a real browser over a real server and real agents: everything that does not
 * need the card, at once, and what is still waited for said to be so.
 */
import type { ServerResponse } from 'node:http'
import type { Browser, BrowserContextOptions, Page, Request } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expectClean } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const fetching = 'Its Agent Card is being fetched…'
const looks = [
  ['light', {}],
  ['dark at 390 px', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
] as const

describe('an agent whose card hangs', () => {
  let server: TestConsole
  let browser: Browser
  let hanging: RawPeer
  let well: RawPeer
  let late: RawPeer
  let agentId: string
  /** Answers with a card, those that were given and those that hang. */
  const held: ServerResponse[] = []

  beforeAll(async () => {
    ;[server, browser] = await Promise.all([startConsole({ database: 'pglite' }), launchBrowser()])
    ;[hanging, well, late] = await Promise.all([
      startRawPeer({
        card: { name: 'Ledger Agent' },
        asked: (operation, answer) => void (operation === 'GetAgentCard' && held.push(answer)),
      }),
      startRawPeer({ card: { name: 'Archive Agent' } }),
      startRawPeer({ card: { name: 'Late Agent' } }),
    ])
    agentId = (await server.system.agents.register(server.viewer, hanging.cardUrl)).id
    await server.system.agents.register(server.viewer, well.cardUrl)
    await server.finished((await server.send(agentId, { text: 'direct words' })).id)
    hanging.script.fault('SendMessage', { fault: 'reset', performed: false })
    await server.finished((await server.send(agentId, { text: 'pay the invoice' })).id)
    hanging.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
  })
  /** Whoever still waits is told no, so that the next one asks anew. */
  const release = (): void => {
    for (const answer of held.splice(0)) if (!answer.headersSent) answer.writeHead(503).end()
  }
  afterEach(release)
  afterAll(async () => {
    await leaveBrowser(browser)
    await server.close()
    await Promise.all([hanging.close(), well.close(), late.close()])
  })

  const open = (path: string, options: BrowserContextOptions = {}): Promise<Page> =>
    visit(browser, server.url + path, options)
  const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

  it.each(looks)(
    'is in the list at once, with what is kept of it, among others that have answered: %s',
    async (_, options) => {
      const page = await open('/agents', options)
      await row(page, 'Archive Agent').getByText('Unsigned').waitFor()
      // Its card is waited for, so the others waited for nobody.
      expect(await page.getByText(fetching).count()).toBe(1)
      await row(page, 'Ledger Agent').getByText(fetching).waitFor()
      await expectClean(page)
      await row(page, 'Ledger Agent').getByText('(no answer yet)').waitFor()
      expect(await page.getByText(fetching).count()).toBe(0)
    },
  )

  it('does not keep one that is added meanwhile out of the list', async () => {
    const page = await open('/agents')
    await row(page, 'Ledger Agent').getByText(fetching).waitFor()
    await page.getByRole('button', { name: 'Add agent' }).click()
    await page.getByRole('textbox', { name: 'Agent Card URL' }).fill(late.cardUrl)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Late Agent' }).waitFor()
    await page.getByRole('link', { name: 'Back to the list' }).click()
    await row(page, 'Late Agent').getByText('Unsigned').waitFor()
    await row(page, 'Ledger Agent').waitFor()
  })

  const answering = '**/api/answering-agents'
  const kept = async (): Promise<string> => (await fetch(`${server.url}/api/answering-agents`)).text()

  it('is listed by an answer that is read whole, and that the browser calls finished and not aborted', async () => {
    const page = await open('/tasks')
    const ended = new Promise<string>((resolve) => {
      const tell = (request: Request): void => {
        if (request.url().endsWith('/api/answering-agents')) resolve(request.failure()?.errorText ?? 'finished')
      }
      page.on('requestfinished', tell).on('requestfailed', tell)
    })
    await page.getByRole('link', { name: 'Agents' }).click()
    await row(page, 'Ledger Agent').getByText(fetching).waitFor()
    release()
    expect(await ended).toBe('finished')
    await row(page, 'Archive Agent').getByText('Unsigned').waitFor()
  })

  it('is not said to be asked any more where the list failed, and why is told', async () => {
    const page = await open('/tasks')
    const text = await kept()
    const failed = `event: error\ndata: ${JSON.stringify({ status: 503, message: 'Identity service unavailable.' })}\n\n`
    const body = text.slice(0, text.indexOf('event: answered')) + failed
    await page.route(answering, (route) => route.fulfill({ contentType: 'text/event-stream', body }))
    await page.getByRole('link', { name: 'Agents' }).click()
    await page.getByText('Not up to date: The database does not answer.').waitFor()
    await row(page, 'Ledger Agent').getByText('Its Agent Card was not fetched.').waitFor()
    await expectClean(page)
    await page.unroute(answering)
    // Asked for again by itself.
    await row(page, 'Archive Agent').getByText('Unsigned').waitFor()
  })

  it.each([
    ['breaks off', { contentType: 'text/event-stream', body: 'event: kept\ndata: {"agents":[]}\n\nevent: answ' }],
    ['is one that an earlier release does not have', { status: 404, json: { error: { message: 'Not found.' } } }],
  ])('is listed with the others where the list as it answers %s', async (_, answer) => {
    const page = await open('/tasks')
    await page.route(answering, (route) => route.fulfill(answer))
    await page.getByRole('link', { name: 'Agents' }).click()
    await row(page, 'Archive Agent').getByText('Unsigned').waitFor()
    await row(page, 'Ledger Agent').getByText('(no answer yet)').waitFor()
    expect(await page.getByText('Not up to date').count()).toBe(0)
  })

  it('keeps the focus on its row, when its name comes and the row moves', async () => {
    const slow = await startRawPeer({ card: { name: 'Zulu Agent' } })
    slow.script.fault('GetAgentCard', { fault: 'delay', delayMs: 1_500 })
    await server.system.agents.register(server.viewer, slow.cardUrl)
    const page = await open('/agents')
    const unnamed = page.getByRole('link', { name: new URL(slow.cardUrl).host }).first()
    await unnamed.focus()
    expect(await page.getByText('Zulu Agent').count()).toBe(0)
    const named = page.getByRole('link', { name: 'Zulu Agent' })
    await named.waitFor()
    await expect.poll(() => named.evaluate((link) => link.matches(':focus'))).toBe(true)
    await slow.close()
  })

  it.each(looks)(
    'has its page at once, but for what only the card tells, and stays what it is when that comes: %s',
    async (_, options) => {
      const page = await open(`/agents/${agentId}`, options)
      await page.getByRole('heading', { name: 'Ledger Agent' }).waitFor()
      await page.getByText(hanging.cardUrl, { exact: true }).waitFor()
      await page.getByText(fetching).waitFor()
      const troubles = page.getByRole('region', { name: 'What stands in its way' })
      await troubles.getByText('pay the invoice').waitFor()
      await page.getByRole('button', { name: 'New task' }).waitFor()
      await page.getByRole('heading', { name: 'Credential' }).waitFor()
      // What the card alone tells is still waited for.
      expect(await page.getByText(fetching).count()).toBe(1)
      await expectClean(page)
      await page.getByRole('button', { name: 'Remove', exact: true }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click()
      const parts = page.locator('signalbox-agent-troubles, signalbox-agent-credential')
      const before = await parts.elementHandles()
      hanging.script.heal()
      release()
      const failed = page.getByRole('alert').filter({ hasText: 'HTTP 503' })
      await failed.getByRole('button', { name: 'Retry' }).click()
      await page.getByText('Card as received').waitFor()
      expect(await page.getByText(fetching).count()).toBe(0)
      for (const part of before) expect(await part.evaluate((element) => element.isConnected)).toBe(true)
      hanging.script.fault('GetAgentCard', { fault: 'hang-before-head' }, Infinity)
    },
  )
})
