/**
 * An actor's log where its machine goes rounds that are not kept: nothing false is said of what is left out, and whoever reads in it
 * is not taken back. The rows are written as the runtime leaves them; nobody works in this console, so they stay.
 */
import type { Browser, Page } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ActorLogPage } from '../../domain/actor.ts'
import type { SignalboxActor } from '../../ui/pages/actors-detail.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'

const rounds = '00000000-0000-7000-8000-0000000000a1'
const failing = '00000000-0000-7000-8000-0000000000a2'
const steps = 60

describe('the log of an actor that goes rounds by itself', () => {
  let server: TestConsole
  let browser: Browser

  const actor = (kind: string, id: string, revision: number, value: string) =>
    server.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, wake_at, created_at, updated_at)
      values (${kind}, ${id}, ${server.viewer.organizationId}, '1', ${revision},
        jsonb_build_object('value', ${value}::text, 'context', '{}'::jsonb, 'status', 'active'),
        jsonb_build_object('t', jsonb_build_object('event', jsonb_build_object('type', 't'), 'dueAt', now() + interval '1 day')),
        now() + interval '1 day', now(), now())`)
  const logged = (kind: string, id: string, revision: number, type: string, value: string, facts: readonly string[]) =>
    server.db.pool.query(sql.unsafe`
      insert into actor_log (kind, actor_id, revision, machine_version, event, value, facts, cause, at, batch_id)
      values (${kind}, ${id}, ${revision}, '1', ${JSON.stringify({ type })}, ${JSON.stringify(value)}::jsonb,
        ${sql.array([...facts], 'text')}, 'reaction', now(), gen_random_uuid())`)

  beforeAll(async () => {
    server = await startConsole({ database: 'postgresql', system: { works: false } })
    browser = await launchBrowser()
    await logged('reconciliation', rounds, 1, 'xstate.init', 'resting', [])
    await logged('reconciliation', rounds, 2, 'wanted', 'checking', ['reconciliation.woken'])
    await actor('reconciliation', rounds, 93, 'pausing')
    await logged('subscription', failing, 1, 'xstate.init', 'following', ['subscription.started'])
    await logged('subscription', failing, 2, 'xstate.done.actor.follow', 'backingOff', [])
    await logged('subscription', failing, 12, 'xstate.done.actor.follow', 'backingOff', ['subscription.failing'])
    // Some log to scroll through: everything that is told and moves nothing.
    for (let revision = 13; revision < 13 + steps; revision++)
      await logged('subscription', failing, revision, 'heard', 'backingOff', [])
    await actor('subscription', failing, 12 + steps, 'backingOff')
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await server.close()
  })

  const open = (path: string): Promise<Page> => visit(browser, server.url + path)

  const redraw = async (page: Page): Promise<void> => {
    await page.evaluate(async () => {
      const find = (root: Document | ShadowRoot): SignalboxActor | null => {
        for (const element of root.querySelectorAll('*')) {
          if (element.localName === 'signalbox-actor') return element as SignalboxActor
          const found = element.shadowRoot && find(element.shadowRoot)
          if (found) return found
        }
        return null
      }
      const view = find(document)
      view?.requestUpdate()
      await view?.updateComplete
    })
  }

  it('is read to its end once, and not again while the actor stays', async () => {
    const page = await open('/actors')
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(`${server.url}/actors/reconciliation/${rounds}`)
    await page.getByRole('cell', { name: '91 routine steps, not kept' }).waitFor()
    const reads = () => asked.filter((path) => path.endsWith('/log')).length
    const before = reads()
    for (let turn = 0; turn < 5; turn++) await redraw(page)
    expect(reads()).toBe(before)
  })

  it('says how much is left out, and takes no old step for the present one', async () => {
    const page = await open(`/actors/reconciliation/${rounds}`)
    await page.getByRole('cell', { name: '91 routine steps, not kept' }).waitFor()
    await page.getByText('now, 2 kept').waitFor()
    await page.getByRole('group', { name: /Current state: pausing/ }).waitFor()
    expect(await page.locator('tr[aria-current]').count()).toBe(0)
    expect(await page.locator('.arrow.last > .line').count()).toBe(0)
    await page.getByRole('button', { name: 'Previous step' }).click()
    await page.getByText('Looking at step 2', { exact: true }).waitFor()
    expect(await page.locator('tr[aria-current]').count()).toBe(1)
    expect(await page.locator('.arrow.last > .line').count()).toBe(1)
    await page.getByRole('button', { name: 'Next step' }).click()
    await page.getByText('Page is live').waitFor()
  })

  it('calls no step idle that told something, or whose neighbour is left out', async () => {
    const page = await open(`/actors/subscription/${failing}`)
    const row = (revision: number) => page.getByRole('row', { name: new RegExp(`^${revision} `) })
    await page.getByRole('cell', { name: '9 routine steps, not kept' }).waitFor()
    await row(12).getByText('subscription.failing').waitFor()
    expect(await row(12).getByText('changed nothing').count()).toBe(0)
    expect(await row(14).getByText('changed nothing').count()).toBe(1)
    const log = ActorLogPage.parse((await server.api.get(`/api/actors/subscription/${failing}/log`)).body)
    const [, second, third] = log.steps
    expect(second?.edges).toHaveLength(1)
    // From where is not kept, and only one way leads there by that event.
    expect(third?.edges).toEqual(second?.edges)
  })

  it('leaves whoever reads in it where they are, until another row is chosen', async () => {
    const page = await open(`/actors/subscription/${failing}`)
    const log = page.getByRole('region', { name: 'Log' })
    const place = () => log.evaluate((pane) => pane.scrollTop)
    // It begins at its end, where the present is.
    await expect.poll(place).toBeGreaterThan(0)
    await log.evaluate((pane) => pane.scrollTo(0, 0))
    await redraw(page)
    expect(await place()).toBe(0)
    await page.keyboard.press(',')
    await expect.poll(place).toBeGreaterThan(0)
  })
})
