/**
 * The `security:credentials` script: `credentials --organization <slug> --agent <uuid> [--action store|revoke|reencrypt]
 * [--offline-pglite]`. `store` reads a binding from stdin, JSON of at most 256,000 bytes. Every failure, whatever it is, is one
 * line on stderr that says nothing more, and exit code 1: what went wrong may be in what was handed in. `reencrypt` is of the
 * whole organization. The embedded database has one owner, so the console must be stopped.
 */
import { parseArgs } from 'node:util'
import { requireAgent, resealAll, revokeBinding, storeBinding, type AgentRef } from '../actors/credential-changes.ts'
import { Vault } from '../actors/vault.ts'
import { Binding, bindingBytesLimit } from '../domain/credential.ts'
import type { Database } from '../persistence/database.ts'
import { requireSchema } from '../persistence/migrate.ts'
import { migrations } from '../persistence/migrations/all.ts'
import { findOrganization } from '../persistence/rebuild.ts'
import { readCredentialsConfig } from './config.ts'
import { launchersKeyRing } from './launcher-secrets.ts'
import { UsageError, withDatabase } from './script.ts'

const options = {
  organization: { type: 'string' },
  agent: { type: 'string' },
  action: { type: 'string', default: 'store' },
  'offline-pglite': { type: 'boolean', default: false },
} as const

const actions = ['store', 'revoke', 'reencrypt'] as const
type Action = (typeof actions)[number]

interface Asked {
  readonly organization: string
  /** Null only where everything is encrypted again. */
  readonly agentId: string | null
  readonly action: Action
  readonly offline: boolean
}

function asked(): Asked {
  const { values } = parseArgs({ options, args: process.argv.slice(2) })
  const action = actions.find((each) => each === values.action)
  const { organization, agent } = values
  const agentId = agent === undefined ? null : agent.toLowerCase()
  if (action === undefined || organization === undefined) throw new UsageError('An option is missing or unknown.')
  if (agentId === null && action !== 'reencrypt') throw new UsageError('--agent is missing.')
  if (agentId !== null && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(agentId))
    throw new UsageError('--agent must be a UUID.')
  return { organization, agentId, action, offline: values['offline-pglite'] }
}

async function readBinding(): Promise<Binding> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bindingBytesLimit) throw new UsageError('The binding is too large.')
    chunks.push(chunk)
  }
  const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  return Binding.parse(JSON.parse(text))
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function change(db: Database, vault: Vault, { action, organization, agentId }: Asked, binding: Binding | null) {
  await db.raw((client) => requireSchema(client, migrations))
  const organizationId = await findOrganization(db.pool, { slug: organization })
  if (organizationId === null) throw new UsageError('There is no such organization.')
  const target: AgentRef | null = agentId === null ? null : { organizationId, agentId }
  const at = new Date().toISOString()
  if (action === 'reencrypt') {
    if (target !== null) await requireAgent(db, target)
    const { resealed, unreadable } = await resealAll(db, vault, organizationId)
    if (unreadable > 0) throw new UsageError('Some credentials are sealed with keys that are not in the key ring.')
    say(`Credentials encrypted again: ${resealed}.`)
  } else if (target !== null && action === 'revoke') {
    await revokeBinding(db, target, at)
    say('Credential revoked.')
  } else if (target !== null && binding !== null) {
    const mismatch = await storeBinding(db, vault, target, binding, at)
    say('Credential stored.')
    if (mismatch !== null) say(`Note: ${mismatch}`)
  }
}

async function main(): Promise<void> {
  const wanted = asked()
  const { database, directories, vault } = readCredentialsConfig(process.env)
  if (database.profile === 'pglite' && !wanted.offline)
    throw new UsageError('The embedded database is changed offline.')
  const ring = new Vault(vault ?? launchersKeyRing(directories.data))
  // Before the database is opened: whoever types a binding in does not hold its lock meanwhile.
  const binding = wanted.action === 'store' ? await readBinding() : null
  await withDatabase(database, (db) => change(db, ring, wanted, binding))
}

try {
  await main()
} catch {
  // Not told: a message may hold a piece of a secret, or say which organizations and agents exist.
  process.stderr.write('Credential operation failed.\n')
  process.exitCode = 1
}
