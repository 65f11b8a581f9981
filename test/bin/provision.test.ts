/** `auth:provision` as an operator runs it, and the people it admits at a console process behind a real provider. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { cookieNames } from '../../http/cookies.ts'
import { spawnConsole, type SpawnedConsole, type SpawnOptions } from '../support/console.ts'
import { freshDatabase } from '../support/databases.ts'
import { pageOrigin } from '../support/people.ts'
import { client, SignInBrowser, TestProvider } from '../support/provider.ts'
import { bareEnvironment, childArgs } from '../support/child.ts'

const script = fileURLToPath(new URL('../../bin/provision.ts', import.meta.url))
const organization = 'acme'
const flowKey = 'ab'.repeat(32)
let provider: TestProvider
let folder: string
beforeAll(async () => {
  provider = await TestProvider.start({ origins: [pageOrigin], subjects: ['ada|1', 'ben'] })
  folder = mkdtempSync(join(tmpdir(), 'signalbox-provision-'))
  writeFileSync(join(folder, 'authority.pem'), provider.certificate)
})
afterAll(async () => {
  await provider.stop()
  rmSync(folder, { recursive: true })
})

type Environment = Readonly<Record<string, string>>
const provisioning = (): Environment => ({
  A2A_OIDC_ISSUER: provider.issuer,
  A2A_AUTH_ORGANIZATION_SLUG: organization,
})

function run(env: Environment, ...args: string[]) {
  return new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(
      process.execPath,
      childArgs(script, ...args),
      { env: { ...bareEnvironment(), ...env } },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    )
  })
}
const of = (subject: string, slug = organization) => [
  '--issuer',
  provider.issuer,
  '--subject',
  subject,
  '--organization',
  slug,
]
const as = (name: string, role: string) => ['--name', name, '--role', role]

async function serve(database: SpawnOptions['database'], dataDirectory: string): Promise<SpawnedConsole> {
  const house = await spawnConsole({
    database,
    dataDirectory,
    env: {
      ...provisioning(),
      NODE_ENV: 'production',
      A2A_AUTO_MIGRATE: 'true',
      A2A_AUTH_MODE: 'oidc',
      A2A_OIDC_CLIENT_ID: client.id,
      A2A_OIDC_CLIENT_SECRET: client.secret,
      A2A_AUTH_FLOW_KEY: flowKey,
      A2A_AUTH_ORIGIN: pageOrigin,
      A2A_LOG_LEVEL: 'trace',
      NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem'),
    },
  })
  onTestFinished(async () => void (await house.stop()))
  return house
}
const browserAt = (house: SpawnedConsole): SignInBrowser => {
  const browser = new SignInBrowser(provider, pageOrigin, house.url)
  onTestFinished(() => browser.close())
  return browser
}

describe('on the embedded database', () => {
  it('admits before the first start, and never while a console has the database', async () => {
    const data = join(folder, 'embedded')
    const env = { ...provisioning(), A2A_DATA_DIR: data }
    const admitted = await run(env, ...of('ada|1'), ...as('Ada', 'admin'), '--offline-pglite')
    expect(admitted).toMatchObject({ code: 0, err: '' })
    expect(admitted.out).toMatch(/^Provisioned Ada as admin of acme: membership [0-9a-f-]{36}\.\n$/)
    const house = await serve('pglite', data)
    const browser = browserAt(house)
    expect((await browser.signIn('ada|1', '/agents')).headers.get('location')).toBe(`${pageOrigin}/agents`)
    const session = { user: { displayName: 'Ada', role: 'admin' }, mode: 'oidc' }
    expect((await browser.get('/api/auth/session')).body).toEqual(session)
    expect((await browserAt(house).signIn('ben')).status).toBe(401)
    const late = await run(env, ...of('ben'), ...as('Ben', 'viewer'), '--offline-pglite')
    expect(late).toMatchObject({ code: 1, out: '', err: expect.stringContaining('is in use by another process') })
    // What the process said, at its most talkative, and what it keeps holds no secret of anybody's; nor any token's beginning
    // what it said: kept is what one sign-in sealed.
    await house.stop()
    const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
    const kept = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
    expect(kept.some((text) => text.includes('ada|1'))).toBe(true)
    for (const secret of [client.secret, flowKey, browser.session ?? cookieNames.session])
      expect([house.output(), ...kept].filter((text) => text.includes(secret))).toEqual([])
    expect(house.output()).not.toContain('eyJ')
    expect(house.output()).toContain('no enabled membership has this issuer and subject')
  })
})

describe('on PostgreSQL', () => {
  it('admits, changes and takes back while the console runs', async () => {
    const fresh = await freshDatabase('postgresql')
    onTestFinished(() => fresh.close())
    if (fresh.profile.kind !== 'postgresql') throw new Error('This is about PostgreSQL.')
    const { profile } = fresh
    const env = { ...provisioning(), A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: profile.url }
    const house = await serve(profile, join(folder, 'beside'))
    const browser = browserAt(house)
    const session = async () => (await browser.get('/api/auth/session')).body
    expect((await browser.signIn('ben')).status).toBe(401)
    expect((await run(env, ...of('ben'), ...as('Ben', 'viewer'))).code).toBe(0)
    expect((await browser.signIn('ben')).status).toBe(303)
    expect(await session()).toEqual({ user: { displayName: 'Ben', role: 'viewer' }, mode: 'oidc' })
    expect((await run(env, ...of('ben'), ...as('Benjamin', 'operator'))).code).toBe(0)
    expect(await session()).toEqual({ user: { displayName: 'Benjamin', role: 'operator' }, mode: 'oidc' })
    expect((await run(env, 'disable', ...of('ben'))).out).toMatch(/^Disabled membership [0-9a-f-]{36} of acme;/)
    expect((await browser.get('/api/auth/session')).status).toBe(401)
    expect(await run(env, 'disable', ...of('ben'))).toMatchObject({ code: 1, out: '' })
    const rows = await fresh.db.pool.any(
      sql.type(z.object({ kind: z.string(), actorType: z.string(), data: z.looseObject({}) }))`
        select a.kind, a.actor_type as "actorType", a.data from audit a
        join organization o on o.id = a.organization_id where o.slug = ${organization} order by a.at, a.id`,
    )
    const identity = { issuer: provider.issuer, subject: 'ben' }
    expect(rows).toEqual([
      { kind: 'identity.provisioned', actorType: 'system', data: { ...identity, role: 'viewer' } },
      { kind: 'session.started', actorType: 'user', data: { session: expect.any(String) } },
      { kind: 'identity.provisioned', actorType: 'system', data: { ...identity, role: 'operator' } },
      { kind: 'access.revoked', actorType: 'system', data: { ...identity, sessions: 1 } },
    ])
  })
})

it('says what it takes before it opens anything', async () => {
  const env = { ...provisioning(), A2A_DATA_DIR: join(folder, 'never-made') }
  const wrong = async (...args: string[]) => {
    const { code, out, err } = await run(env, ...args)
    expect([code, out]).toEqual([1, ''])
    return err.split('\n')[0]
  }
  const usage = expect.stringMatching(/^Usage: provision --issuer/)
  const good = [...of('ada|1'), ...as('Ada', 'admin')]
  expect(await run({}, 'disable', '--help')).toMatchObject({ code: 0, out: usage, err: '' })
  expect(await wrong()).toEqual(usage)
  expect(await wrong(...good, '--email', 'a@b.example')).toEqual(usage)
  expect(await wrong('disable', ...good)).toEqual(usage)
  expect(await wrong(...good)).toBe(
    'The embedded database is changed offline: stop the console and pass --offline-pglite.',
  )
  expect(await wrong(...good, '--role', 'owner')).toBe('--role must be admin, operator or viewer.')
  expect(await wrong(...good, '--issuer', `${provider.issuer}/`)).toBe('--issuer must equal A2A_OIDC_ISSUER.')
  expect(await wrong(...of('ada|1', 'acme-2'), ...as('Ada', 'admin'))).toBe(
    '--organization must equal A2A_AUTH_ORGANIZATION_SLUG.',
  )
  expect((await run({ A2A_OIDC_ISSUER: provider.issuer }, ...good)).err).toBe(
    'A2A_AUTH_ORGANIZATION_SLUG is required by auth:provision.\n',
  )
})
