/**
 * Several processes on one PostgreSQL, seen by a person: whoever answers the page shows every one of them, says when nobody
 * works, and each one's loops by a press of its name.
 */
import type { Browser } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoopView } from '../../domain/queue.ts'
import { shortOwner } from '../../domain/system-words.ts'
import { instruments } from '../../actors/system.ts'
import { supervisedOf } from '../../actors/vitals.ts'
import { openDatabase } from '../../persistence/database.ts'
import { tellOfProcess } from '../../persistence/processes.ts'
import { axeFindings } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, openPage, type WatchedPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn } from '../support/system.ts'

const patience = { timeout: 20_000, interval: 200 }

describe('the processes of the System page', () => {
  let fresh: FreshDatabase
  let web: TestConsole
  let peer: RawPeer
  let browser: Browser
  let watched: WatchedPage
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    web = await startConsole({ database: fresh.db, system: { works: false, release: '2.0.0' } })
    peer = await startRawPeer()
    browser = await launchBrowser()
    watched = await openPage(browser)
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await web.close()
    await peer.close()
    await fresh.close()
  })

  it('says that no worker runs, shows the one that comes with its loops, and misses nobody who left', async () => {
    const { page } = watched
    await page.goto(`${web.url}/actors?view=system`)
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('No worker runs: what was accepted waits until one does').waitFor()
    const agent = await web.system.agents.register(web.viewer, peer.cardUrl)
    peer.script.holdReplies()
    const sent = await web.send(agent.id, { text: 'direct' })

    const db = await openDatabase(fresh.profile)
    const worker = await systemOn(db)
    const { owner } = worker.system.worker
    await peer.received(1)
    const nameOf = (whose: string) => page.getByRole('link', { name: shortOwner(whose), exact: true })
    const name = nameOf(owner)
    const row = system.getByRole('listitem').filter({ has: name })
    // It is the one that works, so its loops are shown before anybody asks for them.
    await expect.poll(() => name.getAttribute('aria-current'), patience).toBe('true')
    await expect.poll(() => row.innerText(), patience).toMatch(/Works\s+command 1 of 256/)
    const loop = row.getByRole('row').filter({ hasText: 'finds agents and delivers' })
    expect(await loop.innerText()).toMatch(/Up\s+1 of 256/)
    // Its threads and its connections, as it told of them itself.
    const told = (term: string) =>
      row
        .locator('div')
        .filter({ has: page.getByText(term, { exact: true }) })
        .last()
    expect(await told('Parsing').innerText()).toMatch(/^Parsing\s+1 thread, nothing under way$/)
    // How long answers take is known after two of them.
    await expect
      .poll(() => told('Database').innerText(), patience)
      .toMatch(/^Database\s+PostgreSQL: \d+ connections? in use, \d+ idle, answers in \d+ ms$/)
    expect(await axeFindings(page)).toEqual([])

    const own = web.system.worker.owner
    await nameOf(own).click()
    await system.getByText('It leaves the work to workers in processes of their own. Release 2.0.0.').waitFor()
    expect(new URL(page.url()).searchParams.get('process')).toBe(own)
    await page.reload()
    await expect.poll(() => nameOf(own).getAttribute('aria-current'), patience).toBe('true')
    await page.goBack()
    await expect.poll(() => name.getAttribute('aria-current'), patience).toBe('true')

    // Behind the number are the actors that it counts, also on a page that has room for the list alone.
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${web.url}/actors?show=system`)
    await system.getByRole('link', { name: `1 command actors of ${owner}` }).click()
    const rows = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').getByRole('link')
    await page.getByRole('button', { name: `Held by ${shortOwner(owner)} Show all` }).waitFor()
    await expect.poll(() => rows.count(), patience).toBe(1)
    expect(await rows.first().getAttribute('href')).toBe(`/actors/command/${sent.id}`)
    await page.setViewportSize({ width: 1440, height: 900 })

    peer.script.release()
    await web.finished(sent.id)
    await worker.close()
    await db.close()
    await expect.poll(() => name.count(), patience).toBe(0)
    await system.getByText('No worker runs: what was accepted waits until one does').waitFor()
    await expect.poll(() => nameOf(own).getAttribute('aria-current'), patience).toBe('true')
    expect(watched.violations).toEqual([])
  })

  it('misses a worker that ended without a word until its work is taken over, and shows no places of it', async () => {
    const { page } = watched
    const db = await openDatabase(fresh.profile)
    const worker = await systemOn(db)
    // As a process leaves its row that was killed while it followed tasks.
    const told = supervisedOf(worker.system, db, instruments)
    const loops = told.process.loops.map((loop) =>
      loop.name === 'subscription' ? { ...loop, places: { taken: 8, limit: 8, perAgent: 8 } } : loop,
    )
    const dead = { ...told, process: { ...told.process, owner: 'elsewhere/42/dead', loops } }
    await tellOfProcess(fresh.db.pool, 'elsewhere/42/dead', dead)
    await fresh.db.pool.query(
      sql.unsafe`update process set seen_at = now() - interval '80 seconds' where owner = 'elsewhere/42/dead'`,
    )
    // What it held and nobody took over yet.
    await fresh.db.pool.query(sql.unsafe`
      insert into actor (kind, id, organization_id, machine_version, revision, snapshot, work, work_started_at, timers, wake_at,
        lease_token, lease_owner, lease_until, created_at, updated_at)
      values ('unheard', gen_random_uuid(), ${web.viewer.organizationId}, '1', 1, '{"value": "following", "context": {}, "status": "active"}',
        'follow', now(), '{}', now() + interval '1 hour', gen_random_uuid(), 'elsewhere/42/dead', now() + interval '1 hour', now(), now())`)
    await page.goto(`${web.url}/actors?show=system&process=elsewhere/42/dead`)
    const system = page.getByRole('region', { name: 'System' })
    await system.getByText('1 of 2 workers is silent').waitFor()
    const row = system.getByRole('listitem').filter({ hasText: 'elsewhere/42/dead' })
    await row.getByText('Silent for 1 min: it ended without a word').waitFor()
    await row.getByText('what its loops do is not known').waitFor()
    expect(await row.innerText()).not.toContain('8 of 8')
    expect(await row.getByRole('table').count()).toBe(0)
    await fresh.db.pool.query(sql.unsafe`delete from actor where kind = 'unheard'`)
    await system.getByText('Everything runs, nothing is due').waitFor()
    await row.getByText('it ended, holds nothing, and another was started since').waitFor()
    await worker.close()
    await db.close()
  })

  it('names the release of each, while they are replaced one by one', async () => {
    const { page } = watched
    const told = supervisedOf(web.system, fresh.db, instruments)
    const tell = (name: string, release?: string) => {
      const owner = `elsewhere/42/${name}`
      const { release: _own, ...process } = told.process
      return tellOfProcess(fresh.db.pool, owner, {
        ...told,
        process: { ...process, owner, ...(release && { release }) },
      })
    }
    await Promise.all([tell('before', '1.9.0'), tell('same', '2.0.0'), tell('untold')])
    await page.goto(`${web.url}/actors?show=system&process=elsewhere/42/before`)
    const of = (name: string) => page.getByRole('listitem').filter({ hasText: `elsewhere/42/${name}` })
    await of('before').getByText('release 1.9.0', { exact: true }).waitFor()
    await of('before').getByText('of their own. Release 1.9.0.').waitFor()
    expect(await of('same').innerText()).not.toMatch(/release/i)
    await of('untold').getByText('earlier release', { exact: true }).waitFor()
    expect(await axeFindings(page)).toEqual([])
  })

  it('judges and dates what loops met by how long ago it was, whatever the clock of their host', async () => {
    const { page } = watched
    const { supervisor, process: own } = supervisedOf(web.system, fresh.db, instruments)
    const hourMs = 3_600_000
    const at = (ms: number) => new Date(Date.now() + ms).toISOString()
    const tell = (name: string, lastOutage: LoopView['lastOutage']) => {
      const owner = `elsewhere/42/${name}`
      const loops = own.loops.map((loop) => ({ ...loop, ...(loop.name === 'housekeeping' ? { lastOutage } : {}) }))
      return tellOfProcess(fresh.db.pool, owner, { supervisor, process: { ...own, owner, loops } })
    }
    await tell('ahead', { at: at(hourMs - 60_000), agoMs: 60_000, pauseMs: 250, cause: 'database' })
    await tell('behind', { at: at(-hourMs), agoMs: 0, pauseMs: 250, cause: 'artifacts' })
    const seen = async (name: string) => {
      await page.goto(`${web.url}/actors?show=system&process=elsewhere/42/${name}`)
      const process = page.getByRole('listitem').filter({ hasText: `elsewhere/42/${name}` })
      const row = process.getByRole('row').filter({ hasText: 'keeps the database small' })
      const when = Date.parse((await row.locator('time').getAttribute('datetime')) ?? '')
      return { words: await row.innerText(), ageMs: Date.now() - when }
    }
    const ahead = await seen('ahead')
    expect(ahead.words).toMatch(/Up\s[^]*Database away, /)
    const behind = await seen('behind')
    expect(behind.words).toMatch(/The files’ directory cannot be read or written[^]*The files’ directory failed, /)
    for (const { ageMs } of [ahead, behind]) expect(Math.abs(ageMs)).toBeLessThan(hourMs / 2)
    await fresh.db.pool.query(sql.unsafe`delete from process where owner like 'elsewhere/42/%'`)
  })

  it('breaks no word and hides no way on where there is little room', async () => {
    const { page } = watched
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width: 390, height: 844 })
      await page.goto(`${web.url}/actors?show=system`)
      const system = page.getByRole('region', { name: 'System' })
      // A loop has the same name, and may be there before the queues are.
      const needs = page.locator('td[data-label="Needs attention"]')
      const row = system.getByRole('row').filter({ hasText: 'reconciliation', has: needs })
      const label = row.locator('td[data-label="Needs attention"]')
      expect(await label.evaluate((cell) => getComputedStyle(cell, '::before').content)).toBe('"Needs attention "')
      // A name that is broken inside has more boxes than one.
      const names = await system
        .locator('tbody .mono')
        .evaluateAll((all) => all.map((name) => name.getClientRects().length))
      expect(new Set(names)).toEqual(new Set([1]))
      const cut = await system.evaluate((region) => region.scrollWidth - region.clientWidth)
      expect(cut).toBeLessThanOrEqual(0)
      expect(await axeFindings(page)).toEqual([])
    }
  })
})
