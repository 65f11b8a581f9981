/**
 * Access and the audit trail as people meet them: behind TLS, signed in by a real provider, each with what their role and grants
 * allow. And one tab that two people use after each other.
 */
import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { axeFindings } from '../support/axe.ts'
import { launchBrowser, leaveBrowser, leavePage, openPage } from '../support/browser.ts'
import { skillRoutingUri } from '../../a2a/extensions/skill-routing.ts'
import { readAccess } from '../../persistence/access.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startRawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { pageOrigin } from '../support/people.ts'
import { TestProvider } from '../support/provider.ts'
import { startSignIn, type SignInConsole } from '../support/sign-in.ts'
import { startTlsFront, type TlsFront } from '../support/tls-front.ts'

const roles = { ada: 'admin', bob: 'operator', vic: 'viewer' } as const
type Name = keyof typeof roles

let provider: TestProvider
let house: SignInConsole
let peer: Peer
let front: TlsFront
let browser: Browser
let agentId: string

beforeAll(async () => {
  provider = await TestProvider.start({ origins: [pageOrigin], subjects: [...Object.keys(roles), 'stranger'] })
  house = await startSignIn({ database: 'pglite', provider })
  for (const [name, role] of Object.entries(roles)) await house.admit(name, role)
  peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC', card: { name: 'Ledger' } })
  const agent = await house.system.agents.register(house.viewer, peer.cardUrl)
  agentId = agent.id
  front = await startTlsFront(provider, house.url)
  browser = await launchBrowser([
    `--host-resolver-rules=MAP ${new URL(pageOrigin).hostname}:443 127.0.0.1:${front.port}`,
  ])
})
afterAll(async () => {
  await leaveBrowser(browser)
  await front.close()
  await peer.close()
  await house.close()
  await provider.stop()
})

/** A tab of its own browser profile, that must do nothing a strict policy forbids. */
async function tab(): Promise<Page> {
  const watched = await openPage(browser, { ignoreHTTPSErrors: true, acceptDownloads: true })
  onTestFinished(async () => {
    await leavePage(watched.page)
    expect(watched.violations).toEqual([])
  })
  return watched.page
}

/** By the sign-in page's own button; the provider forgets whom it saw before. */
async function signIn(page: Page, name: Name | 'stranger', path = '/tasks'): Promise<void> {
  await page.context().clearCookies({ domain: 'localhost' })
  if (!page.url().startsWith(pageOrigin)) await page.goto(pageOrigin + path)
  await page.getByRole('link', { name: /^Sign in/ }).click()
  await page.getByLabel('Person').fill(name)
  await page.getByRole('button').click()
  await page.waitForURL(`${pageOrigin}/**`)
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'your session' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
}

async function expectClean(page: Page): Promise<void> {
  expect(await axeFindings(page)).toEqual([])
}

const confirm = async (page: Page, word: string, sentence: RegExp): Promise<void> => {
  const dialog = page.getByRole('dialog')
  await dialog.getByText(sentence).waitFor()
  await dialog.getByRole('button', { name: word }).click()
  await dialog.waitFor({ state: 'detached' })
}
/** Names in sentences stand between characters that keep their direction to themselves. */
const sentence = (text: string): RegExp => new RegExp(text.split('').join('[\\u2068\\u2069]*'))

const message = (page: Page) => page.getByRole('textbox', { name: 'Message' })

