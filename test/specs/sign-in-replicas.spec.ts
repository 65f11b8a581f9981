/** Two replicas on one database: one sign-in across both, one set of sessions, one count of everybody's requests. */
import { sql } from 'slonik'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { cookieNames } from '../../http/cookies.ts'
import { Client } from '../support/api.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { pageOrigin } from '../support/people.ts'
import { SignInBrowser, TestProvider } from '../support/provider.ts'
import { startSignIn, type SignInConsole } from '../support/sign-in.ts'

let provider: TestProvider
let fresh: FreshDatabase
let other: Database
let replicas: readonly [SignInConsole, SignInConsole]
beforeAll(async () => {
  provider = await TestProvider.start({ origins: [pageOrigin], subjects: ['ada', 'ben'] })
  fresh = await freshDatabase('postgresql')
  other = await openDatabase(fresh.profile)
  const system = { works: false }
  replicas = [
    await startSignIn({ database: fresh.db, provider, system }),
    await startSignIn({ database: other, provider, system }),
  ]
  await replicas[0].admit('ada', 'admin')
  await replicas[0].admit('ben', 'viewer')
})
afterAll(async () => {
  for (const replica of replicas) await replica.close()
  await other.close()
  await fresh.close()
  await provider.stop()
})

const browser = (): SignInBrowser => {
  const made = new SignInBrowser(provider, pageOrigin, replicas[0].url)
  onTestFinished(() => made.close())
  return made
}
/** A window that is not over while the test runs. */
const count = (bucket: string, taken: number) =>
  fresh.db.pool.query(sql.unsafe`
    insert into rate_window (bucket, starts_at, taken) values (${bucket}, now() + interval '1 minute', ${taken})
    on conflict (bucket) do update set starts_at = excluded.starts_at, taken = excluded.taken`)

test('begun at one, completed at the other, good at both, and over at both', async () => {
  const ada = browser()
  const location = await ada.login('/agents')
  ada.url = replicas[1].url
  const reply = await ada.get(await ada.consent(location, 'ada'))
  expect(reply.headers.get('location')).toBe(`${pageOrigin}/agents`)
  const token = ada.session ?? ''
  for (const { url } of replicas) {
    ada.url = url
    expect((await ada.get('/api/auth/session')).status).toBe(200)
  }
  expect((await ada.logout()).status).toBe(200)
  ada.console_.set(cookieNames.session, token)
  for (const { url } of replicas) {
    ada.url = url
    expect((await ada.get('/api/auth/session')).status).toBe(401)
  }
})

test('what ends at one replica ends what is open at the other, at once', async () => {
  const ben = browser()
  await ben.signIn('ben')
  const signals = await new Client(replicas[1].url).stream('/api/tasks/events', undefined, ben.console_.header)
  await signals.until('ready')
  const startedAt = performance.now()
  expect((await ben.logout()).status).toBe(200)
  await signals.rest()
  // A stream that is told nothing asks after fifteen seconds of silence.
  expect(performance.now() - startedAt).toBeLessThan(10_000)
})

test('a person has their places once, whichever replica is asked, and somebody else has their own', async () => {
  const [ada, ben] = [browser(), browser()]
  await ada.signIn('ada')
  await ben.signIn('ben')
  const viewer = await replicas[0].sessions.look(ada.session ?? '')
  await count(`read/${viewer?.userId ?? ''}`, 900 - 25)
  const answers = await Promise.all(
    replicas.flatMap(({ url }) =>
      Array.from({ length: 20 }, () => new Client(url).get('/api/auth/session', ada.console_.header)),
    ),
  )
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(25)
  expect(refused).toHaveLength(15)
  expect(refused[0]?.body).toEqual({ error: { message: 'Too many requests. Try again shortly.' } })
  expect(refused[0]?.headers.get('retry-after')).toBe('60')
  expect((await ben.get('/api/auth/session')).status).toBe(200)
})

test('a stream takes a place when it opens: beyond the 900th read of a person none does, and somebody else’s opens', async () => {
  const [ada, ben] = [browser(), browser()]
  await ada.signIn('ada')
  await ben.signIn('ben')
  const viewer = await replicas[0].sessions.look(ada.session ?? '')
  await count(`read/${viewer?.userId ?? ''}`, 899)
  const open = async ({ console_ }: SignInBrowser) => {
    const stream = await replicas[1].api.stream('/api/tasks/events', undefined, console_.header)
    onTestFinished(() => stream.cancel())
    return stream
  }
  const last = await open(ada)
  await last.until('ready')
  const refused = await open(ada)
  expect([refused.response.status, refused.response.headers.get('retry-after')]).toEqual([429, '60'])
  await (await open(ben)).until('ready')
  // What is open stays open, and costs no more places.
  await replicas[0].api.post(
    '/api/agents',
    { cardUrl: 'http://127.0.0.1:9/card.json' },
    { ...ada.console_.header, origin: pageOrigin },
  )
  await last.until('freshness')
})

test('401, 403, 429, the origin, in this order', async () => {
  const [ada, ben] = [browser(), browser()]
  await ada.signIn('ada')
  await ben.signIn('ben')
  const viewer = await replicas[0].sessions.look(ada.session ?? '')
  await count(`operate/${viewer?.userId ?? ''}`, 119)
  const post = async (headers: Record<string, string>) =>
    (await replicas[0].api.post('/api/agents/x/commands', '{ broken', headers)).status
  const evil = { origin: 'https://evil.example' }
  expect(await post(evil)).toBe(401)
  expect(await post({ ...ben.console_.header, ...evil })).toBe(403)
  expect(await post({ ...ada.console_.header, ...evil })).toBe(403)
  // The one that was refused for its origin had the last place.
  expect(await post({ ...ada.console_.header, ...evil })).toBe(429)
  expect(await post({ ...ada.console_.header, origin: pageOrigin })).toBe(429)
})

test.each(['login', 'callback'])('%s: 240 of all callers together', async (route) => {
  await count(route, 230)
  const answers = await Promise.all(
    replicas.flatMap(({ api }) => Array.from({ length: 10 }, () => api.get(`/api/auth/${route}`))),
  )
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.length - refused.length).toBe(10)
  expect(refused[0]?.body).toEqual({ error: { message: 'Too many sign-in requests.' } })
})
