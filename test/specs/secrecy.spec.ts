/**
 * Secrets stay where they belong: planted ones of all four kinds are used, refused, replaced and revoked behind an agent that
 * shows what it was called with; then everything the console wrote or said is searched for them.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { revokeBinding, storeBinding } from '../../actors/credential-changes.ts'
import { Outbound } from '../../actors/outbound.ts'
import { Vault, type KeyRing } from '../../actors/vault.ts'
import type { Credential } from '../../domain/credential.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { openAuthority, type Authority, type KeyPair } from '../support/certificates.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { eitherDatabase, freshDatabase } from '../support/databases.ts'
import { migratedDump } from '../support/migrated-dump.ts'
import { startGate, type Gate, type Visit } from '../support/peers/gate.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startTokenEndpoint, type TokenEndpoint } from '../support/peers/token-endpoint.ts'

const ring: KeyRing = { keys: { k1: randomBytes(32).toString('hex') }, activeKey: 'k1' }
const policy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] } as const
const planted = (name: string): string => `planted-${name}-${randomBytes(16).toString('hex')}`

/** What an embedded database's files hold is also searched behind a process of its own (test/bin/credentials.test.ts). */
describe.each(eitherDatabase)('secrets on %s', (kind) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-secrecy-'))
  const dataDir = join(folder, 'pglite')
  const clientSecret = planted('client-secret')
  let authority: Authority
  let tls: KeyPair
  let db: Database
  let close: () => Promise<void>
  let peer: RawPeer
  let tokens: TokenEndpoint
  let house: TestConsole
  const gates: Gate[] = []
  const answers: string[] = []
  const secrets: string[] = [clientSecret, ring.keys['k1'] ?? '']

  beforeAll(async () => {
    authority = await openAuthority()
    tls = await authority.server()
    if (kind === 'pglite') {
      db = await openDatabase({ kind, dataDir, template: await migratedDump() })
      close = () => db.close()
    } else ({ db, close } = await freshDatabase(kind))
    peer = await startRawPeer()
    tokens = await startTokenEndpoint({ tls, clientId: 'signalbox', clientSecret, lifeSeconds: 600 })
    const outbound = new Outbound(policy, { ca: [authority.ca] })
    house = await startConsole({
      database: db,
      system: { vault: ring, outbound, artifactDirectory: join(folder, 'artifacts') },
    })
  })
  afterAll(async () => {
    await close()
    await Promise.all([peer.close(), tokens.close(), ...gates.map((gate) => gate.close())])
    rmSync(folder, { recursive: true })
  })

  /** Everything that a person can read of the agent and of what was sent to it, kept as it came. */
  const readAll = async (agentId: string, commandId: string): Promise<void> => {
    const paths = [
      '/api/agents',
      '/api/answering-agents',
      `/api/agents/${agentId}`,
      `/api/commands/${commandId}`,
      '/api/tasks',
      '/api/audit',
      '/api/admin/security',
    ]
    for (const path of paths) answers.push(JSON.stringify(await house.api.get(path)))
  }
  const sendTo = async (agentId: string): Promise<string | null> => {
    const { id } = await house.send(agentId, { text: 'called with {{shown}}' })
    const { status, error } = await house.finished(id)
    await readAll(agentId, id)
    return status === 'succeeded' ? null : error
  }

  const kinds: [string, () => Promise<Credential>][] = [
    ['bearer', async () => ({ type: 'bearer', token: planted('token') })],
    ['apiKey', async () => ({ type: 'apiKey', name: 'X-Agent-Key', value: planted('key') })],
    [
      'oauthClient',
      async () => ({
        type: 'oauthClient',
        issuer: tokens.issuer,
        tokenEndpoint: tokens.url,
        clientId: 'signalbox',
        clientSecret,
      }),
    ],
    ['mtls', async () => ({ type: 'mtls', ...(await authority.client('console')), ca: authority.ca })],
  ]

  test.each(kinds)('%s is used, refused, replaced and revoked', async (name, plant) => {
    let refuses = false
    const admits = ({ operation }: Visit) => (refuses && operation === 'SendMessage' ? 401 : 200)
    const gate = await startGate(peer, { tls, admits, ...(name === 'mtls' ? { clientAuthority: authority.ca } : {}) })
    gates.push(gate)
    const agentId = await house.api.register(gate.cardUrl)
    const target = { organizationId: house.viewer.organizationId, agentId }
    const vault = new Vault(ring)
    for (const round of ['first', 'replaced']) {
      const credential = await plant()
      secrets.push(...secretsOf(credential))
      await storeBinding(db, vault, target, { origins: [gate.origin], credential }, new Date().toISOString())
      expect(await sendTo(agentId), round).toBeNull()
      refuses = true
      expect(await sendTo(agentId), round).toBe('Protected agent operation failed.')
      refuses = false
    }
    if (name === 'oauthClient') {
      tokens.mood = 'fails'
      await storeBinding(
        db,
        vault,
        target,
        { origins: [gate.origin], credential: await plant() },
        new Date().toISOString(),
      )
      expect(await sendTo(agentId)).toBe('Agent OAuth credentials unavailable.')
    }
    await revokeBinding(db, target, new Date().toISOString())
    expect(await sendTo(agentId)).toBe('Agent credentials are disabled.')
  })

  test('and none of them is anywhere', async () => {
    const all = [...secrets, ...tokens.tokens]
    expect(all.length).toBeGreaterThanOrEqual(10)
    const said = [...answers, JSON.stringify(house.lines), ...house.log.lines()]
    const written = await dumped(db)
    // The agent did show them, and the console did store what it said: what was searched for could have been found.
    expect(written.join('')).toMatch(/called with \*+/)
    await house.close()
    await close()
    close = () => Promise.resolve()
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
    if (kind === 'pglite') expect(files.length).toBeGreaterThan(500)
    const stored = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
    const forms = all.flatMap((secret) => [secret, Buffer.from(secret).toString('base64').slice(0, -4)])
    const leaks = forms.filter((form) => [...said, ...written, ...stored].some((text) => text.includes(form)))
    expect(leaks).toEqual([])
  })
})

/** The lines of a PEM, which a file may hold without the others. */
const linesOf = (pem: string): string[] =>
  pem.split('\n').filter((line) => line.length >= 32 && !line.startsWith('-----'))

function secretsOf(credential: Credential): string[] {
  if (credential.type === 'bearer') return [credential.token]
  if (credential.type === 'apiKey') return [credential.value]
  return credential.type === 'mtls' ? linesOf(credential.key) : []
}

/** Every row of every table, as text. */
const dumped = (db: Database): Promise<string[]> =>
  db.raw(async (client) => {
    const names = await client.query<{ name: string }>(
      `select quote_ident(tablename) as name from pg_tables where schemaname = 'public' order by 1`,
    )
    const rows: string[] = []
    for (const { name } of names.rows) {
      const found = await client.query<{ row: string }>(`select t::text as row from ${name} t`)
      rows.push(...found.rows.map(({ row }) => row))
    }
    return rows
  })
