/** A provider that is away, slow, changed, or lies; and attempts and sessions whose time is over. */
import { request, type IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createHash } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { cookieNames } from '../../http/cookies.ts'
import { Client } from '../support/api.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { pageOrigin } from '../support/people.ts'
import { client, SignInBrowser, TestProvider } from '../support/provider.ts'
import { startSignIn, type SignInConsole, type SignInOptions } from '../support/sign-in.ts'

const failed = { error: { message: 'Sign-in failed. Start a new sign-in attempt.' } }
const unavailable = { error: { message: 'Sign-in service unavailable.' } }
const minuteMs = 60_000

let fresh: FreshDatabase
beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
})
afterAll(() => fresh.close())

const startProvider = async (): Promise<TestProvider> => {
  const provider = await TestProvider.start({ origins: [pageOrigin], subjects: ['ada'] })
  onTestFinished(() => provider.stop())
  return provider
}

interface Clock {
  ms: number
}
/** A console whose clocks a test sets, and a browser before it. */
async function open(provider: TestProvider, options: Partial<SignInOptions> = {}) {
  const clock: Clock = { ms: 0 }
  const began = Date.now()
  const time = { now: () => new Date(began + clock.ms), monotonic: () => clock.ms }
  const house = await startSignIn({ database: fresh.db, provider, system: { works: false }, time, ...options })
  onTestFinished(() => house.close())
  await house.admit('ada', 'admin')
  const browser = new SignInBrowser(provider, pageOrigin, house.url)
  onTestFinished(() => browser.close())
  return { house, browser, clock }
}
/** As a browser's address bar asks, which no fetch may claim to be. */
const navigate = (url: string) =>
  new Promise<{ status: number | undefined; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
    request(url, { headers: { 'sec-fetch-mode': 'navigate' } }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }))
    })
      .on('error', reject)
      .end()
  })
const login = async ({ url }: SignInConsole) => {
  const { status, body } = await new Client(url).get('/api/auth/login')
  return [status, body]
}

describe('the provider', () => {
  test('away: 503 at login, asked again after ten seconds, and those who are signed in stay so', async () => {
    const provider = await startProvider()
    const { house, browser, clock } = await open(provider)
    await browser.signIn('ada')
    await provider.stop()
    clock.ms += 5 * minuteMs
    expect(await login(house)).toEqual([503, unavailable])
    expect((await browser.get('/api/auth/session')).status).toBe(200)
    await provider.restart()
    expect(await login(house)).toEqual([503, unavailable])
    clock.ms += 10_000
    expect((await browser.signIn('ada')).status).toBe(303)
    expect(house.told.at(-1)?.message).toBe('the identity provider could not be discovered')
  })

  test('away between redirect and callback: the attempt fails like any other, the next one works', async () => {
    const provider = await startProvider()
    const { house, browser } = await open(provider)
    const path = await browser.consent(await browser.login(), 'ada')
    await provider.stop()
    const reply = await browser.get(path)
    expect([reply.status, reply.body]).toEqual([401, failed])
    await provider.restart()
    expect((await browser.signIn('ada')).status).toBe(303)
    expect(house.told.map(({ message }) => message)).toEqual(['a sign-in failed'])
  })

  test('is asked about itself once in five minutes, however many come', async () => {
    const provider = await startProvider()
    const { house, clock } = await open(provider)
    const asked = () => provider.asked.filter((path) => path.includes('.well-known')).length
    await Promise.all(Array.from({ length: 10 }, () => login(house)))
    expect(asked()).toBe(1)
    clock.ms += 5 * minuteMs - 1
    await login(house)
    expect(asked()).toBe(1)
    clock.ms += 1
    await login(house)
    expect(asked()).toBe(2)
  })

  test('changes its keys, also between redirect and callback: nobody notices', async () => {
    const provider = await startProvider()
    const { browser } = await open(provider)
    expect((await browser.signIn('ada')).status).toBe(303)
    const tab = await browser.login()
    await provider.rotateKeys()
    expect((await browser.get(await browser.consent(tab, 'ada'))).status).toBe(303)
    await provider.rotateKeys()
    expect((await browser.signIn('ada')).status).toBe(303)
  })

  test('names itself otherwise than the configuration does: 503, a page for people, and the log says why', async () => {
    const provider = await startProvider()
    const { house } = await open(provider, { issuer: `${provider.issuer}/` })
    expect(await login(house)).toEqual([503, unavailable])
    const page = await navigate(`${house.url}/api/auth/login?returnTo=/tasks/1%3Ftab%3D%22log`)
    expect(page).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1', 'content-type': 'text/html; charset=utf-8' },
    })
    expect(page.text).toContain('<a href="/api/auth/login?returnTo=%2Ftasks%2F1%3Ftab%3D%2522log">Start again</a>')
    expect(house.told.at(-1)?.fields.reason).toBe('The provider names itself otherwise than A2A_OIDC_ISSUER does.')
  })
})

