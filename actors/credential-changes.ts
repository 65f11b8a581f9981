/**
 * Changing credential bindings: storing, revoking, and sealing again under the active key. The operations behind the
 * `security:credentials` script. Owns the transaction of a change with its audit row, which holds ids and the kind. Does not own
 * what a binding is (domain/credential.ts) or its use (credentials.ts).
 */
import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { parseCard } from '../a2a/card.ts'
import { mismatchOf, type Binding, type CredentialKind } from '../domain/credential.ts'
import { appendAudit } from '../persistence/audit.ts'
import type { Database } from '../persistence/database.ts'
import type { Transaction } from '../persistence/connection.ts'
import {
  credentialsUnderOtherKeys,
  hasCredential,
  lockAgentForCredential,
  resealCredential,
  revokeCredential,
  storeCredential,
} from '../persistence/vault.ts'
import { newToken } from './tokens.ts'
import { VaultUnavailable, type Vault } from './vault.ts'

/** An agent as its organization knows it. */
export interface AgentRef {
  readonly organizationId: string
  readonly agentId: string
}

/** There is no such enabled agent in the organization, or nothing to revoke. */
export class NoSuchBinding extends Error {
  override readonly name = 'NoSuchBinding'
}

/** A client certificate or key that no connection could be opened with. */
export class BindingUnusable extends Error {
  override readonly name = 'BindingUnusable'
}

/** Whether an agent exists and is enabled; throws NoSuchBinding where not. */
export async function requireAgent(db: Database, { organizationId, agentId }: AgentRef): Promise<void> {
  const agent = await db.pool.transaction((tx) => lockAgentForCredential(tx, organizationId, agentId))
  if (agent === null) throw new NoSuchBinding()
}

/**
 * Stores a binding in place of the one before. Returns a sentence where the agent's last card asks for something else, else
 * null. Throws NoSuchBinding, BindingUnusable, VaultUnavailable.
 */
export async function storeBinding(
  db: Database,
  vault: Vault,
  target: AgentRef,
  binding: Binding,
  at: string,
): Promise<string | null> {
  const kind = binding.credential.type
  requireUsable(binding)
  const sealed = await vault.seal({ ...target, kind }, JSON.stringify(binding))
  return db.pool.transaction(async (tx) => {
    const agent = await lockAgentForCredential(tx, target.organizationId, target.agentId)
    if (agent === null) throw new NoSuchBinding()
    await storeCredential(tx, { ...target, kind, ...sealed }, at)
    await record(tx, 'credential.rotated', target, kind, at)
    const parsed = agent.card === null ? null : parseCard(JSON.parse(agent.card))
    return parsed === null || 'fault' in parsed ? null : mismatchOf(kind, parsed.card)
  })
}

/** What can be known without the agent: told to the operator now, and not by every call of the agent later. */
function requireUsable({ credential }: Binding): void {
  if (credential.type !== 'mtls') return
  const { cert, key, ca } = credential
  try {
    // Fails where the key is not the certificate's, or is encrypted.
    createSecureContext({ cert, key })
    if (ca !== undefined) new X509Certificate(ca)
  } catch {
    // OpenSSL's words may hold a piece of what it could not read.
    throw new BindingUnusable()
  }
}

/** Revokes; one that is revoked already stays so, and nothing is recorded again. Needs no key. Throws NoSuchBinding. */
export async function revokeBinding(db: Database, target: AgentRef, at: string): Promise<void> {
  await db.pool.transaction(async (tx) => {
    if ((await lockAgentForCredential(tx, target.organizationId, target.agentId)) === null) throw new NoSuchBinding()
    const kind = await revokeCredential(tx, target.agentId, at)
    if (kind !== null) await record(tx, 'credential.revoked', target, kind, at)
    else if (!(await hasCredential(tx, target.agentId))) throw new NoSuchBinding()
  })
}

async function record(
  tx: Transaction,
  auditKind: 'credential.rotated' | 'credential.revoked',
  { organizationId, agentId }: AgentRef,
  kind: CredentialKind,
  at: string,
): Promise<void> {
  const id = newToken()
  const entry = {
    id,
    organizationId,
    kind: auditKind,
    actorType: 'system',
    personId: null,
    subjectId: agentId,
  } as const
  await appendAudit(tx, { ...entry, data: { kind } }, at)
}

export interface Resealed {
  readonly resealed: number
  /** Under keys that the ring does not hold, or damaged: left as they were. */
  readonly unreadable: number
}

/** Rows in one read. Each is sealed and written by itself, so that an interruption leaves nothing half done. */
const pageSize = 100
const beforeAllIds = '00000000-0000-0000-0000-000000000000'

/**
 * Seals everything of an organization that is not under the active key again, of removed agents too: a key can be retired only
 * when nothing is left under it. Ends behind the last agent; what is stored meanwhile is under the active key already. A run
 * that was interrupted is continued by the next, which finds what is left. Throws VaultUnavailable where there is no ring.
 */
export async function resealAll(db: Database, vault: Vault, organizationId: string): Promise<Resealed> {
  const done = { resealed: 0, unreadable: 0 }
  const { activeKey } = vault
  for (let after = beforeAllIds; ;) {
    const page = { organizationId, activeKey, after, limit: pageSize }
    const rows = await credentialsUnderOtherKeys(db.pool, page)
    for (const row of rows) {
      const text = await openOrNull(vault, row)
      if (text === null) {
        done.unreadable += 1
        continue
      }
      const { sealed, keyId } = await vault.seal(row, text)
      if (await resealCredential(db.pool, { agentId: row.agentId, sealed, keyId }, row.sealed)) done.resealed += 1
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return done
    after = last.agentId
  }
}

async function openOrNull(vault: Vault, row: Parameters<Vault['open']>[0] & { readonly sealed: string }) {
  try {
    return await vault.open(row, row.sealed)
  } catch (error) {
    if (error instanceof VaultUnavailable) return null
    throw error
  }
}
