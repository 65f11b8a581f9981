/**
 * `security:credentials` as an operator runs it: what it takes, what it says, and that failures say nothing; and a console that
 * uses what was stored, of which neither what it says nor any of its files holds a secret.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { resealAll } from '../../actors/credential-changes.ts'
import { reportMissingKeys, Vault, type SealContext, type Sealed } from '../../actors/vault.ts'
import { lockDataDirectory } from '../../bin/directory-lock.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { Client } from '../support/api.ts'
import { openAuthority } from '../support/certificates.ts'
import { bareEnvironment, childArgs } from '../support/child.ts'
import { spawnConsole } from '../support/console.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { migratedDump } from '../support/migrated-dump.ts'
import { capturedLog } from '../support/system.ts'
import { isLong } from '../support/pass.ts'
import { startGate, type Gate, type Visit } from '../support/peers/gate.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const script = fileURLToPath(new URL('../../bin/credentials.ts', import.meta.url))
const ids = {
  organization: '0190d9f0-0000-7000-8000-000000000001',
  agent: '0190d9f0-0000-7000-8000-000000000002',
  removed: '0190d9f0-0000-7000-8000-000000000003',
}
const secret = 'a-secret-of-the-operator'
const binding = JSON.stringify({ origins: ['https://agent.example'], credential: { type: 'bearer', token: secret } })
const keys = { k1: '11'.repeat(32), k2: '22'.repeat(32) }
const generic = { code: 1, out: '', err: 'Credential operation failed.\n' }

function run(env: Record<string, string>, args: readonly string[], input = ''): Promise<object> {
  const child = spawn(process.execPath, childArgs(script, ...args), { env: { ...bareEnvironment(), ...env } })
  const said = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()))
  // A script that does not read its stdin to the end has its reasons.
  child.stdin.on('error', () => child.stdin.destroy())
  child.stdin.end(input)
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, ...said })))
}

async function furnish(db: Database, slug: string, origin = 'https://agent.example'): Promise<void> {
  await db.raw(async (client) => {
    await client.query('insert into organization (id, slug, name) values ($1, $2, $2)', [ids.organization, slug])
    for (const [id, enabled] of [
      [ids.agent, true],
      [ids.removed, false],
    ])
      await client.query(
        `insert into agent (id, organization_id, card_url, source, name, enabled) values ($1, $2, $3, 'managed', 'agent', $4)`,
        [id, ids.organization, `${origin}/.well-known/${enabled ? 'agent-card' : 'removed'}.json`, enabled],
      )
  })
}

const stateQuery = 'select kind, enabled, version, key_id, sealed from credential'
const rowsOf = (db: Database, statement: string) => db.raw(async (client) => (await client.query(statement)).rows)

const generated = { vaultKeys: { g1: keys.k1 }, activeVaultKey: 'g1' }
const ring = { A2A_VAULT_KEYS: JSON.stringify({ k1: keys.k1 }), A2A_VAULT_ACTIVE_KEY: 'k1' }
const to = ['--organization', 'house', '--agent', ids.agent]

/** Seals 120 texts under the second key, and then the process ends. */
class StoppedVault extends Vault {
  #seals = 0
  constructor() {
    super({ keys, activeKey: 'k2' })
  }
  override seal(context: SealContext, text: string): Promise<Sealed> {
    this.#seals += 1
    if (this.#seals > 120) throw new Error('The run was stopped.')
    return super.seal(context, text)
  }
}

/** Somebody stores another secret for the first agent, between its being read and its being written. */
class OvertakenVault extends Vault {
  readonly #db: Database
  agentId: string | null = null
  constructor(db: Database) {
    super({ keys, activeKey: 'k2' })
    this.#db = db
  }
  override async seal(context: SealContext, text: string): Promise<Sealed> {
    if (this.agentId === null) {
      this.agentId = context.agentId
      const { sealed, keyId } = await super.seal(context, 'stored meanwhile')
      await this.#db.raw((client) =>
        client.query('update credential set sealed = $1, key_id = $2, version = version + 1 where agent_id = $3', [
          sealed,
          keyId,
          context.agentId,
        ]),
      )
    }
    return super.seal(context, text)
  }
}

