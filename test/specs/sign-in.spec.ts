/** Signing in by a real provider over TLS: who gets in, what a browser holds, and everything that is the same 401. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { cookieNames } from '../../http/cookies.ts'
import type { Reply } from '../support/api.ts'
import { eitherDatabase } from '../support/databases.ts'
import { pageOrigin } from '../support/people.ts'
import { SignInBrowser, TestProvider } from '../support/provider.ts'
import { startSignIn, type SignInConsole } from '../support/sign-in.ts'

const failed = { error: { message: 'Sign-in failed. Start a new sign-in attempt.' } }
const hidden = (reply: Reply) => [reply.status, reply.body]
const attributes = 'Path=/; HttpOnly; Secure; SameSite=Lax'

const provider = await TestProvider.start({ origins: [pageOrigin], subjects: ['ada', 'ben', 'cem', 'stranger'] })
afterAll(() => provider.stop())

const browserAt = ({ url }: { url: string }): SignInBrowser => {
  const browser = new SignInBrowser(provider, pageOrigin, url)
  onTestFinished(() => browser.close())
  return browser
}

/** Between a browser and a provider; its statements are tried on both (test/persistence/sign-in.test.ts). */
describe.each(eitherDatabase)('sign-in on %s', (database) => {
  let house: SignInConsole
  beforeAll(async () => {
    house = await startSignIn({ database, provider, system: { works: false } })
    await house.admit('ada', 'admin')
    await house.admit('ben', 'operator')
    await house.admit('cem', 'viewer')
  })
  afterAll(() => house.close())
  const audited = (kind: string) =>
    house.db.pool.any(
      sql.type(z.object({ kind: z.string(), name: z.string(), session: z.string() }))`
        select a.kind, p.display_name as name, a.data->>'session' as session from audit a
        join person p on p.id = a.actor_person_id where a.kind = ${kind} order by a.at, a.id`,
    )

  test('three people get in, each as who they are; their browsers hold one cookie by the rules, we only its hash', async () => {
    for (const [subject, role] of Object.entries({ ada: 'admin', ben: 'operator', cem: 'viewer' })) {
      const browser = browserAt(house)
      const reply = await browser.signIn(subject, '/tasks/1?tab=log#end')
      expect([reply.status, reply.headers.get('location')]).toEqual([303, `${pageOrigin}/tasks/1?tab=log#end`])
      expect(reply.headers.getSetCookie()).toEqual([
        `${cookieNames.login}=; Max-Age=0; ${attributes}`,
        expect.stringMatching(`^${cookieNames.login}-[\\w-]{8}=; Max-Age=0; ${attributes}$`),
        `${cookieNames.session}=${browser.session ?? ''}; Max-Age=3600; ${attributes}`,
      ])
      expect(browser.console_.header).toEqual({ cookie: `${cookieNames.session}=${browser.session ?? ''}` })
      expect((await browser.get('/api/auth/session')).body).toEqual({
        user: { displayName: `${subject}, ${role}`, role },
        mode: 'oidc',
      })
      expect((await audited('session.started')).at(-1)).toMatchObject({ name: `${subject}, ${role}` })
      expect(await everything(house)).not.toContain(browser.session)
    }
    // Nothing of the provider's tokens is kept anywhere either: they all begin with the same three letters.
    expect(await everything(house)).not.toContain('eyJhbGciOiJSUzI1NiIs')
  })

  test('login sends to the provider with a challenge, a state and a nonce, each new, and tells nobody what they stand for', async () => {
    const browser = browserAt(house)
    const before = provider.asked.length
    const reply = await browser.get('/api/auth/login?returnTo=/agents')
    const [cookie = '', ...copies] = reply.headers.getSetCookie()
    expect(cookie).toMatch(/^__Host-a2a-login=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
    expect(copies).toEqual([cookie.replace(/=(.{8})/, '-$1=$1')])
    const asked = [reply.headers.get('location') ?? '', await browser.login('/agents')].map((url) => new URL(url))
    for (const { origin, searchParams } of asked) {
      expect(origin).toBe(provider.issuer)
      const { state, nonce, code_challenge: challenge, ...rest } = Object.fromEntries(searchParams)
      expect([state, nonce, challenge].every((each) => /^[\w-]{43}$/.test(each ?? ''))).toBe(true)
      expect(rest).toEqual({
        client_id: 'signalbox',
        response_type: 'code',
        scope: 'openid',
        redirect_uri: `${pageOrigin}/api/auth/callback`,
        code_challenge_method: 'S256',
      })
    }
    expect(asked[0]?.searchParams.get('state')).not.toBe(asked[1]?.searchParams.get('state'))
    expect(provider.asked.slice(before).filter((path) => path.includes('.well-known')).length).toBeLessThanOrEqual(1)
    const rows = await everything(house)
    for (const name of ['state', 'nonce']) expect(rows).not.toContain(asked[0]?.searchParams.get(name))
    expect(rows).not.toContain(browser.console_.get(cookieNames.login))
  })

  test('tabs side by side: each ends where it began, whatever the order, and the cookie goes with the last', async () => {
    const browser = browserAt(house)
    const places = ['/tasks', '/agents', '/inbox']
    const tabs: string[] = []
    for (const place of places) tabs.push(await browser.login(place))
    const callbacks: string[] = []
    for (const tab of tabs) callbacks.push(await browser.consent(tab, 'ada'))
    for (const i of [2, 0, 1]) {
      const reply = await browser.get(callbacks[i] ?? '')
      expect([i, reply.status, reply.headers.get('location')]).toEqual([i, 303, pageOrigin + (places[i] ?? '')])
      expect(browser.console_.get(cookieNames.login) === null).toBe(i === 1)
    }
  })

  test('tabs that begin at the same moment, each without the cookie of the other: both end where they began', async () => {
    const browser = browserAt(house)
    const tabs = await Promise.all([browser.login('/tasks'), browser.login('/agents')])
    const callbacks = [await browser.consent(tabs[0], 'ada'), await browser.consent(tabs[1], 'ada')]
    for (const [i, place] of ['/tasks', '/agents'].entries()) {
      const reply = await browser.get(callbacks[i] ?? '')
      expect([reply.status, reply.headers.get('location')]).toEqual([303, pageOrigin + place])
    }
    expect(browser.console_.header).toEqual({ cookie: `${cookieNames.session}=${browser.session ?? ''}` })
  })

  test('however many tabs begin at the same moment, the browser is not given more to bring with each', async () => {
    const browser = browserAt(house)
    const copies = () => browser.console_.header.cookie?.match(/__Host-a2a-login-[\w-]{8}=/g)?.length
    await Promise.all(Array.from({ length: 20 }, () => browser.login('/tasks')))
    expect(copies()).toBe(20)
    const callback = await browser.consent(await browser.login('/agents'), 'ada')
    expect(copies()).toBe(16)
    const reply = await browser.get(callback)
    expect([reply.status, reply.headers.get('location')]).toEqual([303, `${pageOrigin}/agents`])
  })

  test('signing in again changes the session: the old one is over at once and said to be', async () => {
    const browser = browserAt(house)
    await browser.signIn('ben')
    const old = browser.session ?? ''
    const { length } = await audited('session.ended')
    await browser.signIn('ben')
    expect(browser.session).not.toBe(old)
    expect((await browser.get('/api/auth/session')).status).toBe(200)
    browser.console_.set(cookieNames.session, old)
    expect((await browser.get('/api/auth/session')).status).toBe(401)
    expect(await audited('session.ended')).toHaveLength(length + 1)
  })

  test('signing out ends the session, takes both cookies and is audited once', async () => {
    const browser = browserAt(house)
    await browser.signIn('cem')
    const token = browser.session ?? ''
    const { length } = await audited('session.ended')
    const reply = await browser.logout()
    expect(hidden(reply)).toEqual([200, { signedOut: true }])
    expect(reply.headers.getSetCookie()).toEqual([
      `${cookieNames.session}=; Max-Age=0; ${attributes}`,
      `${cookieNames.login}=; Max-Age=0; ${attributes}`,
    ])
    browser.console_.set(cookieNames.session, token)
    expect((await browser.get('/api/auth/session')).status).toBe(401)
    expect((await browser.logout()).status).toBe(401)
    expect((await audited('session.ended')).slice(length)).toEqual([
      { kind: 'session.ended', name: 'cem, viewer', session: expect.any(String) },
    ])
  })

  test('whatever is wrong with a callback, the answer is the same and says nothing', async () => {
    const good = async (subject = 'ada') => {
      const browser = browserAt(house)
      return { browser, url: new URL(await browser.consent(await browser.login(), subject), pageOrigin) }
    }
    const path = ({ pathname, search }: URL) => pathname + search
    const withParameter = (url: URL, name: string, value: string) => {
      const changed = new URL(url)
      changed.searchParams.set(name, value)
      return path(changed)
    }
    const withLogin = (value: string) => async () => {
      const { browser, url } = await good()
      browser.console_.set(cookieNames.login, value)
      return browser.get(path(url))
    }
    const wrong: Record<string, () => Promise<Reply>> = {
      'nothing at all': () => browserAt(house).get('/api/auth/callback'),
      'another browser': async () => browserAt(house).get(path((await good()).url)),
      'a person whom nobody admitted': async () => {
        const { browser, url } = await good('stranger')
        return browser.get(path(url))
      },
      'a refusal of the provider': async () => {
        const { browser, url } = await good('nobody')
        expect(url.searchParams.get('error')).toBe('access_denied')
        return browser.get(path(url))
      },
      'used before': async () => {
        const { browser, url } = await good()
        expect((await browser.get(path(url))).status).toBe(303)
        return browser.get(path(url))
      },
      'another state': async () => {
        const { browser, url } = await good()
        return browser.get(withParameter(url, 'state', 'x'.repeat(43)))
      },
      'two states': async () => {
        const { browser, url } = await good()
        return browser.get(`${path(url)}&state=${url.searchParams.get('state') ?? ''}`)
      },
      'another code': async () => {
        const { browser, url } = await good()
        return browser.get(withParameter(url, 'code', 'x'.repeat(43)))
      },
      "another attempt's code: its nonce and verifier are not this one's": async () => {
        const { browser, url } = await good()
        const other = new URL(await browser.consent(await browser.login(), 'ada'), pageOrigin)
        return browser.get(withParameter(url, 'code', other.searchParams.get('code') ?? ''))
      },
      'another issuer': async () => {
        const { browser, url } = await good()
        return browser.get(withParameter(url, 'iss', 'https://evil.example'))
      },
      'a tampered cookie': withLogin('y'.repeat(43)),
      'an empty cookie': withLogin(''),
      'a cookie that is none': withLogin('%00;evil'),
    }
    for (const [what, come] of Object.entries(wrong)) {
      const reply = await come()
      expect([what, ...hidden(reply)]).toEqual([what, 401, failed])
      expect(reply.headers.getSetCookie().join()).not.toContain(cookieNames.session)
    }
  })

  test('a callback that fails leaves the session that there is, and the attempts of other tabs', async () => {
    const browser = browserAt(house)
    await browser.signIn('ada')
    const tab = await browser.login('/agents')
    expect((await browser.get(`/api/auth/callback?code=1&state=${'z'.repeat(43)}`)).status).toBe(401)
    expect((await browser.get('/api/auth/session')).status).toBe(200)
    expect((await browser.get(await browser.consent(tab, 'ada'))).status).toBe(303)
  })

  test('of two callbacks that come at once, one gets the attempt', async () => {
    const browser = browserAt(house)
    const path = await browser.consent(await browser.login(), 'ada')
    const cookie = browser.console_.header
    const both = await Promise.all([house.api.get(path, cookie), house.api.get(path, cookie)])
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 401])
  })

  test('a membership that was taken back does not get in, and one of another organization never did', async () => {
    const elsewhere = await startSignIn({
      database: house.db,
      provider,
      system: { works: false },
      rules: { organization: 'elsewhere' },
    })
    onTestFinished(() => elsewhere.close())
    expect(hidden(await browserAt(elsewhere).signIn('ada'))).toEqual([401, failed])
    const browser = browserAt(house)
    await browser.signIn('ada')
    browser.url = elsewhere.url
    expect((await browser.get('/api/auth/session')).status).toBe(401)
  })
})

/** Every row of every table that sign-in writes, and of the audit trail, as text. */
const everything = async ({ db }: SignInConsole): Promise<string> => {
  const rows = await Promise.all(
    [
      sql.unsafe`select * from session`,
      sql.unsafe`select * from sign_in_attempt`,
      sql.unsafe`select * from person`,
      sql.unsafe`select * from membership`,
      sql.unsafe`select * from audit`,
      sql.unsafe`select * from rate_window`,
    ].map((query) => db.pool.any(query)),
  )
  return JSON.stringify(rows)
}
