/**
 * One task's page in a real browser: a conversation longer than the screen stays at its end while it grows, leaves a reader in peace
 * who moved up, and what stands in the task's way is in sight however long it is. What was told newest stays, whatever comes late.
 */
import type { Browser, BrowserContextOptions, Locator, Page, Route } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { axeFindings, expectClean } from '../support/axe.ts'
import { drawn, goTo, launchBrowser, leaveBrowser, pageForTest, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

let browser: Browser
let server: TestConsole
let agent: RawPeer
let agentId: string
beforeAll(async () => {
  browser = await launchBrowser()
  server = await startConsole({ database: 'postgresql' })
  agent = await startRawPeer({ card: { name: 'Research Agent' } })
  agentId = (await server.system.agents.register(server.viewer, agent.cardUrl)).id
})
afterAll(async () => {
  await leaveBrowser(browser)
  await server.close()
  await agent.close()
})
afterEach(async () => {
  agent.script.heal()
})

const open = (path: string, options: BrowserContextOptions = {}): Promise<Page> =>
  visit(browser, server.url + path, options)

interface Talkative {
  readonly localId: string
  readonly taskId: string
  /** The agent says one more thing; resolves with it once it is kept. */
  readonly say: () => Promise<string>
}

/** A task that works and has said so many things. */
async function talkative(count: number): Promise<Talkative> {
  const { result } = await server.finished((await server.send(agentId, { text: 'hold' })).id)
  const { localId, taskId } = result ?? { localId: '', taskId: null }
  if (taskId === null) throw new Error('The agent made no task.')
  const say = await sayingOf(localId, taskId)
  for (let at = 0; at < count; at += 1) await say()
  return { localId, taskId, say }
}

async function sayingOf(localId: string, taskId: string): Promise<Talkative['say']> {
  await expect.poll(() => agent.subscribed()).toContain(taskId)
  let said = 0
  return async () => {
    said += 1
    const text = `Read ${said} of 2700 papers.`
    const message = { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', parts: [{ text }], taskId }
    const status = { state: 'TASK_STATE_WORKING', timestamp: new Date().toISOString(), message }
    agent.script.emit(taskId, { statusUpdate: { taskId, status } })
    await server.task(localId, ({ messages }) => messages.some(({ id }) => id === message.messageId))
    return text
  }
}

const conversation = (page: Page): Locator => page.getByRole('region', { name: 'Conversation' })
const belowPx = (page: Page): Promise<number> =>
  conversation(page).evaluate(({ scrollTop, scrollHeight, clientHeight }) =>
    Math.round(scrollHeight - scrollTop - clientHeight),
  )

describe('a conversation longer than the screen', () => {
  it('begins at its end, and stays there while it grows', async () => {
    const { localId, say } = await talkative(20)
    const page = await pageForTest(browser)
    // The task's answer comes last, as it does when it is long: every other answer would draw the page once more.
    const others = page.waitForResponse(/\/api\/agents$/)
    await page.route(`**/api/tasks/${localId}`, async (route) => {
      await (await others).finished()
      await drawn(page)
      await route.continue()
    })
    await page.goto(`${server.url}/tasks/${localId}`)
    await page.getByText('Read 20 of 2700 papers.').waitFor()
    await page.getByRole('textbox', { name: 'Message' }).waitFor()
    await expect.poll(() => belowPx(page)).toBe(0)
    for (let at = 0; at < 4; at += 1) {
      await page.getByText(await say()).waitFor()
      await expect.poll(() => belowPx(page)).toBe(0)
    }
    // Squeezed from below, as by a notice or a longer draft: nothing draws the page for that.
    await page.getByRole('textbox', { name: 'Message' }).fill('one\ntwo\nthree\nfour\nfive\nsix\nseven\neight')
    await drawn(page)
    expect(await belowPx(page)).toBe(0)
  })

  it('leaves whoever moved up in peace, and follows again from the end on', async () => {
    const { localId, say } = await talkative(20)
    const page = await open(`/tasks/${localId}`)
    await page.getByText('Read 20 of 2700 papers.').waitFor()
    await expect.poll(() => belowPx(page)).toBe(0)
    await conversation(page).hover()
    // Once more where the page still settled at the first: on a busy machine its last words may be laid out after the wheel.
    const moveUp = async (): Promise<number> => {
      if ((await belowPx(page)) === 0) await page.mouse.wheel(0, -300)
      return belowPx(page)
    }
    await expect.poll(moveUp, { interval: 1_000 }).toBeGreaterThan(200)
    const topPx = await conversation(page).evaluate(({ scrollTop }) => scrollTop)
    await page.getByText(await say()).waitFor()
    expect(await conversation(page).evaluate(({ scrollTop }) => scrollTop)).toBe(topPx)
    await conversation(page).focus()
    await page.keyboard.press('End')
    await expect.poll(() => belowPx(page)).toBe(0)
    await page.getByText(await say()).waitFor()
    await expect.poll(() => belowPx(page)).toBe(0)
  })

  it.each([
    ['light', 1440, 900],
    ['dark', 390, 844],
  ] as const)('keeps what stands in its way in sight, in %s at %d px', async (colorScheme, width, height) => {
    const { localId, taskId } = await talkative(20)
    agent.script.fault('CancelTask', { fault: 'reset', performed: false })
    await server.finished((await server.send(agentId, { action: 'cancelTask', taskId })).id)
    const page = await open(`/tasks/${localId}`, { colorScheme, viewport: { width, height } })
    const note = page.getByRole('region', { name: 'What stands in its way' }).getByRole('note')
    await note.getByText('Outcome unknown').waitFor()
    await conversation(page).hover()
    await page.mouse.wheel(0, -100_000)
    const inSight = await note.getByText('Outcome unknown').evaluate((words) => {
      const { left, top, bottom } = words.getBoundingClientRect()
      const root = words.getRootNode()
      const hit = root instanceof ShadowRoot ? root.elementFromPoint(left + 2, (top + bottom) / 2) : null
      return bottom <= innerHeight && hit === words
    })
    expect(inSight).toBe(true)
    // The conversation keeps room to be read, and the composer its place.
    const box = await conversation(page).boundingBox()
    expect(box?.height).toBeGreaterThan(200)
    const field = await page.getByRole('textbox', { name: 'Message' }).boundingBox()
    expect((field?.y ?? Infinity) + (field?.height ?? 0)).toBeLessThanOrEqual(height)
    expect(await axeFindings(page)).toEqual([])
  })
})

it('keeps what its stream told when an answer comes that was asked for before', async () => {
  const page = await open(`/tasks/new?agent=${agentId}`)
  const { promise: asked, resolve: answered } = Promise.withResolvers<string>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const isOfTask = (url: URL): boolean => /^\/api\/tasks\/[0-9a-f-]{36}$/.test(url.pathname)
  const holdBack = async (route: Route): Promise<void> => {
    const response = await route.fetch()
    answered(new URL(response.url()).pathname.slice('/api/tasks/'.length))
    await released
    await route.fulfill({ response })
  }
  await page.route(isOfTask, holdBack, { times: 1 })
  const late = page.waitForEvent('requestfinished', (request) => isOfTask(new URL(request.url())))
  await page.getByRole('textbox', { name: 'Message' }).fill('hold')
  await page.getByRole('button', { name: 'Send' }).click()
  const localId = await asked
  const { taskId } = await server.task(localId, (task) => task.taskId !== null)
  const say = await sayingOf(localId, taskId ?? '')
  const told = page.getByText(await say())
  await told.waitFor()
  release()
  await late
  await drawn(page)
  expect(await told.count()).toBe(1)
})

it('says of what it does not show why, and not of what is kept that it is not', async () => {
  const { localId, taskId } = await talkative(0)
  const show = (artifactId: string, part: object): void => {
    const artifact = { artifactId, name: artifactId, parts: [part] }
    agent.script.emit(taskId, { artifactUpdate: { taskId, artifact, lastChunk: true } })
  }
  show('report', { text: 'long '.repeat(10_000) })
  show('archive', { raw: Buffer.alloc(17 * 1024 * 1024).toString('base64'), mediaType: 'application/zip' })
  await server.task(localId, ({ artifacts }) => artifacts.length === 2)
  await server.db.pool.query(sql.unsafe`
    update task_artifact_part set value_bytes = -1 where task_id = ${localId} and value_event is not null`)
  const page = await open(`/tasks/${localId}`)
  for (const [name, summary, why] of [
    [
      'report',
      'Not shown',
      "This part cannot be read where it is kept. It can be rebuilt from the task's events, if they are there.",
    ],
    [
      'archive',
      'application/zip, not kept',
      'Artifact exceeds the 16 MB persistence limit. application/zip was not kept.',
    ],
  ] as const) {
    await page.getByText(summary, { exact: true }).waitFor()
    await page.getByRole('button', { name: new RegExp(`Open.*${name}`) }).click()
    const shown = page.getByRole('dialog').locator('p').last()
    await expect.poll(async () => (await shown.innerText()).replaceAll(/\s+/g, ' ').trim()).toBe(why)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
})

describe('a task whose agent was removed', () => {
  /** An agent of its own, and a task of its that waits for an answer. */
  async function waiting(): Promise<{ readonly id: string; readonly cardUrl: string; readonly localId: string }> {
    const other = await startRawPeer({ card: { name: 'Archive Agent' } })
    onTestFinished(() => other.close())
    const { id } = await server.system.agents.register(server.viewer, other.cardUrl)
    const { result } = await server.finished((await server.send(id, { text: 'ask' })).id)
    return { id, cardUrl: other.cardUrl, localId: result?.localId ?? '' }
  }
  const told = (page: Page): Locator => page.getByText('This agent was removed, so nothing can be sent to it.')
  const ways = (page: Page): Locator => page.locator('signalbox-task').getByRole('button', { name: /Send|Cancel/ })

  it.each([
    ['light', {}],
    ['dark at 390 px', { colorScheme: 'dark', viewport: { width: 390, height: 844 } }],
  ] as const)('says so where it was to be answered, and is still read: %s', async (_, options) => {
    const { id, localId } = await waiting()
    expect((await server.api.delete(`/api/agents/${id}`)).status).toBe(200)
    const page = await open(`/tasks/${localId}`, options)
    await told(page).waitFor()
    expect(await ways(page).count()).toBe(0)
    expect(await page.getByRole('textbox', { name: 'Message' }).count()).toBe(0)
    expect(await conversation(page).innerText()).toContain('ask')
    await expectClean(page)
  })

  it('says so to whoever had it open and sends, and no more once its address was added again', async () => {
    const { id, cardUrl, localId } = await waiting()
    const page = await open(`/agents/${id}`)
    await page.getByText('Card as received').waitFor()
    await goTo(page, `/tasks/${localId}`)
    await page.getByRole('button', { name: 'Cancel task' }).waitFor()
    await server.api.delete(`/api/agents/${id}`)
    await page.getByRole('textbox', { name: 'Message' }).fill('are you there')
    await page.keyboard.press('Control+Enter')
    await page.getByText('Unknown agent.').waitFor()
    await told(page).waitFor()
    expect(await ways(page).count()).toBe(0)
    expect(await server.api.register(cardUrl)).toBe(id)
    await page.reload()
    await expect.poll(() => page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('are you there')
    expect(await told(page).count()).toBe(0)
  })
})