describe('time', () => {
  test('an attempt is over after ten minutes', async () => {
    const { browser, clock } = await open(await startProvider())
    const [early, late] = [await browser.login(), await browser.login()]
    clock.ms += 10 * minuteMs - 1
    expect((await browser.get(await browser.consent(early, 'ada'))).status).toBe(303)
    clock.ms += 1
    const reply = await browser.get(await browser.consent(late, 'ada'))
    expect([reply.status, reply.body]).toEqual([401, failed])
  })

  test('a session ends when its seconds are over, whatever happened between', async () => {
    const { browser, clock } = await open(await startProvider(), { rules: { sessionSeconds: 120 } })
    await browser.signIn('ada')
    for (let each = 0; each < 4; each++) {
      expect((await browser.get('/api/auth/session')).status).toBe(200)
      clock.ms += minuteMs / 2
    }
    expect((await browser.get('/api/auth/session')).status).toBe(401)
  })

  test('with an idle limit a session ends when nobody used it so long, to a tenth', async () => {
    const { house, browser, clock } = await open(await startProvider(), { rules: { idleSeconds: 100 } })
    await browser.signIn('ada')
    const token = browser.session ?? ''
    for (let each = 0; each < 5; each++) {
      clock.ms += 89_000
      expect((await browser.get('/api/auth/session')).status).toBe(200)
    }
    // Looking, as an open stream does, is no use.
    clock.ms += 89_000
    expect(await house.sessions.look(token)).not.toBeNull()
    clock.ms += 11_000
    expect(await house.sessions.look(token)).toBeNull()
    expect((await browser.get('/api/auth/session')).status).toBe(401)
  })

  test('an attempt that was sealed under another key fails', async () => {
    const provider = await startProvider()
    const { browser } = await open(provider)
    const rekeyed = await open(provider, { flowKey: 'a'.repeat(64) })
    const path = await browser.consent(await browser.login(), 'ada')
    browser.url = rekeyed.house.url
    expect((await browser.get(path)).status).toBe(401)
    expect(rekeyed.house.told.at(-1)?.fields.reason).toBe('the attempt was sealed with another key')
  })
})

/** A provider that answers what a test says: its tokens, and its document. */
async function lyingProvider(tls: TestProvider) {
  const lies: {
    token: (claims: JWTPayload) => Promise<string>
    document: 'good' | 'redirect' | 'silent' | 'large' | 'without a way in'
  } = {
    token: () => Promise.resolve(''),
    document: 'good',
  }
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  let nonce = ''
  const server = createServer({ key: tls.key, cert: tls.certificate }, (request, response) => {
    const answer = (body: object) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
    const { pathname } = new URL(request.url ?? '/', issuer)
    if (pathname === '/token') {
      const now = Math.floor(Date.now() / 1000)
      const claims = { iss: issuer, sub: 'ada', aud: client.id, nonce, iat: now, exp: now + 60 }
      void lies
        .token(claims)
        .then((token) => answer({ access_token: 'an access token', token_type: 'Bearer', id_token: token }))
    } else if (pathname === '/jwks')
      void exportJWK(publicKey).then((jwk) => answer({ keys: [{ ...jwk, kid: 'k', alg: 'RS256', use: 'sig' }] }))
    else if (lies.document === 'redirect') response.writeHead(302, { location: `${issuer}/elsewhere` }).end()
    else if (lies.document === 'large') response.end('{'.padEnd(2 * 1024 * 1024))
    else if (lies.document !== 'silent')
      answer({
        issuer,
        ...(lies.document === 'good' ? { authorization_endpoint: `${issuer}/auth` } : {}),
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `https://localhost:${(server.address() as AddressInfo).port}`
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })
  const signed = (claims: JWTPayload, key = privateKey) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'k' }).sign(key)
  return { issuer, lies, signed, hears: (value: string) => void (nonce = value) }
}