describe('signing in and out', () => {
  test('comes back to where one was going; a stranger reads why not, and starts again', async () => {
    const page = await tab()
    await page.goto(`${pageOrigin}/agents?x=1`)
    await page.getByRole('heading', { name: 'Sign in to Signalbox' }).waitFor()
    expect(await page.getByRole('navigation').count()).toBe(0)
    await expectClean(page)
    await signIn(page, 'stranger')
    await page.getByText('Sign-in failed. Start a new sign-in attempt.').waitFor()
    await expectClean(page)
    await page.context().clearCookies({ domain: 'localhost' })
    await page.getByRole('link', { name: 'Start again' }).click()
    await page.getByLabel('Person').fill('vic')
    await page.getByRole('button').click()
    await page.getByRole('button', { name: /^vic, viewer.*your session$/ }).waitFor()
  })

  test('keeps a draft for whoever wrote it, and for nobody else', async () => {
    const page = await tab()
    const path = `/tasks/new?agent=${agentId}`
    await signIn(page, 'ada', path)
    await message(page).fill('the secret of ada')
    await signOut(page)
    expect(await page.locator('body').innerText()).not.toMatch(/ada|Ledger/)
    await page.getByText('What you typed is kept in this tab').waitFor()
    await signIn(page, 'ada')
    await expect.poll(() => message(page).inputValue()).toBe('the secret of ada')
    await signOut(page)
    await signIn(page, 'bob')
    await page.getByRole('button', { name: /^bob, operator/ }).waitFor()
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain('secret')
  })

  test('what was on the page is gone when the session ends elsewhere', async () => {
    const page = await tab()
    await signIn(page, 'ada', '/agents')
    await page.getByText('Ledger').first().waitFor()
    const other = await page.context().newPage()
    await other.goto(pageOrigin)
    await signOut(other)
    await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
    expect(await page.getByText('Ledger').count()).toBe(0)
  })

  test('the keyboard is the sign-in page’s when the session ends below an open palette', async () => {
    const page = await tab()
    await signIn(page, 'ada', '/agents')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find or do' }).fill('words of ada')
    const other = await page.context().newPage()
    await other.goto(pageOrigin)
    await signOut(other)
    await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('link', { name: 'Sign in again' }).focus()
    const asked = page.waitForRequest('**/api/auth/login**', { timeout: 10_000 })
    await page.keyboard.press('Enter')
    await asked
  })
})

test('what an administrator gives and takes, another person has on the next look; why is told in words', async () => {
  const [page, bobs] = [await tab(), await tab()]
  await signIn(bobs, 'bob', '/agents')
  await bobs.getByText('What is granted to you shows here').waitFor()
  await signIn(page, 'ada', '/access')
  await page.getByRole('row').filter({ hasText: 'vic, viewer' }).waitFor()
  await expectClean(page)
  await page.getByRole('link', { name: 'Teams' }).click()
  await page.getByRole('textbox', { name: 'Name of a new team' }).fill('Night shift')
  await page.getByRole('button', { name: 'Create' }).click()
  await confirm(page, 'Create team', /A new team is empty/)
  await page.getByRole('combobox', { name: 'Add somebody to Night shift' }).selectOption({ label: 'bob, operator' })
  await confirm(page, 'Add to team', /Nobody gains or loses anything/)
  await page.getByRole('link', { name: 'Grants' }).click()
  await page.getByRole('combobox', { name: 'Agent' }).selectOption({ label: 'Ledger' })
  await page.getByRole('combobox', { name: 'To' }).selectOption({ label: 'Night shift' })
  await page.getByRole('combobox', { name: 'May' }).selectOption({ label: 'Read and send' })
  await page.getByRole('button', { name: 'Grant…' }).click()
  await confirm(page, 'Grant', sentence('bob, operator will see Ledger and all its tasks, and may send to it.'))
  await page.getByRole('cell', { name: 'Read and send' }).waitFor()

  await bobs.reload()
  await bobs.getByText('Ledger').first().waitFor()
  expect(await bobs.getByRole('button', { name: 'Add agent' }).count()).toBe(0)

  await page.getByRole('link', { name: 'Why can they see it?' }).click()
  await page.getByRole('combobox', { name: 'Person' }).selectOption({ label: 'bob, operator (Operator)' })
  await page.getByRole('combobox', { name: 'Agent' }).selectOption({ label: 'Ledger' })
  await page.getByText(sentence('The agent was granted to the team “Night shift”, which bob, operator is in')).waitFor()
  await expectClean(page)
  await page.getByRole('link', { name: 'Grants' }).click()
  await page.getByRole('button', { name: /^Revoke: Ledger/ }).click()
  await confirm(page, 'Revoke grant', sentence('bob, operator will no longer see Ledger.'))
  await bobs.reload()
  await bobs.getByText('What is granted to you shows here').waitFor()
})

