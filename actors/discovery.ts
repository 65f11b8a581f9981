/**
 * Finding an agent: fetching its card, reading it, keeping what it showed. One fetch serves everybody who asks at the same
 * time, and dispatch accepts a card that is a few seconds old. Does not register agents (agents.ts).
 */
import { createHash } from 'node:crypto'
import { cardCandidates, parseCard, selectInterface, type AgentCard } from '../a2a/card.ts'
import type { Endpoint } from '../a2a/client.ts'
import { complianceReport } from '../a2a/compliance.ts'
import type { ComplianceReport, Trust } from '../domain/agent.ts'
import { storeCard } from '../persistence/agents.ts'
import type { Database } from '../persistence/database.ts'
import { limits, type Outbound } from './outbound.ts'
import type { Instruments } from './runtime.ts'

export interface FoundCard {
  readonly kind: 'found'
  readonly card: AgentCard
  /** As the agent served it. */
  readonly raw: unknown
  readonly text: string
  readonly resolvedCardUrl: string
  readonly trust: Trust
  readonly report: ComplianceReport
}

/** `message` is safe to show. `permanent`: asking again cannot help while the card or the policy is what it is. */
export interface MissedCard {
  readonly kind: 'missed'
  readonly message: string
  readonly permanent: boolean
}

export interface FoundAgent extends FoundCard {
  readonly endpoint: Endpoint
}

/** How old a card may be for a dispatch, milliseconds. Reads for people are always fresh. */
const dispatchAgeMs = 10_000
const deliveryAgeMs = 2 * dispatchAgeMs
const agentsRemembered = 1000
const grpcOnly = 'gRPC transport is unavailable under the hardened network policy; advertise an HTTP binding.'

export class Discovery {
  readonly #db: Database
  readonly #outbound: Outbound
  readonly #instruments: Instruments
  readonly #underWay = new Map<string, Promise<FoundAgent | MissedCard>>()
  readonly #recent = new Map<string, { readonly found: FoundAgent; readonly at: number }>()

  constructor(db: Database, outbound: Outbound, instruments: Instruments) {
    this.#db = db
    this.#outbound = outbound
    this.#instruments = instruments
  }

  /** Fetches and reads a card, and keeps nothing: what a preview does. */
  async look(cardUrl: string, deadlineMs: number = limits.card.deadlineMs): Promise<FoundCard | MissedCard> {
    const tried: string[] = []
    for (const url of cardCandidates(cardUrl)) {
      const request = {
        method: 'GET' as const,
        url,
        headers: { Accept: 'application/json', 'A2A-Version': '1.0' },
        requestId: '',
      }
      const sent = await this.#outbound.exchange(request, { ...limits.card, deadlineMs })
      if (sent.kind !== 'answered') {
        // A policy's no is the whole answer; a network's no is one of the addresses that were tried.
        if (policyCodes.has(sent.code)) return { kind: 'missed', message: sent.message, permanent: true }
        tried.push(`${url} (${sent.code})`)
        continue
      }
      if (sent.status !== 200) {
        tried.push(`${url} (HTTP ${sent.status})`)
        continue
      }
      const read = readCard(sent.body, url)
      if (read.kind === 'found') return read
      tried.push(`${url} (${read.fault})`)
    }
    return { kind: 'missed', message: `Agent Card discovery failed. Tried: ${tried.join(', ')}`, permanent: false }
  }

  /** Finds a registered agent, keeps its card as a snapshot, and chooses the interface to speak to. */
  find(
    agent: { readonly id: string; readonly cardUrl: string },
    deadlineMs: number = limits.card.deadlineMs,
  ): Promise<FoundAgent | MissedCard> {
    const underWay = this.#underWay.get(agent.id)
    if (underWay) return underWay
    const finding = this.#find(agent, deadlineMs).finally(() => this.#underWay.delete(agent.id))
    this.#underWay.set(agent.id, finding)
    return finding
  }

  /** As `find`, but a card of the last seconds will do. */
  async forDispatch(agent: { readonly id: string; readonly cardUrl: string }): Promise<FoundAgent | MissedCard> {
    return this.#atHand(agent.id, dispatchAgeMs) ?? this.find(agent)
  }

  /** For what was discovered already and only waited for its commit: a miss now would fail it without another try. */
  async forDelivery(agent: { readonly id: string; readonly cardUrl: string }): Promise<FoundAgent | MissedCard> {
    return this.#atHand(agent.id, deliveryAgeMs) ?? this.find(agent)
  }

  /** Whether `forDispatch` would answer without asking the agent. */
  isAtHand(agentId: string): boolean {
    return this.#atHand(agentId, dispatchAgeMs) !== null
  }

  #atHand(agentId: string, ageMs: number): FoundAgent | null {
    const recent = this.#recent.get(agentId)
    return recent && this.#instruments.monotonic() - recent.at < ageMs ? recent.found : null
  }

  async #find(
    agent: { readonly id: string; readonly cardUrl: string },
    deadlineMs: number,
  ): Promise<FoundAgent | MissedCard> {
    const startedAt = this.#instruments.monotonic()
    const seen = await this.look(agent.cardUrl, deadlineMs)
    if (seen.kind === 'missed') return seen
    const { text, card, trust } = seen
    const digest = createHash('sha256').update(text).digest('hex')
    await storeCard(this.#db.pool, { agentId: agent.id, digest, card: text, name: card.name, trust })
    const choice = selectInterface(card)
    if ('refused' in choice) {
      const message = choice.refused === 'grpc' ? grpcOnly : 'The Agent Card advertises no interface that can be used.'
      return { kind: 'missed', message, permanent: true }
    }
    const found: FoundAgent = { ...seen, endpoint: choice.endpoint }
    this.#recent.delete(agent.id)
    this.#recent.set(agent.id, { found, at: startedAt })
    const [oldest] = this.#recent.keys()
    if (this.#recent.size > agentsRemembered && oldest !== undefined) this.#recent.delete(oldest)
    return found
  }
}

const policyCodes: ReadonlySet<string> = new Set([
  'origin-not-allowed',
  'https-required',
  'blocked-address',
  'redirect',
  'too-large',
])

function readCard(body: Uint8Array, url: string): FoundCard | { readonly kind: 'fault'; readonly fault: string } {
  let text: string
  let raw: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    raw = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return { kind: 'fault', fault: 'not JSON' }
    throw error
  }
  const parsed = parseCard(raw)
  if ('fault' in parsed) return { kind: 'fault', fault: parsed.fault }
  return {
    kind: 'found',
    card: parsed.card,
    raw,
    text,
    resolvedCardUrl: url,
    // No key is pinned before part 3, so a signature proves nothing yet; it must not look as if it did.
    trust: parsed.card.signatures.length > 0 ? 'untrusted' : 'unsigned',
    report: complianceReport(raw),
  }
}
