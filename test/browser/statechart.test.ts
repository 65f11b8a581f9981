/** The picture of a chart in a real browser: its map lies on nothing that is read, and no line crosses a label. */
import { randomUUID } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { spaced } from '../../domain/chart.ts'
import { drawn, goTo, launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const states = [
  ['command', 'succeeded'],
  ['command', 'dispatching'],
  ['subscription', 'resting'],
  ['subscription', 'following'],
  ['subscription', 'backingOff'],
  ['reconciliation', 'resting'],
] as const
const sizes = [
  [1440, 900],
  [1440, 640],
  [1024, 768],
] as const

describe('a chart that is larger than its pane', () => {
  let server: TestConsole
  let browser: Browser
  let peer: RawPeer
  const actors: { readonly kind: string; readonly id: string; readonly value: string }[] = []

  beforeAll(async () => {
    server = await startConsole({ database: 'pglite', system: { works: false } })
    browser = await launchBrowser()
    peer = await startRawPeer()
    const agent = await server.system.agents.register(server.viewer, peer.cardUrl)
    for (const [kind, value] of states) {
      // A command is seen with its row; nobody works here, so it stays where it is put.
      const id = kind === 'command' ? (await server.send(agent.id, { text: 'hello' })).id : randomUUID()
      await server.db.pool.query(sql.unsafe`
        insert into actor (kind, id, organization_id, machine_version, revision, snapshot, timers, created_at, updated_at)
        values (${kind}, ${id}, ${server.viewer.organizationId}, '1', 1,
          jsonb_build_object('value', ${value}::text, 'context', '{}'::jsonb, 'status', 'active'), '{}'::jsonb, now(), now())
        on conflict (kind, id) do update set snapshot = excluded.snapshot`)
      actors.push({ kind, id, value })
    }
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await server.close()
    await peer.close()
  })

  it.each(sizes)('has its map beside everything that is read, at %d × %d px', async (width, height) => {
    let maps = 0
    const { page } = await openPage(browser, { viewport: { width, height } })
    await page.goto(`${server.url}/actors`)
    for (const { kind, id, value } of actors) {
      await goTo(page, `/actors/${kind}/${id}`)
      await page.getByRole('group', { name: new RegExp(`Current state: ${spaced(value)}`) }).waitFor()
      const covered = await page.locator('signalbox-statechart').evaluate((chart) => {
        const map = chart.shadowRoot?.querySelector('.overview')?.getBoundingClientRect()
        if (!map) return null
        const parts = [...(chart.shadowRoot?.querySelectorAll('.canvas .name, .canvas .which, .canvas .pill') ?? [])]
        return parts.flatMap((part) => {
          const at = part.getBoundingClientRect()
          const isApart = at.right <= map.left || at.left >= map.right || at.bottom <= map.top || at.top >= map.bottom
          return isApart ? [] : [part.textContent]
        })
      })
      if (covered) maps++
      expect([kind, value, covered ?? []]).toEqual([kind, value, []])
    }
    await leavePage(page)
    expect(maps).toBeGreaterThan(0)
  })

  it.each([1440, 390])(
    'begins with the first of the states that are live, where all of them have no room, at %d px',
    async (width) => {
      const { page } = await openPage(browser, { viewport: { width, height: 844 } })
      await page.goto(`${server.url}/actors?show=machines`)
      await page.getByRole('button', { name: 'supervisor' }).click()
      await page.getByRole('group', { name: /Current state: running/ }).waitFor()
      const chart = page.locator('signalbox-statechart')
      /** Of the names of the machine's first lane and its states, in the pane's pixels. */
      const inSight = (name: string) =>
        chart.evaluate((host, wanted) => {
          const pane = host.getBoundingClientRect()
          const at = [...(host.shadowRoot?.querySelectorAll('.canvas .name, .canvas text') ?? [])]
            .find(({ textContent }) => textContent?.trim() === wanted)
            ?.getBoundingClientRect()
          return (
            at !== undefined &&
            at.left >= pane.left &&
            at.right <= pane.right &&
            at.top >= pane.top &&
            at.bottom <= pane.bottom
          )
        }, name)
      expect([await inSight('leases'), await inSight('left to workers')]).toEqual([true, true])
      // Who went on from there is left where they are by the next answer that says the same.
      await page.locator('signalbox-statechart .canvas').focus()
      for (let press = 0; press < 60; press++) await page.keyboard.press('ArrowDown')
      expect(await inSight('leases')).toBe(false)
      await page.waitForResponse('**/api/supervisor')
      await drawn(page)
      expect(await inSight('leases')).toBe(false)
      await leavePage(page)
    },
  )

  it('draws its labels above every line', async () => {
    const { page } = await openPage(browser)
    await page.goto(`${server.url}/actors/subscription/${actors[2]?.id}`)
    await page.getByRole('group', { name: /Current state: resting/ }).waitFor()
    const parts = await page
      .locator('signalbox-statechart .canvas')
      .evaluate((canvas) => [...canvas.querySelectorAll('.line, .pill')].map((part) => part.classList.contains('line')))
    expect(parts.lastIndexOf(true)).toBeLessThan(parts.indexOf(false))
    await leavePage(page)
  })

  it('says states in words, in the list and the picture, and finds them by their own names too', async () => {
    const { page } = await openPage(browser)
    await page.goto(`${server.url}/actors?q=backingOff`)
    const row = page.getByRole('region', { name: 'Actors' }).getByRole('listitem').getByRole('link')
    await expect.poll(() => row.count()).toBe(1)
    // A row that has just come into sight is painted with the next frame, and has no text before.
    await expect.poll(() => row.getByTitle('backingOff').innerText()).toBe('backing off')
    await page.getByRole('searchbox', { name: 'Filter actors' }).fill('backing off')
    await page.waitForURL(/q=backing(?:%20|\+)off/)
    await row.click()
    await page.getByRole('group', { name: /Current state: backing off/ }).waitFor()
    const names = page.locator('signalbox-statechart .canvas .name')
    const told = await names.allTextContents()
    expect(told).toContain('backing off')
    expect(told.filter((name) => /[a-z][A-Z]/.test(name))).toEqual([])
    // Words are wider than the names that they are made of, and still lie inside their boxes.
    const sticking = await names.evaluateAll((all) =>
      all.flatMap((name) => {
        const box = name.parentElement?.querySelector('.box')?.getBoundingClientRect()
        return box && name.getBoundingClientRect().right <= box.right ? [] : [name.textContent]
      }),
    )
    expect(sticking).toEqual([])
    const conditions = await page
      .locator('signalbox-statechart .canvas .guard')
      .evaluateAll((all) => all.map((line) => [line.lastChild?.textContent, line.querySelector('title')?.textContent]))
    expect(conditions).toContainEqual(['if the task is finished', 'taskFinished'])
    expect(conditions.filter(([line]) => /[a-z][A-Z]/.test(line ?? ''))).toEqual([])
    // A condition's lines lie inside the label that was laid out for them.
    const outside = await page.locator('signalbox-statechart .canvas .guard').evaluateAll((all) =>
      all.flatMap((line) => {
        const pills = [...(line.closest('.arrow')?.querySelectorAll('.pill') ?? [])].map((pill) =>
          pill.getBoundingClientRect(),
        )
        const { left, right, top, bottom } = line.getBoundingClientRect()
        const isInside = pills.some(
          (at) => left >= at.left && right <= at.right && top >= at.top && bottom <= at.bottom + 1,
        )
        return isInside ? [] : [line.textContent]
      }),
    )
    expect(outside).toEqual([])
    await page.getByRole('button', { name: 'Outline' }).click()
    const outline = page.getByRole('region', { name: 'subscription as an outline' })
    expect(await outline.locator('.leaf .key').innerText()).toBe('backing off')
    expect(await outline.locator('.leaf .key').getAttribute('title')).toBe('backingOff')
    expect(await outline.getByTitle('taskFinished').first().innerText()).toBe('if the task is finished')
    await leavePage(page)
  })
})