describe('security:credentials on postgresql', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-credentials-'))
  let fresh: FreshDatabase
  let bare: Record<string, string>
  beforeAll(async () => {
    fresh = await freshDatabase('postgresql')
    const url = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    bare = { A2A_DATA_DIR: folder, A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }
    await furnish(fresh.db, 'house')
  })
  afterAll(async () => {
    await fresh.close()
    rmSync(folder, { recursive: true })
  })
  const state = () => rowsOf(fresh.db, stateQuery)

  it('stores, stores another, revokes, and records each with ids and kind alone', async () => {
    const env = { ...bare, ...ring }
    expect(await run(env, to, binding)).toEqual({ code: 0, out: 'Credential stored.\n', err: '' })
    expect(await state()).toMatchObject([{ kind: 'bearer', enabled: true, version: 1, key_id: 'k1' }])
    const key = {
      origins: ['https://agent.example:8443'],
      credential: { type: 'apiKey', name: 'X-Key', value: secret },
    }
    expect(await run(env, [...to, '--action', 'store'], JSON.stringify(key))).toMatchObject({ code: 0 })
    const revoked = { code: 0, out: 'Credential revoked.\n', err: '' }
    expect(await run(env, [...to, '--action', 'revoke'])).toEqual(revoked)
    expect(await run(bare, [...to, '--action', 'revoke'])).toEqual(revoked)
    expect(await state()).toMatchObject([{ kind: 'apiKey', enabled: false, version: 3, key_id: null, sealed: null }])
    const rows = await rowsOf(
      fresh.db,
      `select kind, subject_id, actor_type, data::text from audit where kind like 'cred%' order by id`,
    )
    const row = (kind: string) => ({ kind, subject_id: ids.agent, actor_type: 'system' })
    expect(rows).toMatchObject(['credential.rotated', 'credential.rotated', 'credential.revoked'].map(row))
    const kinds = rows.map(({ data }): unknown => JSON.parse(String(data)))
    expect(kinds).toEqual([{ kind: 'bearer' }, { kind: 'apiKey' }, { kind: 'apiKey' }])
  })

  it('encrypts again under a new key, once, and not while a key is missing; uses the launcher’s where none is named', async () => {
    expect(await run(bare, to, binding)).toEqual(generic)
    writeFileSync(join(folder, 'secrets.json'), JSON.stringify(generated))
    expect(await run(bare, to, binding)).toMatchObject({ code: 0 })
    expect(await state()).toMatchObject([{ key_id: 'g1' }])
    const again = ['--organization', 'house', '--action', 'reencrypt']
    const both = JSON.stringify({ g1: keys.k1, k2: keys.k2 })
    expect(await run({ ...bare, ...ring }, again)).toEqual(generic)
    const env = { ...bare, A2A_VAULT_KEYS: both, A2A_VAULT_ACTIVE_KEY: 'k2' }
    expect(await run(env, again)).toEqual({ code: 0, out: 'Credentials encrypted again: 1.\n', err: '' })
    expect(await run(env, [...again, '--agent', ids.agent])).toMatchObject({ out: 'Credentials encrypted again: 0.\n' })
    expect(await state()).toMatchObject([{ key_id: 'k2', version: 4 }])
  })

  it('goes on where an interrupted run stopped, over many agents, and leaves what is stored meanwhile', async () => {
    const organizationId = randomUUID()
    const agents = Array.from({ length: 150 }, () => randomUUID())
    const first = new Vault({ keys, activeKey: 'k1' })
    const contextOf = (agentId: string): SealContext => ({ organizationId, agentId, kind: 'bearer' })
    const sealed = await Promise.all(agents.map((id) => first.seal(contextOf(id), `secret of ${id}`)))
    await fresh.db.raw(async (client) => {
      await client.query('insert into organization (id, slug, name) values ($1, $2, $2)', [organizationId, 'many'])
      await client.query(
        `insert into agent (id, organization_id, card_url, source, name)
         select id, $1, 'https://agent.example/' || id, 'managed', 'agent' from unnest($2::uuid[]) id`,
        [organizationId, agents],
      )
      await client.query(
        `insert into credential (agent_id, organization_id, kind, sealed, key_id, created_at, updated_at)
         select id, $1, 'bearer', sealed, 'k1', now(), now() from unnest($2::uuid[], $3::text[]) t (id, sealed)`,
        [organizationId, agents, sealed.map((each) => each.sealed)],
      )
    })
    const texts = async (): Promise<string[]> => {
      const rows = await fresh.db.raw((client) =>
        client.query<{ agent_id: string; sealed: string }>(
          `select agent_id, sealed from credential where organization_id = $1 and key_id = 'k2'`,
          [organizationId],
        ),
      )
      const second = new Vault({ keys: { k2: keys.k2 }, activeKey: 'k2' })
      return Promise.all(rows.rows.map((row) => second.open(contextOf(row.agent_id), row.sealed)))
    }

    await expect(resealAll(fresh.db, new StoppedVault(), organizationId)).rejects.toThrow('The run was stopped.')
    expect(await texts()).toHaveLength(120)
    // A console that starts without the old key now says what it cannot open.
    const { log, lines } = capturedLog()
    await reportMissingKeys(fresh.db, new Vault({ keys: { k2: keys.k2 }, activeKey: 'k2' }), log)
    expect(lines.map(({ fields }) => fields)).toEqual([{ keyId: 'k1', credentials: 30 }])
    const overtaken = new OvertakenVault(fresh.db)
    expect(await resealAll(fresh.db, overtaken, organizationId)).toEqual({ resealed: 29, unreadable: 0 })
    const left = agents.filter((id) => id !== overtaken.agentId).map((id) => `secret of ${id}`)
    expect((await texts()).toSorted()).toEqual([...left, 'stored meanwhile'].toSorted())
  })

  it('fails in one and the same line, and changes nothing', async () => {
    const before = await state()
    const others: [string[], string?][] = [
      [to, binding.replace('bearer', 'password')],
      [[...to, '--action', 'show']],
      [['--organization', 'elsewhere', '--agent', ids.agent]],
      [['--organization', 'house', '--agent', ids.removed, '--action', 'reencrypt']],
    ]
    // Whatever fails is told by one line of code: of what is given, what it is given to, and how, one each in the short pass.
    const wanting: [string[], string?][] = [
      [to, `${binding}${' '.repeat(256_001 - binding.length)}`],
      [[...to, '--unknown']],
      [['--organization', 'house', '--agent', ids.removed]],
      ...(isLong ? others : []),
    ]
    const outcomes = wanting.map(([args, input = binding]) => run({ ...bare, ...ring }, args, input))
    for (const [i, outcome] of (await Promise.all(outcomes)).entries())
      expect(outcome, wanting[i]?.[0].join(' ')).toEqual(generic)
    expect(await state()).toEqual(before)
  })
})

