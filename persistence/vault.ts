/**
 * Credential bindings as rows, one an agent: sealed text and the key it is sealed with. Does not seal or open
 * (actors/vault.ts), and no secret passes through here in the clear; what an administrator sees of it is access.ts.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import { CredentialKind } from '../domain/credential.ts'
import type { Connection, Transaction } from './connection.ts'

export interface CredentialRow {
  readonly agentId: string
  readonly organizationId: string
  readonly kind: CredentialKind
  /** Grows with every store and revocation, and by nothing else. */
  readonly version: number
  /** Null: revoked. */
  readonly sealed: string | null
}

const columns = sql.fragment`
  c.agent_id as "agentId", c.organization_id as "organizationId", c.kind, c.version, c.sealed`
const Row = z.custom<CredentialRow>()

/** By agent; those without a binding are not there. */
export async function readCredentials(
  db: Connection,
  agentIds: readonly string[],
): Promise<ReadonlyMap<string, CredentialRow>> {
  const rows = await db.any(sql.type(Row)`
    select ${columns} from credential c where c.agent_id = any(${sql.array([...agentIds], 'uuid')})`)
  return new Map(rows.map((row) => [row.agentId, row]))
}

const Target = z.object({ card: z.nullable(z.string()) })

/**
 * An enabled agent of the organization with its last card (JSON text, null before the first), locked against being removed
 * meanwhile; null where there is none.
 */
export async function lockAgentForCredential(
  tx: Transaction,
  organizationId: string,
  agentId: string,
): Promise<z.infer<typeof Target> | null> {
  return tx.maybeOne(sql.type(Target)`
    select s.card from agent a left join agent_card s on s.agent_id = a.id and s.digest = a.card_digest
    where a.id = ${agentId} and a.organization_id = ${organizationId} and a.enabled for share of a`)
}

export interface SealedCredential {
  readonly agentId: string
  readonly organizationId: string
  readonly kind: CredentialKind
  readonly sealed: string
  readonly keyId: string
}

/** Replaces what was there, revoked or not. */
export async function storeCredential(tx: Transaction, credential: SealedCredential, at: string): Promise<void> {
  const { agentId, organizationId, kind, sealed, keyId } = credential
  await tx.query(sql.unsafe`
    insert into credential as c (agent_id, organization_id, kind, sealed, key_id, created_at, updated_at)
    values (${agentId}, ${organizationId}, ${kind}, ${sealed}, ${keyId}, ${at}, ${at})
    on conflict (agent_id) do update set kind = excluded.kind, sealed = excluded.sealed, key_id = excluded.key_id,
      enabled = true, version = c.version + 1, updated_at = excluded.updated_at`)
}

const Revoked = z.object({ kind: CredentialKind })

/** Takes the sealed text away and leaves the row. Null where there is no binding, or a revoked one. */
export async function revokeCredential(tx: Transaction, agentId: string, at: string): Promise<CredentialKind | null> {
  const row = await tx.maybeOne(sql.type(Revoked)`
    update credential set enabled = false, sealed = null, key_id = null, version = version + 1, updated_at = ${at}
    where agent_id = ${agentId} and enabled returning kind`)
  return row?.kind ?? null
}

export async function hasCredential(tx: Transaction, agentId: string): Promise<boolean> {
  const row = await tx.maybeOne(
    sql.type(z.object({ id: z.string() }))`select agent_id as id from credential where agent_id = ${agentId}`,
  )
  return row !== null
}

/** Sealed under another key than `activeKey`, behind an agent's id, in the order of ids. */
export async function credentialsUnderOtherKeys(
  db: Connection,
  page: { readonly organizationId: string; readonly activeKey: string; readonly after: string; readonly limit: number },
): Promise<readonly (CredentialRow & { readonly sealed: string })[]> {
  return db.any(sql.type(z.custom<CredentialRow & { readonly sealed: string }>())`
    select ${columns} from credential c
    where c.organization_id = ${page.organizationId} and c.key_id <> ${page.activeKey} and c.agent_id > ${page.after}
    order by c.agent_id limit ${page.limit}`)
}

/** False where the binding changed since `from` was read: what is there now was sealed later than that. */
export async function resealCredential(
  db: Connection,
  credential: Pick<SealedCredential, 'agentId' | 'sealed' | 'keyId'>,
  from: string,
): Promise<boolean> {
  const row = await db.maybeOne(sql.type(z.object({ id: z.string() }))`
    update credential set sealed = ${credential.sealed}, key_id = ${credential.keyId}
    where agent_id = ${credential.agentId} and sealed = ${from} returning agent_id as id`)
  return row !== null
}

const KeyUse = z.object({ keyId: z.string(), credentials: z.number() })

/** Every key that something is sealed with, in all organizations. */
export async function keysInUse(db: Connection): Promise<readonly z.infer<typeof KeyUse>[]> {
  return db.any(sql.type(KeyUse)`
    select key_id as "keyId", count(*)::int as credentials from credential
    where key_id is not null group by key_id order by key_id`)
}