test('who may only read is told so where others write; who holds one skill sends to that', async () => {
  const skills = ['invoices', 'payroll'].map((id) => ({ id, name: `Does ${id}`, description: id, tags: ['test'] }))
  const capabilities = { streaming: true, extensions: [{ uri: skillRoutingUri('signalbox.example') }] }
  const router = await startRawPeer({ card: { name: 'Router', skills, capabilities } })
  onTestFinished(() => router.close())
  const { system, viewer, db } = house
  const routed = await system.agents.register(viewer, router.cardUrl)
  await system.agents.get(viewer, routed.id)
  const { memberships } = await readAccess(db.pool, viewer.organizationId)
  const subjectId = memberships.find(({ name }) => name.startsWith('bob'))?.id ?? ''
  const toBob = { action: 'grant', subjectType: 'membership', subjectId } as const
  await system.access.change(viewer, { ...toBob, agentId, skillId: null, permission: 'read' })
  await system.access.change(viewer, { ...toBob, agentId: routed.id, skillId: 'invoices', permission: 'operate' })

  const page = await tab()
  await signIn(page, 'bob', `/tasks/new?agent=${agentId}`)
  await page.getByText('Sending needs a grant').waitFor()
  expect(await message(page).count()).toBe(0)
  expect(await page.getByText('It says it can do').count()).toBe(0)
  await page.getByRole('combobox', { name: 'Agent' }).selectOption({ label: 'Router' })
  await page.getByText('Of this agent you may send to this skill only.').waitFor()
  expect(await page.getByRole('option', { name: 'Does payroll' }).count()).toBe(0)
  await expectClean(page)
  await message(page).fill('ask')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('heading', { name: 'ask', exact: true }).waitFor()
  expect(JSON.stringify(router.seen('SendMessage')?.body)).toContain('"skillId":"invoices"')
  await message(page).waitFor()

  // What is taken while the page is open is told there, not by a failed attempt.
  const own = (await readAccess(db.pool, viewer.organizationId)).grants.find((each) => each.agentId === routed.id)
  await system.access.change(viewer, { ...toBob, agentId: routed.id, skillId: 'invoices', permission: 'read' })
  await system.access.change(viewer, { action: 'revokeGrant', grantId: own?.id ?? '' })
  await page.getByText('Sending needs a grant').waitFor()
  expect(await page.getByRole('button', { name: 'Cancel task' }).count()).toBe(0)
})

test('what is for administrators says so to others', async () => {
  const page = await tab()
  await signIn(page, 'vic', '/access')
  await page.getByText('Access is for administrators').waitFor()
  expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0)
  await page.goto(`${pageOrigin}/audit`)
  await page.getByText('The audit trail is for administrators').waitFor()
  await expectClean(page)
})

test('the audit trail: filters, the chain, exports, and a task’s own history', async () => {
  const page = await tab()
  await signIn(page, 'ada', `/tasks/new?agent=${agentId}`)
  await message(page).fill('ask')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('heading', { name: 'ask', exact: true }).waitFor()
  await page.getByText('Audit history').click()
  await page.getByText(sentence('sent a message to Ledger')).waitFor()
  await page.keyboard.press('Escape')

  // Everything but the trail itself is known when it is opened from here.
  await page.getByRole('link', { name: 'Access', exact: true }).click()
  await page.getByText('People who may sign in').waitFor()
  await page.getByRole('link', { name: 'Audit', exact: true }).click()
  await page.getByRole('listitem').filter({ hasText: 'signed in' }).first().waitFor()
  await page.getByRole('button', { name: 'Messages' }).click()
  await expect.poll(() => new URL(page.url()).search).toBe('?group=commands')
  await expect.poll(() => page.getByRole('listitem').filter({ hasText: 'signed in' }).count()).toBe(0)
  await page.getByRole('button', { name: 'All of this task' }).first().click()
  await expect.poll(() => new URL(page.url()).searchParams.has('task')).toBe(true)
  await page.goBack()
  await page.getByRole('button', { name: 'Everything' }).click()
  await vi.waitFor(
    async () => {
      await page.reload()
      await page.getByText(/^Linked up to row \d+/).waitFor({ timeout: 2_000 })
    },
    { timeout: 20_000 },
  )

  const csv = page.waitForEvent('download')
  await page.getByRole('button', { name: 'CSV' }).click()
  expect(await readFile(await (await csv).path(), 'utf8')).toMatch(/^time,kind,actor,task,subject,detail\r\n/)
  await page.getByText('that is all of it').waitFor()
  const chain = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Verifiable chain' }).click()
  expect(await readFile(await (await chain).path(), 'utf8')).toContain('signalbox-audit-chain/1')
  await expectClean(page)
})