describe('security:credentials on the embedded database', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-credentials-'))
  const house = join(folder, 'house')
  const dataDir = join(house, 'pglite')
  const env = { ...ring, A2A_DATA_DIR: house }
  const local = ['--organization', 'local', '--agent', ids.agent]
  let peer: RawPeer
  let gate: Gate
  let refuses = false
  let stored: string

  beforeAll(async () => {
    const authority = await openAuthority()
    writeFileSync(join(folder, 'authority.pem'), authority.ca)
    peer = await startRawPeer()
    const admits = ({ operation }: Visit): number => (refuses && operation === 'SendMessage' ? 401 : 200)
    gate = await startGate(peer, { tls: await authority.server(), admits })
    stored = binding.replace('https://agent.example', gate.origin)
    const first = await openDatabase({ kind: 'pglite', dataDir, template: await migratedDump() })
    await furnish(first, 'local', gate.origin)
    await first.close()
  })
  afterAll(async () => {
    await gate.close()
    await peer.close()
    rmSync(folder, { recursive: true })
  })

  it('changes it offline, with its lock, and asks to be told so', async () => {
    expect(await run(env, local, stored)).toEqual(generic)
    const lock = lockDataDirectory(dataDir)
    expect(await run(env, [...local, '--offline-pglite'], stored)).toEqual(generic)
    lock.release()
    expect(await run(env, [...local, '--offline-pglite'], stored)).toMatchObject({
      code: 0,
      out: 'Credential stored.\n',
    })
    const after = await openDatabase({ kind: 'pglite', dataDir })
    const rows = await rowsOf(after, stateQuery)
    await after.close()
    expect(rows).toMatchObject([{ kind: 'bearer', enabled: true, version: 1, key_id: 'k1' }])
  })

  it('a console process that uses it says and keeps it nowhere', async () => {
    const console = await spawnConsole({
      dataDirectory: house,
      database: 'pglite',
      env: { ...ring, A2A_LOG_LEVEL: 'trace', NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem') },
    })
    const api = new Client(console.url)
    // The agent answers with what it was called with, and refuses with it.
    await api.send(ids.agent, { text: 'called with {{shown}}' })
    refuses = true
    const refused = await api.post(`/api/agents/${ids.agent}/messages`, { text: 'again' })
    expect([refused.status, refused.body]).toMatchObject([
      409,
      { error: { message: 'Protected agent operation failed.' } },
    ])
    const answers = [JSON.stringify(refused.body)]
    for (const path of ['/api/agents', '/api/task-views', '/api/audit', '/api/admin/security', '/api/actors'])
      answers.push((await api.get(path)).text)
    expect(await console.stop()).toBe(0)
    expect(gate.visitsFor('SendMessage').map(({ headers }) => headers.authorization)).toEqual(
      Array.from({ length: 2 }, () => `Bearer ${secret}`),
    )
    const files = readdirSync(house, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
    const kept = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
    // What was searched for could have been found: the answer is there, masked.
    expect(kept.filter((text) => /called with Bearer \*+|called with \*+/.test(text)).length).toBeGreaterThan(0)
    const encodings = ['latin1', 'base64', 'base64url', 'hex'] as const
    const whole = [
      ...Object.values(keys).map((key) => Buffer.from(key, 'hex')),
      ...[...Object.values(keys), secret].map((text) => Buffer.from(text)),
    ]
    const forms = whole.flatMap((bytes) => encodings.map((encoding) => bytes.toString(encoding).replace(/=+$/, '')))
    const leaks = forms.filter((form) => [console.output(), ...answers, ...kept].some((text) => text.includes(form)))
    expect(leaks).toEqual([])
  })
})
