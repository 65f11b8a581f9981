/**
 * Registering, listing and removing agents: the operations behind `/api/agents`. Does not fetch cards (discovery.ts).
 */
import {
  parseCardUrl,
  type Agent,
  type AgentSource,
  type ComplianceReport,
  type RegisteredAgent,
  type Trust,
} from '../domain/agent.ts'
import type { Viewer } from '../domain/access.ts'
import { Refusal, type RefusalCode } from '../domain/refusal.ts'
import {
  disableAgent,
  findAgent,
  listAgents,
  registerAgent,
  releaseSeeded,
  type AgentRow,
} from '../persistence/agents.ts'
import { appendAudit } from '../persistence/audit.ts'
import type { Database, Transaction } from '../persistence/database.ts'
import { writeActors } from '../persistence/actors.ts'
import type { Changes } from './changes.ts'
import type { Discovery, FoundCard } from './discovery.ts'
import type { Instruments } from './runtime.ts'

/** A list answers although one agent does not: each card gets this long. */
const listDeadlineMs = 5_000
/** Cards fetched at once for one list. */
const listConcurrency = 16

export interface AgentDetail extends RegisteredAgent {
  readonly card: unknown
  readonly trust: Trust
  readonly report: ComplianceReport
}

export interface CardPreview {
  readonly card: unknown
  readonly resolvedCardUrl: string
  readonly report: ComplianceReport
}

const faults = {
  scheme: 'agent.url.scheme',
  decorated: 'agent.url.decorated',
  length: 'agent.url.length',
} as const satisfies Record<string, RefusalCode>

const checkedUrl = (cardUrl: string): string => {
  const parsed = parseCardUrl(cardUrl)
  if ('fault' in parsed) throw new Refusal(faults[parsed.fault])
  return parsed.url
}

export class Agents {
  readonly #db: Database
  readonly #discovery: Discovery
  readonly #changes: Changes
  readonly #instruments: Instruments

  constructor(db: Database, discovery: Discovery, changes: Changes, instruments: Instruments) {
    this.#db = db
    this.#discovery = discovery
    this.#changes = changes
    this.#instruments = instruments
  }

  /** Registers without fetching. The same URL again is the same agent, enabled again if it had been removed. */
  async register(viewer: Viewer, cardUrl: string): Promise<RegisteredAgent> {
    const agent = await this.#register(viewer.organizationId, checkedUrl(cardUrl), 'managed', viewer.userId)
    return { id: agent.id, cardUrl: agent.cardUrl, source: agent.source }
  }

  /** The agents that the environment names; what it no longer names becomes an ordinary agent. */
  async seed(organizationId: string, cardUrls: readonly string[]): Promise<void> {
    const urls = cardUrls.map(checkedUrl)
    for (const url of urls) await this.#register(organizationId, url, 'env', null)
    await releaseSeeded(this.#db.pool, organizationId, urls)
  }

  async #register(
    organizationId: string,
    cardUrl: string,
    source: AgentSource,
    personId: string | null,
  ): Promise<AgentRow> {
    const id = this.#instruments.newToken()
    const batchId = this.#instruments.newToken()
    const { agent, changed } = await this.#db.pool.transaction(async (tx) => {
      const registered = await registerAgent(tx, { id, organizationId, cardUrl, source, name: new URL(cardUrl).host })
      if (registered.changed) await this.#record(tx, 'agent.registered', registered.agent, personId, batchId)
      return registered
    })
    if (changed) this.#tell(organizationId, agent.id, batchId)
    return agent
  }

  async remove(viewer: Viewer, id: string): Promise<void> {
    const batchId = this.#instruments.newToken()
    await this.#db.pool.transaction(async (tx) => {
      const agent = await findAgent(tx, viewer.organizationId, id)
      if (!agent) throw new Refusal('agent.unknown')
      if (agent.source === 'env') throw new Refusal('agent.seeded')
      if (!(await disableAgent(tx, viewer.organizationId, id))) throw new Refusal('agent.unknown')
      await this.#record(tx, 'agent.removed', agent, viewer.userId, batchId)
    })
    this.#tell(viewer.organizationId, id, batchId)
  }

  /** After the commit. */
  #tell(organizationId: string, agentId: string, batchId: string): void {
    const commit = { batchId, leftDue: new Set<string>() }
    this.#changes.publish({ organizationId, subjects: new Set([agentId]), commit })
  }

  /** The fact and the audit row of a change, in its transaction. */
  async #record(
    tx: Transaction,
    kind: 'agent.registered' | 'agent.removed',
    agent: AgentRow,
    personId: string | null,
    batchId: string,
  ): Promise<void> {
    const at = this.#instruments.now().toISOString()
    const { id: subjectId, organizationId, cardUrl, source } = agent
    const actorType = personId === null ? 'system' : 'user'
    const entry = { id: this.#instruments.newToken(), organizationId, kind, actorType, personId, subjectId } as const
    await appendAudit(tx, { ...entry, data: { cardUrl, source } }, at)
    await writeActors(tx, {
      writes: [],
      log: [],
      outbox: [{ organizationId, kind, subjectId, data: {} }],
      batchId,
      at,
    })
  }

  /** Every agent with the card it shows now; one that cannot be found stays in the list and says why. */
  async list(viewer: Viewer): Promise<Agent[]> {
    const rows = await listAgents(this.#db.pool, viewer.organizationId)
    const answers: Agent[] = []
    const queue = rows.entries()
    const lane = async (): Promise<void> => {
      for (const [i, row] of queue) answers[i] = await this.#describe(row)
    }
    await Promise.all(Array.from({ length: Math.min(listConcurrency, rows.length) }, lane))
    return answers
  }

  async #describe(row: AgentRow): Promise<Agent> {
    const registered = { id: row.id, cardUrl: row.cardUrl, source: row.source }
    const found = await this.#discovery.find(row, listDeadlineMs)
    if (found.kind === 'missed') return { ...registered, error: found.message }
    const { name, description, skills } = found.card
    return { ...registered, name, description, skills: [...skills], ...shown(found) }
  }

  async get(viewer: Viewer, id: string): Promise<AgentDetail> {
    const row = await findAgent(this.#db.pool, viewer.organizationId, id)
    if (!row) throw new Refusal('agent.unknown')
    const found = await this.#discovery.find(row)
    if (found.kind === 'missed') throw new Refusal('agent.discovery', found.message)
    return { id: row.id, cardUrl: row.cardUrl, source: row.source, ...shown(found) }
  }

  /** Looks at a card without credentials, registration or snapshot. */
  async preview(cardUrl: string): Promise<CardPreview> {
    const seen = await this.#discovery.look(checkedUrl(cardUrl))
    if (seen.kind === 'missed') throw new Refusal('agent.discovery', seen.message)
    return { card: seen.raw, resolvedCardUrl: seen.resolvedCardUrl, report: seen.report }
  }
}

const shown = (found: FoundCard) => ({ card: found.raw, trust: found.trust, report: found.report })
