/**
 * axe on every page, in both themes, wide and narrow, plus the dialogs and what a person without a
 * mouse, without colour or without motion meets. The pages show real answers of a real console and agent.
 */
import canonicalize from 'canonicalize'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { revokeBinding, storeBinding } from '../../actors/credential-changes.ts'
import { Vault, type KeyRing } from '../../actors/vault.ts'
import { signer, signText } from '../a2a/signing.ts'
import { axeFindings } from '../support/axe.ts'
import { drawn, goTo, launchBrowser, leaveBrowser, visit } from '../support/browser.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { listenOnLoopback, type Listening, type Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { isLong } from '../support/pass.ts'

const patience = { timeout: 20_000, interval: 100 }
const vault: KeyRing = { keys: { k1: '11'.repeat(32) }, activeKey: 'k1' }

/** Serves one agent's card thrice: signed by a key, by another one, and changed after the first had signed it. */
async function serveSignedCards(endpoint: string) {
  const [key, stranger] = await Promise.all([signer('2026-1'), signer('who-knows')])
  const card = {
    name: 'Signed',
    description: 'Does things.',
    version: '1',
    supportedInterfaces: [{ url: endpoint, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'act', name: 'Act', description: 'Acts.', tags: ['t'] }],
  }
  const text = canonicalize(card) ?? ''
  const [good, unknown] = await Promise.all([signText(key, text), signText(stranger, text)])
  const cards: Readonly<Record<string, object>> = {
    '/verified.json': { ...card, signatures: [good] },
    '/untrusted.json': { ...card, signatures: [unknown] },
    '/invalid.json': { ...card, description: 'Does other things.', signatures: [good] },
  }
  const stand = await listenOnLoopback((request, response) => response.end(JSON.stringify(cards[request.url ?? ''])))
  return { stand, policy: { requireSigned: false, trustedKeys: { [stand.origin]: [key.pinned] } } }
}

