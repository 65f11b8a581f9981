/**
 * Finding an agent: fetching its card, reading it, keeping what it showed. One fetch serves everybody who asks at the same
 * time, and dispatch accepts a card that is a few seconds old. Does not register agents (agents.ts).
 */
import { createHash } from 'node:crypto'
import { cardCandidates, parseCard, selectInterface, type AgentCard } from '../a2a/card.ts'
import type { Endpoint } from '../a2a/operations.ts'
import { complianceReport } from '../a2a/compliance.ts'
import { supportsSkillRouting } from '../a2a/extensions/skill-routing.ts'
import type { CardSigning, ComplianceReport, Trust } from '../domain/agent.ts'
import { credentialSentences } from '../domain/credential.ts'
import { storeCard } from '../persistence/agents.ts'
import type { Database } from '../persistence/database.ts'
import type { AgentDoor, Prepared } from './credentials.ts'
import { trustRejected, type CardTrust } from './card-trust.ts'
import { limits, type Outbound, type Sent } from './outbound.ts'
import type { Instruments } from './loop/runtime.ts'
import { remember } from './remember.ts'

export interface FoundCard {
  readonly kind: 'found'
  readonly card: AgentCard
  /** As the agent served it; of a verified card only what its signature covers, and the signatures. */
  readonly raw: unknown
  /** `raw` as JSON: what is kept. */
  readonly text: string
  readonly resolvedCardUrl: string
  readonly trust: Trust
  readonly signing: CardSigning
  /** Of the card as it was served. */
  readonly report: ComplianceReport
}

/** `message` is safe to show. `permanent`: asking again cannot help while the card or the policy is what it is. */
export interface MissedCard {
  readonly kind: 'missed'
  readonly message: string
  readonly permanent: boolean
  /** Of a card that was read and is not trusted. */
  readonly untrusted?: { readonly trust: Trust; readonly signing: CardSigning }
}

export interface FoundAgent extends FoundCard {
  readonly endpoint: Endpoint
}

/** How old a card may be for a dispatch, milliseconds. Reads for people are always fresh. */
const dispatchAgeMs = 10_000
const deliveryAgeMs = 2 * dispatchAgeMs
const agentsRemembered = 1000
const grpcOnly = 'gRPC transport is unavailable under the hardened network policy; advertise an HTTP binding.'
const noInterface = 'The Agent Card advertises no interface that can be used.'

export interface DiscoveryTools {
  readonly db: Database
  readonly outbound: Outbound
  readonly door: AgentDoor
  readonly instruments: Instruments
  readonly trust: CardTrust
  readonly extensionHost: string
}

interface Registered {
  readonly id: string
  readonly cardUrl: string
}

/** How long an agent was waited for at earlier addresses of its card, and since when at this one; monotonic milliseconds. */
interface Asking {
  beforeMs: number
  since: number | null
}

export class Discovery {
  readonly #t: DiscoveryTools
  readonly #underWay = new Map<string, Promise<FoundAgent | MissedCard>>()
  readonly #recent = new Map<string, { readonly found: FoundAgent; readonly at: number }>()
  /** Whose cards are being looked for. */
  readonly #asked = new Map<string, Asking>()
  /** Shown and not kept, for the database was away: whoever tries again only keeps it, and asks the agent nothing. */
  readonly #unkept = new Map<string, { readonly seen: FoundCard; readonly at: number }>()

  constructor(tools: DiscoveryTools) {
    this.#t = tools
  }

