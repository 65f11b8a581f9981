/**
 * Registered agents and the cards they showed, each distinct card kept once. Does not fetch anything.
 */
import { sql } from 'slonik'
import { z } from 'zod'
import type { Viewer } from '../domain/access.ts'
import type { AgentSource, Trust } from '../domain/agent.ts'
import type { Connection, Transaction } from './connection.ts'
import { held, heldPartly, heldSkills } from './visibility.ts'

export interface AgentRow {
  readonly id: string
  readonly organizationId: string
  readonly cardUrl: string
  readonly source: AgentSource
  readonly enabled: boolean
  readonly name: string
  /** JSON text of the stored card; null before the first discovery. */
  readonly card: string | null
}

const Row = z.custom<AgentRow>()
const columns = sql.fragment`
  a.id, a.organization_id as "organizationId", a.card_url as "cardUrl", a.source, a.enabled, a.name, s.card`
const withCard = sql.fragment`agent a left join agent_card s on s.agent_id = a.id and s.digest = a.card_digest`

export interface NewAgent {
  readonly id: string
  readonly organizationId: string
  readonly cardUrl: string
  readonly source: AgentSource
  /** Until a card says better. */
  readonly name: string
}

/** Registers, or enables again what had been removed. `changed` is false when it was there already. */
export async function registerAgent(
  tx: Transaction,
  agent: NewAgent,
): Promise<{ readonly agent: AgentRow; readonly changed: boolean }> {
  const changed = await tx.maybeOne(sql.type(z.object({ id: z.string() }))`
    insert into agent as a (id, organization_id, card_url, source, name)
    values (${agent.id}, ${agent.organizationId}, ${agent.cardUrl}, ${agent.source}, ${agent.name})
    on conflict (organization_id, card_url) do update
      set enabled = true, source = case when excluded.source = 'env' then 'env' else a.source end, updated_at = now()
      where not a.enabled or (excluded.source = 'env' and a.source <> 'env')
    returning a.id`)
  const row = await tx.one(sql.type(Row)`
    select ${columns} from ${withCard} where a.organization_id = ${agent.organizationId} and a.card_url = ${agent.cardUrl}`)
  return { agent: row, changed: changed !== null }
}

/** Environment-seeded agents that the environment no longer names become ordinary ones, which a person may remove. */
export async function releaseSeeded(db: Connection, organizationId: string, kept: readonly string[]): Promise<void> {
  await db.query(sql.unsafe`
    update agent set source = 'managed', updated_at = now()
    where organization_id = ${organizationId} and source = 'env' and card_url <> all(${sql.array([...kept], 'text')})`)
}

/** An agent as one person may see it. */
export interface SeenAgent extends AgentRow {
  /** The skills that the person holds; null: the agent as a whole. */
  readonly heldSkills: readonly string[] | null
  /** The same of those that the person may send to. */
  readonly operableSkills: string[] | null
}
const Seen = z.custom<SeenAgent>()
const ofAgent = sql.fragment`a.id`
const seenBy = (viewer: Viewer) => sql.fragment`
  ${columns}, ${heldSkills(viewer, 'read', ofAgent)} as "heldSkills", ${heldSkills(viewer, 'operate', ofAgent)} as "operableSkills"`

/** Agents of which the viewer holds anything. */
export async function listAgents(db: Connection, viewer: Viewer): Promise<readonly SeenAgent[]> {
  return db.any(sql.type(Seen)`
    select ${seenBy(viewer)} from ${withCard}
    where a.organization_id = ${viewer.organizationId} and a.enabled and ${heldPartly(viewer, 'read', ofAgent)}
    order by a.created_at, a.id`)
}

/** Null for an agent that is unknown, removed, or of which the viewer holds nothing. */
export async function findAgent(db: Connection, viewer: Viewer, id: string): Promise<SeenAgent | null> {
  return db.maybeOne(sql.type(Seen)`
    select ${seenBy(viewer)} from ${withCard}
    where a.organization_id = ${viewer.organizationId} and a.id = ${id} and a.enabled
      and ${heldPartly(viewer, 'read', ofAgent)}`)
}

export interface Holding {
  readonly reads: boolean
  readonly operates: boolean
}

/** What the viewer holds of an agent's skill, or of the agent as a whole; null for an agent of which they hold nothing. */
export async function readHolding(
  db: Connection,
  viewer: Viewer,
  agentId: string,
  skillId: string | null,
): Promise<Holding | null> {
  const skill = skillId === null ? null : sql.fragment`${skillId}`
  return db.maybeOne(sql.type(z.object({ reads: z.boolean(), operates: z.boolean() }))`
    select ${held(viewer, 'read', ofAgent, skill)} as reads, ${held(viewer, 'operate', ofAgent, skill)} as operates
    from agent a where a.organization_id = ${viewer.organizationId} and a.id = ${agentId} and a.enabled
      and ${heldPartly(viewer, 'read', ofAgent)}`)
}

/** Which of these were removed. */
export async function removedAmong(db: Connection, agentIds: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  if (agentIds.size === 0) return new Set()
  const rows = await db.anyFirst(sql.type(z.object({ id: z.string() }))`
    select id from agent where id = any(${sql.array([...agentIds], 'uuid')}) and not enabled`)
  return new Set(rows)
}

/** An agent as the worker knows it. `cardAgeMs`: since it showed its card last; null where it never did. */
export interface KnownAgent extends AgentRow {
  readonly cardAgeMs: number | null
}

/** For the worker, which acts as the system: also an agent that was removed since. */
export async function readAgent(db: Connection, id: string): Promise<KnownAgent | null> {
  return db.maybeOne(sql.type(z.custom<KnownAgent>())`
    select ${columns}, (extract(epoch from now() - s.last_seen_at) * 1000)::float8 as "cardAgeMs" from ${withCard} where a.id = ${id}`)
}

/** False when somebody else has just done it. */
export async function disableAgent(tx: Transaction, organizationId: string, id: string): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(z.object({ id: z.string() }))`
    update agent set enabled = false, updated_at = now()
    where organization_id = ${organizationId} and id = ${id} and enabled returning id`)
  return row !== null
}

export interface SeenCard {
  readonly agentId: string
  /** SHA-256, hex, of the card's text. */
  readonly digest: string
  /** JSON text as the agent served it. */
  readonly card: string
  readonly name: string
  readonly trust: Trust
  /** It advertises skill routing: only then does a grant of one of its skills count. */
  readonly routesSkills: boolean
}

/** Keeps a card as the agent's present one. True when it is another than before. */
export async function storeCard(db: Connection, seen: SeenCard): Promise<boolean> {
  const row = await db.maybeOne(sql.type(z.object({ changed: z.boolean() }))`
    with before as (select id, card_digest from agent where id = ${seen.agentId}),
    kept as (
      insert into agent_card (agent_id, digest, card, trust) values (${seen.agentId}, ${seen.digest}, ${seen.card}, ${seen.trust})
      on conflict (agent_id, digest) do update set last_seen_at = now(), trust = excluded.trust
    ), named as (
      update agent a set card_digest = ${seen.digest}, name = ${seen.name}, routes_skills = ${seen.routesSkills}, updated_at = now()
      from before where a.id = before.id and (before.card_digest is distinct from ${seen.digest} or a.name <> ${seen.name}
        or a.routes_skills is distinct from ${seen.routesSkills})
    )
    select card_digest is distinct from ${seen.digest} as changed from before`)
  return row?.changed ?? false
}
