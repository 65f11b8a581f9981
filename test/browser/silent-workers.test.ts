/**
 * What a person sees of work that nobody does, in a real browser over a real server in which nobody works: by rows as a killed worker
 * leaves them, before any lease has run out.
 */
import type { Browser, Page } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { axeFindings } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'

const patience = { timeout: 20_000, interval: 200 }

describe('a worker that is not heard of any more', () => {
  let browser: Browser
  let idle: TestConsole
  let agentId: string

  beforeAll(async () => {
    browser = await launchBrowser()
    idle = await startConsole({ database: 'postgresql', system: { works: false } })
    agentId = (await idle.system.agents.register(idle.viewer, 'http://127.0.0.1:1/card.json')).id
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await idle.close()
  })

  const open = (url: string): Promise<Page> => visit(browser, url)
  async function expectClean(page: Page): Promise<void> {
    expect(await axeFindings(page)).toEqual([])
  }

  it('is told before its lease ends, also beside what it holds', async () => {
    const { id } = await idle.send(agentId, { text: 'still there' })
    const { pool } = idle.db
    await pool.query(sql.unsafe`
      update actor set lease_token = gen_random_uuid(), lease_owner = 'elsewhere/42/hushed', work_started_at = now() - interval '20 seconds',
        lease_until = now() + interval '5 minutes', wake_at = now() + interval '5 minutes'
      where kind = 'command' and id = ${id}`)
    await pool.query(sql.unsafe`
      insert into process (owner, seen_at, told) values ('elsewhere/42/hushed', now() - interval '20 seconds', '{}')`)
    const page = await open(`${idle.url}/actors/command/${id}`)
    const note = page.getByRole('note').filter({ hasText: 'Its worker is silent' })
    await note.getByText('elsewhere/42/hushed holds "discover" and does not tell of itself any more').waitFor()
    await note.getByText('The lease ends').waitFor()
    await page.getByRole('complementary', { name: 'Actor details' }).getByText('hushed silent').waitFor()
    await expectClean(page)
    await note.getByRole('link', { name: 'See the queues' }).click()
    await page.getByRole('row', { name: /elsewhere\/42\/hushed silent command 1 .* in \d/ }).waitFor()
  })

  it('is told where its work is listed and counted, which is not said to be under way', async () => {
    const page = await open(`${idle.url}/actors?show=system`)
    const queue = page
      .getByRole('table', { name: 'What is due, by kind of actor' })
      .getByRole('row', { name: /command/ })
    await queue.getByText('A worker is silent and holds 1').waitFor()
    expect(await queue.getByRole('link', { name: 'under way' }).count()).toBe(0)
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem')
    await rows.filter({ hasText: 'still there' }).getByText('Its worker is silent').waitFor()
    await expectClean(page)
    await page.goto(`${idle.url}/actors?work=held`)
    await page.getByText('No actor matches').waitFor()
  })

  it('is told in the list that somebody looks at, and so is its coming back, although neither commits anything', async () => {
    const { pool } = idle.db
    const heard = (ago: string) =>
      pool.query(sql.unsafe`update process set seen_at = now() - ${ago}::interval where owner = 'elsewhere/42/hushed'`)
    await heard('0 seconds')
    const page = await open(`${idle.url}/actors`)
    const row = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').filter({ hasText: 'still there' })
    await row.waitFor()
    expect(await row.getByText('Its worker is silent').count()).toBe(0)
    await heard('20 seconds')
    await row.getByText('Its worker is silent').waitFor()
    await heard('0 seconds')
    await expect.poll(() => row.getByText('Its worker is silent').count(), { timeout: 20_000 }).toBe(0)
    await heard('20 seconds')
  })

  it('is missed in the list where nobody has taken what is due, and no more once somebody has, although neither commits anything', async () => {
    const { id } = await idle.send(agentId, { text: 'taken by nobody' })
    const page = await open(`${idle.url}/actors`)
    const row = page
      .getByRole('region', { name: 'Actors' })
      .getByRole('listitem')
      .filter({ hasText: 'taken by nobody' })
    const mark = row.locator('.tone-warn').filter({ hasText: 'Waits for a worker or a place' })
    await row.waitFor()
    expect(await mark.count()).toBe(0)
    const { pool } = idle.db
    await pool.query(sql.unsafe`update actor set wake_at = now() - interval '11 seconds' where id = ${id}`)
    await mark.waitFor()
    // In words, and by a sign: not by a colour alone.
    expect(await mark.locator('svg').count()).toBe(1)
    expect(await row.getByText('Its worker is silent').count()).toBe(0)
    await expectClean(page)
    await pool.query(sql.unsafe`
      update actor set lease_token = gen_random_uuid(), lease_owner = 'elsewhere/43/works', work_started_at = now(),
        lease_until = now() + interval '5 minutes', wake_at = now() + interval '5 minutes'
      where kind = 'command' and id = ${id}`)
    await expect.poll(() => mark.count(), patience).toBe(0)
    await pool.query(sql.unsafe`delete from actor where kind = 'command' and id = ${id}`)
  })

  it('leaves a timer that is over to nobody, and no next try is promised', async () => {
    const { id } = await idle.send(agentId, { text: 'later' })
    await idle.db.pool.query(sql.unsafe`
      update actor set snapshot = jsonb_set(snapshot, '{value}', '{"pending": "waiting"}'), work = null, wake_at = now() - interval '1 minute',
        timers = jsonb_build_object('later', jsonb_build_object('event', '{"type": "xstate.after.backoff.command.pending.waiting"}'::jsonb,
          'dueAt', to_char((now() - interval '1 minute') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
      where kind = 'command' and id = ${id}`)
    const page = await open(`${idle.url}/actors/command/${id}`)
    const note = page.getByRole('note').filter({ hasText: 'Waits for a worker' })
    await note.getByText('No process works on its kind at the moment.').waitFor()
    await note.getByText('Due').waitFor()
    expect(await page.getByText('The next try').count()).toBe(0)
    await page
      .getByRole('complementary', { name: 'Actor details' })
      .getByText(/due since \d/)
      .waitFor()
    await expectClean(page)
  })

  it('leaves what was accepted pending, and the queues say for how long the oldest has waited, to be delivered and for anybody', async () => {
    const { id } = await idle.send(agentId, { text: 'long ago' })
    const { pool } = idle.db
    await pool.query(sql.unsafe`
      update actor set wake_at = now() - interval '3 minutes', created_at = now() - interval '4 minutes'
      where kind = 'command' and id = ${id}`)
    const page = await open(`${idle.url}/actors?show=system`)
    const system = page.getByRole('region', { name: 'System' })
    const queue = system.getByRole('table', { name: 'What is due, by kind of actor' })
    const oldest = queue.getByRole('row', { name: /command/ }).locator('td[data-label="Oldest"]')
    await expect.poll(() => oldest.innerText(), patience).toMatch(/^3 min \d+ s$/)
    await system.getByText(/^Commands: \d+ pending, the oldest for 4 min \d+ s; \d+ begun, no answer yet\.$/).waitFor()
    // Nobody waits elsewhere, and nothing is as old.
    const other = queue.getByRole('row', { name: /subscription/ }).locator('td[data-label="Oldest"]')
    expect(await other.innerText()).toBe('none')
  })

  it('is no reason to say of what was sent that it is on its way: it waits, or has no answer yet', async () => {
    const { id } = await idle.send(agentId, { text: 'begun by who is gone' })
    await idle.db.pool.query(sql.unsafe`update command set created_at = now() - interval '1 minute'`)
    await idle.db.pool.query(sql.unsafe`update command set status = 'dispatching' where id = ${id}`)
    const page = await open(`${idle.url}/tasks`)
    await page.getByText('No task yet, and what you sent is not delivered yet').waitFor()
    const line = page.getByRole('region', { name: 'Messages under way' })
    await line
      .getByRole('button', { name: /^\d messages wait to be delivered, 1 message has no answer yet, the oldest since/ })
      .click()
    await line.getByText('begun, no answer yet').waitFor()
    expect(await page.getByText('on their way').count()).toBe(0)
    await expectClean(page)
  })

  it('is no reason to say so where it is found by its words, either', async () => {
    const page = await open(`${idle.url}/tasks`)
    await page.keyboard.press('Control+k')
    const find = page.getByRole('combobox', { name: 'Find or do' })
    const found = page.getByRole('listbox', { name: 'Found' })
    await find.fill('begun by who')
    await found.getByRole('option', { name: /^begun by who is gone .*, begun, no answer yet$/ }).waitFor()
    await find.fill('long ago')
    await found.getByRole('option', { name: /^long ago .*, waits$/ }).waitFor()
    expect(await page.getByText(/on (its|their) way/).count()).toBe(0)
    await expectClean(page)
  })
})