describe('a provider that lies', () => {
  test('a token is what was asked for, of this issuer, for us, now, and signed with its key; else the same 401', async () => {
    const tls = await startProvider()
    const { issuer, lies, signed, hears } = await lyingProvider(tls)
    const { house, browser } = await open(tls, { issuer })
    await house.admit('ada', 'admin', issuer)
    const stranger = await generateKeyPair('RS256')
    const unsigned = (claims: JWTPayload) =>
      [{ alg: 'none' }, claims].map((each) => Buffer.from(JSON.stringify(each)).toString('base64url')).join('.')
    const hmac = new TextEncoder().encode(client.secret)
    const tampered = async (claims: JWTPayload) => {
      const [head, , signature] = (await signed(claims)).split('.')
      const body = Buffer.from(JSON.stringify({ ...claims, sub: 'mallory' })).toString('base64url')
      return [head, body, signature].join('.')
    }
    const tokens: Record<string, (claims: JWTPayload) => Promise<string>> = {
      'as it should be': (claims) => signed(claims),
      'another nonce': (claims) => signed({ ...claims, nonce: 'x' }),
      'no nonce': ({ nonce: _, ...claims }) => signed(claims),
      'another audience': (claims) => signed({ ...claims, aud: 'another' }),
      'another issuer': (claims) => signed({ ...claims, iss: `${issuer}/` }),
      'over for long': (claims) => signed({ ...claims, iat: 1, exp: 2 }),
      'another key': (claims) => signed(claims, stranger.privateKey),
      'no signature': (claims) => Promise.resolve(`${unsigned(claims)}.`),
      'a symmetric signature': (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(hmac),
      'another person than was signed': tampered,
      'a person whom no database could name': (claims) => signed({ ...claims, sub: 'ada\0' }),
      'no token': () => Promise.resolve('nonsense'),
    }
    for (const [what, token] of Object.entries(tokens)) {
      lies.token = token
      const asked = new URL(await browser.login()).searchParams
      hears(asked.get('nonce') ?? '')
      const reply = await browser.get(`/api/auth/callback?code=a-code&state=${asked.get('state') ?? ''}`)
      expect([what, reply.status]).toEqual([what, what === 'as it should be' ? 303 : 401])
      if (reply.status === 401) expect(reply.body).toEqual(failed)
    }
  })

  test.each(['redirect', 'silent', 'large', 'without a way in'] as const)(
    'a document that is %s: 503 within the limit',
    async (document) => {
      const tls = await startProvider()
      const liar = await lyingProvider(tls)
      liar.lies.document = document
      const { house } = await open(tls, { issuer: liar.issuer })
      expect(await login(house)).toEqual([503, unavailable])
    },
  )
})

test('a session cookie opens nothing by its hash, nor by anything but itself', async () => {
  const { house, browser } = await open(await startProvider())
  await browser.signIn('ada')
  const token = browser.session ?? ''
  const hash = createHash('sha256').update(token).digest('base64url')
  for (const [value, status] of [
    [token, 200],
    [hash, 401],
    [`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`, 401],
    [`${token}A`, 401],
    ['', 401],
    [`"${token}"`, 401],
  ] as const) {
    const reply = await house.api.get('/api/auth/session', { cookie: `a=b; ${cookieNames.session}=${value}; c=d` })
    expect([value === token ? 'itself' : value, reply.status]).toEqual([value === token ? 'itself' : value, status])
  }
})