  /** Fetches and reads a card as one that may be used, and keeps nothing; without credentials where it is nobody's yet. */
  async look(cardUrl: string, agentId: string | null = null): Promise<FoundCard | MissedCard> {
    const tried: string[] = []
    let denial: string | null = null
    let mayProve = true
    /** Why it went without. */
    let withheld: string | null = null
    for (const url of cardCandidates(cardUrl)) {
      const request = {
        method: 'GET' as const,
        url,
        headers: { Accept: 'application/json', 'A2A-Version': '1.0' },
        requestId: '',
      }
      const prepared = await this.#t.door.prepareCard(mayProve ? agentId : null, request)
      // Who gave no token for this address gives none for the next: a token endpoint that hangs is waited for once a search.
      if (prepared.denial === credentialSentences.oauth) [mayProve, withheld] = [false, prepared.denial]
      const sent = await this.#ask(agentId, prepared)
      if (sent.kind !== 'answered') {
        // A policy's no is the whole answer; a network's no is one of the addresses that were tried.
        if (policyCodes.has(sent.code)) return { kind: 'missed', message: sent.message, permanent: true }
        tried.push(`${url} (${sent.code})`)
        continue
      }
      if (sent.status !== 200) {
        tried.push(`${url} (HTTP ${sent.status})`)
        if (sent.status === 401 || sent.status === 403) denial ??= withheld ?? prepared.denial
        // Nothing is sent again after a 401: a card that is public at the next address is found without.
        if (sent.status === 401) mayProve = false
        continue
      }
      const read = await this.#read(sent.body, url)
      // What a card says is the whole answer, also when it is not trusted; what is no card is one address that was tried.
      if (read.kind !== 'fault') return read
      tried.push(`${url} (${read.fault})`)
    }
    // Of an agent of ours; to a preview a card behind a door is one that is not there.
    if (agentId !== null && denial !== null) return { kind: 'missed', message: denial, permanent: mayNotPass(denial) }
    return { kind: 'missed', message: `Agent Card discovery failed. Tried: ${tried.join(', ')}`, permanent: false }
  }