describe('accessibility', () => {
  let server: TestConsole
  let peer: Peer
  let stand: Listening
  let browser: Browser
  let agentId: string
  const taskIds = new Map<string, string>()

  async function post(path: string, body: unknown, key: string): Promise<unknown> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key }
    const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return response.json()
  }

  beforeAll(async () => {
    peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    const signed = await serveSignedCards(`${peer.origin}/rpc`)
    stand = signed.stand
    server = await startConsole({ database: 'pglite', system: { cards: signed.policy, vault } })
    browser = await launchBrowser()
    const { agent } = (await post('/api/agents', { cardUrl: peer.cardUrl }, 'agent')) as { agent: { id: string } }
    agentId = agent.id
    await post('/api/admin/security', { action: 'createTeam', name: 'Day shift' }, 'team')
    const reply = await fetch(`${server.url}/api/admin/security`)
    const { organizationId } = (await reply.json()) as { organizationId: string }
    const everybody = { subjectType: 'organization', subjectId: organizationId, permission: 'operate' }
    await post('/api/admin/security', { action: 'grant', agentId, skillId: null, ...everybody }, 'grant')
    for (const text of ['ask', 'files', 'hold']) await post(`/api/agents/${agentId}/commands`, { text }, text)
    await vi.waitFor(async () => {
      const response = await fetch(`${server.url}/api/tasks`)
      const { tasks } = (await response.json()) as { tasks: { title: string; localId: string; state: string }[] }
      for (const { title, localId } of tasks) taskIds.set(title, localId)
      const settled = tasks.filter(({ state }) => /COMPLETED|INPUT_REQUIRED|WORKING/.test(state))
      if (settled.length < 3) throw new Error(`Only ${settled.length} of 3 tasks are there.`)
    }, patience)
  })
  afterAll(async () => {
    await leaveBrowser(browser)
    await Promise.all([peer.close(), stand.close()])
    await server.close()
  })

  const open = (path: string, options: BrowserContextOptions = {}): Promise<Page> =>
    visit(browser, server.url + path, options)

  async function expectClean(page: Page, where: string): Promise<void> {
    expect(await axeFindings(page), where).toEqual([])
  }

  /** Either theme, wide and narrow: colours do not depend on the width. The widths between, where the layout changes, in the long pass. */
  const looks = [
    ['light', 1440],
    ['dark', 720],
    ...(isLong
      ? ([
          ['dark', 1100],
          ['light', 720],
          ['light', 600],
          ['dark', 520],
        ] as const)
      : []),
  ] as const

  it.each(looks)(
    'finds nothing on any page in %s at %d px, and nothing scrolls sideways',
    async (colorScheme, width) => {
      const page = await open('/tasks', { colorScheme, viewport: { width, height: 900 } })
      const pages: [path: string, shown: string][] = [
        ['/tasks', 'ask'],
        [`/tasks/${taskIds.get('ask')}`, 'Which colour?'],
        [`/tasks/${taskIds.get('files')}`, 'not opened'],
        [`/tasks/new?agent=${agentId}`, 'New task'],
        ['/agents', 'Add agent'],
        ['/tasks?filter=done', 'files'],
        [`/agents/${agentId}`, 'Compliance report'],
        ['/access/teams', 'Day shift'],
        ['/access/grants', 'Read and send'],
        ['/audit', 'created the team'],
        ['/nowhere', 'There is no such page'],
      ]
      for (const [path, shown] of pages) {
        await goTo(page, path)
        await page.getByText(shown).locator('visible=true').first().waitFor()
        await expectClean(page, path)
        const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        expect(sideways, path).toBeLessThanOrEqual(0)
      }
    },
  )

  it('finds what is wrong, also in the shadow of an element', async () => {
    const page = await open('/agents')
    await page.getByRole('row').nth(1).waitFor()
    await page.evaluate(() => {
      const main = document.querySelector('signalbox-console')?.shadowRoot?.querySelector('main')
      main?.append(document.createElement('button'))
    })
    expect(await axeFindings(page)).toEqual([['button-name', [expect.stringMatching(/^signalbox-console .*button/)]]])
  })

  /** What says so has the colours of what stands on every page, which are looked at in both: the other one in the long pass. */
  it.each(
    isLong
      ? ([
          ['light', 1440],
          ['dark', 720],
        ] as const)
      : ([['dark', 720]] as const),
  )(
    'finds nothing where a card is verified, of an unknown key or not believed, in %s at %d px',
    async (colorScheme, width) => {
      const ids = new Map<string, string>()
      for (const trust of ['verified', 'untrusted', 'invalid'])
        ids.set(trust, await server.api.register(`${stand.origin}/${trust}.json`))
      const at = new Date().toISOString()
      for (const trust of ['untrusted', 'invalid']) {
        const target = { organizationId: server.viewer.organizationId, agentId: ids.get(trust) ?? '' }
        const credential = { type: 'bearer', token: 'a token of the operator' } as const
        await storeBinding(server.db, new Vault(vault), target, { origins: ['https://agent.example'], credential }, at)
        if (trust === 'untrusted') await revokeBinding(server.db, target, at)
      }
      const page = await open('/agents', { colorScheme, viewport: { width, height: 1000 } })
      const pages: readonly (readonly [string, string, readonly string[]])[] = [
        ['verified', 'Verified', ['a key that this console trusts has signed', '2026-1', 'None is stored']],
        ['untrusted', 'Untrusted key', ['nobody here has pinned', 'who-knows', 'Revoked']],
        ['invalid', 'Invalid signature', ['not what its signer signed', 'does not verify', 'In use']],
      ]
      const rejected = ': Agent Card trust policy rejected this connection.'
      for (const [trust, word] of pages) {
        const row = page.getByRole('row').filter({ hasText: `/${trust}.json` })
        await row.getByText(trust === 'invalid' ? word + rejected : word, { exact: true }).waitFor()
      }
      await expectClean(page, 'agents')
      for (const [trust, word, shown] of pages) {
        await goTo(page, `/agents/${ids.get(trust)}`)
        const about = page.getByRole('region', { name: 'About this agent' })
        for (const each of shown) await about.getByText(each).first().waitFor()
        expect(await page.locator('signalbox-agent header').innerText()).toContain(word)
        await expectClean(page, trust)
        expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), trust).toBeLessThanOrEqual(
          0,
        )
      }
    },
  )

  /** As above. */
  it.each(isLong ? (['light', 'dark'] as const) : (['light'] as const))(
    'finds nothing in the dialogs in %s',
    async (colorScheme) => {
      const page = await open('/agents', { colorScheme })
      await page.getByRole('row').nth(1).waitFor()
      await page.getByRole('button', { name: 'Add agent' }).click()
      await page.getByRole('textbox', { name: 'Agent Card URL' }).fill(peer.cardUrl)
      await page.getByRole('button', { name: 'Preview' }).click()
      await page.getByRole('status', { name: 'Preview' }).waitFor()
      await expectClean(page, 'add agent')
      await page.keyboard.press('Escape')
      await page.keyboard.press('?')
      await page.getByRole('heading', { name: 'Keyboard' }).waitFor()
      await expectClean(page, 'keys')
      await page.keyboard.press('Escape')
      await page.keyboard.press('Control+k')
      await page.getByRole('option').first().waitFor()
      await expectClean(page, 'palette')
      await page.keyboard.press('Escape')
      await page.goto(`${server.url}/tasks/${taskIds.get('hold')}`)
      await page.getByRole('button', { name: 'Cancel task' }).click()
      await page.getByRole('heading', { name: 'Cancel this task?' }).waitFor()
      await expectClean(page, 'cancel')
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: /^Local administrator ?, Administrator ?, your session$/ }).click()
      await expectClean(page, 'session')
      await page.goto(`${server.url}/access/grants`)
      await page.getByRole('button', { name: /^Revoke: / }).click()
      await page.getByRole('heading', { name: /^Revoke/ }).waitFor()
      await expectClean(page, 'revoke')
    },
  )

  it('gives focus back to what opened a dialog', async () => {
    const page = await open('/agents')
    const button = page.getByRole('button', { name: 'Add agent' })
    await button.click()
    await page.getByRole('textbox', { name: 'Agent Card URL' }).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => button.evaluate((element) => element.matches(':focus'))).toBe(true)
  })

  it('skips to the content, and turns single keys off', async () => {
    const page = await open('/tasks')
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    await page.keyboard.press('Tab')
    const skip = page.getByRole('button', { name: 'Skip to content' })
    expect(await skip.evaluate((element) => element.matches(':focus'))).toBe(true)
    await page.keyboard.press('Enter')
    expect(await page.getByRole('main').evaluate((element) => element.matches(':focus'))).toBe(true)
    await page.keyboard.press('?')
    await page.getByRole('checkbox', { name: 'Single-key shortcuts' }).uncheck()
    await page.keyboard.press('Escape')
    // Keys are heard while focus is inside the console, where the closing dialog gives it back.
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.waitForFunction(() => document.activeElement !== document.body)
    await page.keyboard.press('?')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find or do' }).waitFor()
  })

  it('opens what a key opens while the end of the last one is still on its way', async () => {
    const page = await open('/agents')
    await page.getByRole('row').nth(1).waitFor()
    const closeAndPress = (key: string): Promise<void> =>
      page
        .getByRole('dialog')
        .first()
        .evaluate((dialog, pressed) => {
          if (dialog instanceof HTMLDialogElement) dialog.close()
          // Before the browser has told of the end, which it does in a task of its own.
          const press = { key: pressed, ctrlKey: pressed === 'k', bubbles: true, composed: true }
          document.querySelector('signalbox-console')?.dispatchEvent(new KeyboardEvent('keydown', press))
        }, key)
    await page.keyboard.press('?')
    await page.getByRole('heading', { name: 'Keyboard' }).waitFor()
    await closeAndPress('k')
    await page.getByRole('option').first().waitFor()
    await closeAndPress('k')
    // Another one: what was open is gone, and this one stays.
    await page.getByRole('combobox', { name: 'Find or do' }).fill('Agents')
    await page.getByRole('option').first().waitFor()
    // Of what is open nothing is opened anew: what was typed stays.
    await page.evaluate(() => {
      const press = { key: 'k', ctrlKey: true, bubbles: true, composed: true }
      document.querySelector('signalbox-console')?.dispatchEvent(new KeyboardEvent('keydown', press))
    })
    await drawn(page)
    expect(await page.getByRole('combobox', { name: 'Find or do' }).inputValue()).toBe('Agents')
    await closeAndPress('?')
    await page.getByRole('heading', { name: 'Keyboard' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(1)
  })

  it('still tells states apart without colours, and does not move for who wants no motion', async () => {
    const page = await open(`/tasks/${taskIds.get('hold')}`, { forcedColors: 'active', reducedMotion: 'reduce' })
    const chip = page.locator('signalbox-task .chips .chip').first()
    await chip.waitFor()
    expect((await chip.innerText()).trim()).toBe('Working')
    expect(await chip.evaluate((element) => getComputedStyle(element).borderTopWidth)).toBe('1px')
    const moving = await page.evaluate(() => document.getAnimations().length)
    expect(moving).toBe(0)
  })
})
