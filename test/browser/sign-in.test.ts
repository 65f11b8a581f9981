/** Signing in as people do: Chromium, a real provider, and a proxy that ends TLS before the console. */
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { cookieNames } from '../../http/cookies.ts'
import { launchBrowser, leaveBrowser } from '../support/browser.ts'
import { pageOrigin } from '../support/people.ts'
import { TestProvider } from '../support/provider.ts'
import { startSignIn, type SignInConsole } from '../support/sign-in.ts'
import { startTlsFront, type TlsFront } from '../support/tls-front.ts'

let provider: TestProvider
let house: SignInConsole
let front: TlsFront
let browser: Browser
beforeAll(async () => {
  provider = await TestProvider.start({ origins: [pageOrigin], subjects: ['ada', 'stranger'] })
  house = await startSignIn({ database: 'pglite', provider, system: { works: false } })
  await house.admit('ada', 'admin')
  front = await startTlsFront(provider, house.url)
  const { hostname } = new URL(pageOrigin)
  browser = await launchBrowser([`--host-resolver-rules=MAP ${hostname}:443 127.0.0.1:${front.port}`])
})
afterAll(async () => {
  await leaveBrowser(browser)
  await front.close()
  await house.close()
  await provider.stop()
})

async function person(): Promise<BrowserContext> {
  // The authority is this test's own.
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  onTestFinished(() => context.close())
  return context
}
async function login(context: BrowserContext, returnTo: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${pageOrigin}/api/auth/login?returnTo=${encodeURIComponent(returnTo)}`)
  expect(new URL(page.url()).origin).toBe(provider.issuer)
  return page
}
async function answer(page: Page, subject: string): Promise<void> {
  await page.getByLabel('Person').fill(subject)
  await page.getByRole('button').click()
  await page.waitForURL(`${pageOrigin}/**`)
}
const ask = (page: Page, path: string, method = 'GET') =>
  page.evaluate(async ([to, by]) => (await fetch(to ?? '', { method: by ?? '' })).status, [path, method])

test('a person signs in, works, and signs out; what the browser keeps is by the rules', async () => {
  const context = await person()
  const page = await login(context, '/tasks?view=mine')
  await answer(page, 'ada')
  expect(page.url()).toBe(`${pageOrigin}/tasks?view=mine`)
  expect(await ask(page, '/api/auth/session')).toBe(200)
  const cookies = await context.cookies(pageOrigin)
  expect(cookies).toEqual([
    expect.objectContaining({
      name: cookieNames.session,
      domain: new URL(pageOrigin).hostname,
      path: '/',
      httpOnly: true,
      secure: true,
      sameSite: 'Lax',
    }),
  ])
  expect(await page.evaluate(() => document.cookie)).toBe('')
  expect(await ask(page, '/api/auth/logout', 'POST')).toBe(200)
  expect(await ask(page, '/api/auth/session')).toBe(401)
  expect(await context.cookies(pageOrigin)).toEqual([])
})

test('two tabs sign in side by side, each to where it was going', async () => {
  const context = await person()
  const tabs = [await login(context, '/tasks'), await login(context, '/agents')] as const
  await answer(tabs[1], 'ada')
  await answer(tabs[0], 'ada')
  expect(tabs.map((tab) => new URL(tab.url()).pathname)).toEqual(['/tasks', '/agents'])
  expect(await ask(tabs[1], '/api/auth/session')).toBe(200)
})

test('a person whom nobody admitted is told so little as everybody', async () => {
  const context = await person()
  const page = await login(context, '/tasks?view=mine')
  await answer(page, 'stranger')
  expect(await page.textContent('body')).toContain('Sign-in failed. Start a new sign-in attempt.')
  const again = page.getByRole('link', { name: 'Start again' })
  expect(await again.getAttribute('href')).toBe('/api/auth/login?returnTo=%2Ftasks%3Fview%3Dmine')
  expect(await context.cookies(pageOrigin)).toEqual([])
})