  async #ask(agentId: string | null, prepared: Prepared): Promise<Sent> {
    const asking = agentId === null ? undefined : this.#asked.get(agentId)
    if (!asking) return prepared.exchange(limits.card)
    const { instruments } = this.#t
    asking.since = instruments.monotonic()
    try {
      return await prepared.exchange(limits.card)
    } finally {
      asking.beforeMs += instruments.monotonic() - asking.since
      asking.since = null
    }
  }

  /**
   * How long an agent has been waited for by the search for its card that is under way, milliseconds, at all its addresses. What else
   * a search waits for, our database or whoever gives a token for it, is not in it.
   */
  silentMs(agentId: string): number {
    const asking = this.#asked.get(agentId)
    if (!asking) return 0
    return asking.beforeMs + (asking.since === null ? 0 : this.#t.instruments.monotonic() - asking.since)
  }

  /** What a preview does: a card that the network policy rules out is missed; one with no interface at all is shown. */
  async preview(cardUrl: string): Promise<FoundCard | MissedCard> {
    const seen = await this.look(cardUrl)
    if (seen.kind === 'missed') return seen
    const chosen = this.#choose(seen.card)
    return 'message' in chosen && chosen.message !== noInterface ? chosen : seen
  }

  /**
   * Finds a registered agent, keeps its card as a snapshot, and chooses the interface to speak to. For as long as a card may take,
   * whoever began it: who has less time stops waiting, and does not end it for a send that waits for the same answer.
   */
  find(agent: Registered): Promise<FoundAgent | MissedCard> {
    const underWay = this.#underWay.get(agent.id)
    if (underWay) return underWay
    const finding = this.#find(agent).finally(() => this.#underWay.delete(agent.id))
    this.#underWay.set(agent.id, finding)
    return finding
  }

  /** Whether somebody waits for this agent's card now. */
  isLookingFor(agentId: string): boolean {
    return this.#underWay.has(agentId)
  }

  /** As `find`, but a card of the last seconds will do. */
  async forDispatch(agent: Registered): Promise<FoundAgent | MissedCard> {
    return this.#atHand(agent.id, dispatchAgeMs) ?? this.find(agent)
  }

  /** For what was discovered already and only waited for its commit: a miss now would fail it without another try. */
  async forDelivery(agent: Registered): Promise<FoundAgent | MissedCard> {
    return this.#atHand(agent.id, deliveryAgeMs) ?? this.find(agent)
  }

  /**
   * The agent by the card that it showed last, judged by today's keys and policy, without asking for it. Null where none was
   * kept, or none that can be used now.
   */
  async kept(
    agent: Registered & { readonly card: string | null },
  ): Promise<Pick<FoundAgent, 'card' | 'endpoint'> | null> {
    const json: unknown = agent.card === null ? null : JSON.parse(agent.card)
    const parsed = parseCard(json)
    if ('fault' in parsed) return null
    const { usable } = await this.#t.trust.judge(parsed.card, json, agent.cardUrl)
    const chosen = usable && this.#choose(usable.card)
    return chosen && 'endpoint' in chosen ? { card: usable.card, endpoint: chosen.endpoint } : null
  }

  /** Whether `forDispatch` would answer without asking the agent. */
  isAtHand(agentId: string): boolean {
    return this.#atHand(agentId, dispatchAgeMs) !== null
  }

  #atHand(agentId: string, ageMs: number): FoundAgent | null {
    const recent = this.#recent.get(agentId)
    return recent && this.#t.instruments.monotonic() - recent.at < ageMs ? recent.found : null
  }

  /** The interface to speak to under the network policy, whose sentence it is when there is none. */
  #choose(card: AgentCard): { readonly endpoint: Endpoint } | MissedCard {
    const { outbound } = this.#t
    const choice = selectInterface(card, ({ url }) => outbound.refusal(url) === null)
    if ('endpoint' in choice) return choice
    const missed = (message: string): MissedCard => ({ kind: 'missed', message, permanent: true })
    if (choice.refused === 'grpc') return missed(grpcOnly)
    const refusal = choice.refused === 'forbidden' ? outbound.refusal(choice.first.url) : null
    return missed(refusal?.message ?? noInterface)
  }

  async #lookFor({ id, cardUrl }: Registered): Promise<FoundCard | MissedCard> {
    this.#asked.set(id, { beforeMs: 0, since: null })
    try {
      return await this.look(cardUrl, id)
    } finally {
      this.#asked.delete(id)
    }
  }

  async #find(agent: Registered): Promise<FoundAgent | MissedCard> {
    const { db, instruments, extensionHost } = this.#t
    const startedAt = instruments.monotonic()
    const shown = this.#unkept.get(agent.id)
    const { seen, at } =
      shown && startedAt - shown.at < dispatchAgeMs ? shown : { seen: await this.#lookFor(agent), at: startedAt }
    // A card that is not trusted is not kept either: whoever reads the kept one must not act on it.
    if (seen.kind === 'missed') return this.#lost(agent.id, seen)
    const { text, card, trust } = seen
    const digest = createHash('sha256').update(text).digest('hex')
    const routesSkills = supportsSkillRouting(card, extensionHost)
    remember(this.#unkept, agent.id, { seen, at }, agentsRemembered)
    await storeCard(db.pool, { agentId: agent.id, digest, card: text, name: card.name, trust, routesSkills })
    this.#unkept.delete(agent.id)
    const choice = this.#choose(card)
    if ('message' in choice) return this.#lost(agent.id, choice)
    const found: FoundAgent = { ...seen, endpoint: choice.endpoint }
    remember(this.#recent, agent.id, { found, at }, agentsRemembered)
    return found
  }

  /** What rules an agent out now also rules out the card of some seconds ago; what merely failed does not. */
  #lost(agentId: string, missed: MissedCard): MissedCard {
    if (missed.permanent) this.#recent.delete(agentId)
    return missed
  }

  async #read(
    body: Uint8Array,
    url: string,
  ): Promise<FoundCard | MissedCard | { readonly kind: 'fault'; readonly fault: string }> {
    const said = jsonOf(body)
    if (said === null) return { kind: 'fault', fault: 'not JSON' }
    const parsed = parseCard(said.json)
    if ('fault' in parsed) return { kind: 'fault', fault: parsed.fault }
    const { trust, signing, usable } = await this.#t.trust.judge(parsed.card, said.json, url)
    if (usable === null)
      return { kind: 'missed', message: trustRejected, permanent: true, untrusted: { trust, signing } }
    const text = usable.json === said.json ? said.text : JSON.stringify(usable.json)
    const report = complianceReport(said.json)
    return { kind: 'found', card: usable.card, raw: usable.json, text, resolvedCardUrl: url, trust, signing, report }
  }
}

const policyCodes: ReadonlySet<string> = new Set([
  'origin-not-allowed',
  'https-required',
  'blocked-address',
  'redirect',
  'too-large',
])

/** A token endpoint may be back in a second; a missing, revoked or wrong credential is there until somebody acts. */
const mayNotPass = (denial: string): boolean => denial !== credentialSentences.oauth

function jsonOf(body: Uint8Array): { readonly text: string; readonly json: unknown } | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    return { text, json: JSON.parse(text) }
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null
    throw error
  }
}
