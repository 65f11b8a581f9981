/**
 * Several processes on one PostgreSQL, seen by a person: whoever answers the page shows every one of them, says when nobody
 * works, and each one's loops by a press of its name.
 */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDatabase } from '../../persistence/database.ts'
import { axeOn, launchBrowser, openPage, type WatchedPage } from '../support/browser.ts'
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
    web = await startConsole({ database: fresh.db, system: { works: false } })
    peer = await startRawPeer()
    browser = await launchBrowser()
    watched = await openPage(browser)
  })
  afterAll(async () => {
    await browser.close()
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
    const name = system.getByRole('button', { name: owner })
    const row = system.getByRole('row').filter({ has: page.getByRole('button', { name: owner }) })
    await expect.poll(() => row.innerText(), patience).toMatch(/Works\s+command 1 of 256/)
    await name.click()
    expect(await name.getAttribute('aria-pressed')).toBe('true')
    await system.getByRole('heading', { name: `Loops of ${owner}` }).waitFor()
    const loop = system.getByRole('row').filter({ hasText: 'finds agents and delivers' })
    expect(await loop.innerText()).toMatch(/Up\s+1 of 256/)
    expect((await axeOn(page).analyze()).violations).toEqual([])

    peer.script.release()
    await web.finished(sent.id)
    await worker.close()
    await db.close()
    await expect.poll(() => name.count(), patience).toBe(0)
    await system.getByText('No worker runs: what was accepted waits until one does').waitFor()
    await system.getByRole('heading', { name: `Loops of ${web.system.worker.owner}` }).waitFor()
    expect(watched.violations).toEqual([])
  })
})
