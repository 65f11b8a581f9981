/**
 * Registering, listing and removing agents: the operations behind `/api/agents`. Does not fetch cards (discovery.ts).
 */
import { once } from 'node:events'
import { reducedCard, reducedReport } from '../a2a/card-reduction.ts'
import { supportsSkillRouting } from '../a2a/extensions/skill-routing.ts'
import {
  parseCardUrl,
  type Agent,
  type AgentSource,
  type CardSigning,
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
  type SeenAgent,
} from '../persistence/agents.ts'
import { act, type Act, type ActTools } from './act.ts'
import type { Discovery, FoundCard, MissedCard } from './discovery.ts'

/** A list answers although some agents do not: together they get this long. What is under way then goes on, and is kept. */
const listPatienceMs = 5_000
/** Cards fetched at once for one list. */
const listConcurrency = 64

export interface AgentDetail extends RegisteredAgent {
  readonly card: unknown
  readonly trust: Trust
  readonly signing: CardSigning
  readonly report: ComplianceReport
  readonly operableSkills: string[] | null
}

/** What became of asking one agent for its card. Null: of what it showed the viewer is to see nothing. */
export interface AnsweredAgent {
  readonly id: string
  readonly agent: Agent | null
}

export interface AgentListing {
  /** By what is kept, with neither a card nor an error: nobody was asked yet. */
  readonly kept: readonly Agent[]
  /** Each of them once, as soon as it answers or is not waited for any longer; they are asked while this is read. Ends early where the signal aborts. */
  readonly answers: (signal: AbortSignal) => AsyncIterable<AnsweredAgent>
}

export interface CardPreview {
  readonly card: unknown
  readonly resolvedCardUrl: string
  readonly report: ComplianceReport
}

export interface AgentsTools extends ActTools {
  readonly discovery: Discovery
  readonly extensionHost: string
}

const faults = {
  scheme: 'agent.url.scheme',
  decorated: 'agent.url.decorated',
  length: 'agent.url.length',
} as const satisfies Record<string, RefusalCode>

/** To whom the card is reduced nothing of its signatures is told: key ids and names of fields are the agent's words, too. */
const reducedSigning = ({ explanation, keyId }: CardSigning): CardSigning => ({
  explanation,
  ...(keyId === undefined ? {} : { keyId }),
  namedKeys: [],
})

const checkedUrl = (cardUrl: string): string => {
  const parsed = parseCardUrl(cardUrl)
  if ('fault' in parsed) throw new Refusal(faults[parsed.fault])
  return parsed.url
}

const actOn = (
  kind: 'agent.registered' | 'agent.removed',
  { id, organizationId, cardUrl, source }: AgentRow,
  personId: string | null,
): Act => ({ organizationId, kind, personId, subjectId: id, data: { cardUrl, source }, wakes: id })

export class Agents {
  readonly #t: AgentsTools
  /** Whom a list had no time to ask, longest first: the next one asks them first, or who hangs would keep them from ever being asked. */
  readonly #passedOver = new Set<string>()

  constructor(tools: AgentsTools) {
    this.#t = tools
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
    await releaseSeeded(this.#t.db.pool, organizationId, urls)
  }

  async #register(
    organizationId: string,
    cardUrl: string,
    source: AgentSource,
    personId: string | null,
  ): Promise<AgentRow> {
    const fresh = { id: this.#t.instruments.newToken(), organizationId, cardUrl, source, name: new URL(cardUrl).host }
    return act(this.#t, async (tx) => {
      const { agent, changed } = await registerAgent(tx, fresh)
      return { result: agent, acts: changed ? [actOn('agent.registered', agent, personId)] : [] }
    })
  }

  async remove(viewer: Viewer, id: string): Promise<void> {
    await act(this.#t, async (tx) => {
      const agent = await findAgent(tx, viewer, id)
      if (!agent) throw new Refusal('agent.unknown')
      if (agent.source === 'env') throw new Refusal('agent.seeded')
      if (!(await disableAgent(tx, viewer.organizationId, id))) throw new Refusal('agent.unknown')
      return { result: undefined, acts: [actOn('agent.removed', agent, viewer.userId)] }
    })
    this.#passedOver.delete(id)
  }

  /** Every agent that the viewer holds, with the card it shows now; one that cannot be found stays in the list and says why. */
  async list(viewer: Viewer): Promise<Agent[]> {
    const { kept, answers } = await this.listing(viewer)
    const answered = new Map<string, Agent | null>()
    for await (const { id, agent } of answers(new AbortController().signal)) answered.set(id, agent)
    return kept.flatMap(({ id }) => answered.get(id) ?? [])
  }

  /** The same for who wants to see the others before the last has answered. */
  async listing(viewer: Viewer): Promise<AgentListing> {
    const rows = await listAgents(this.#t.db.pool, viewer)
    return { kept: rows.map(keptAgent), answers: (signal) => this.#answers(rows, signal) }
  }

  async *#answers(rows: readonly SeenAgent[], signal: AbortSignal): AsyncGenerator<AnsweredAgent> {
    const ended = signal.aborted ? Promise.resolve(null) : once(signal, 'abort').then(() => null)
    const turns = new Map([...this.#passedOver].map((id, turn) => [id, turn]))
    const turnOf = ({ id }: SeenAgent): number => turns.get(id) ?? turns.size
    const queue = rows.toSorted((a, b) => turnOf(a) - turnOf(b))
    const late = new Lateness(listPatienceMs)
    const asked = new Map<string, Promise<AnsweredAgent>>()
    for (;;) {
      for (const row of queue.splice(0, listConcurrency - asked.size))
        asked.set(
          row.id,
          this.#describe(row, late).then((agent) => ({ id: row.id, agent })),
        )
      if (asked.size === 0) return
      const answer = await Promise.race([ended, ...asked.values()])
      if (answer === null) return
      asked.delete(answer.id)
      yield answer
    }
  }

  async #describe(row: SeenAgent, late: Lateness): Promise<Agent | null> {
    const { heldSkills } = row
    const kept = keptAgent(row)
    const found = await this.#heard(row, late)
    if (found.kind === 'missed') {
      const { untrusted: { trust, signing } = {}, message: error } = found
      const judged = trust && signing ? { trust, signing: heldSkills === null ? signing : reducedSigning(signing) } : {}
      return { ...kept, ...judged, error }
    }
    const seen = this.#seen(found, row)
    if (!seen) return null
    const { name, description } = found.card
    const { skills, ...shown } = seen
    return { ...kept, name, description, skills: [...skills], ...shown }
  }

  /** Who is being asked already, for this list or for somebody else, has not answered; the others are not begun with. */
  async #heard(row: SeenAgent, late: Lateness): Promise<FoundCard | MissedCard> {
    const { discovery } = this.#t
    if (late.isOver && !discovery.isLookingFor(row.id)) {
      this.#passedOver.add(row.id)
      return notAsked
    }
    this.#passedOver.delete(row.id)
    return (await late.unless(() => discovery.find(row))) ?? silent(row.cardUrl)
  }

  async get(viewer: Viewer, id: string): Promise<AgentDetail> {
    const row = await findAgent(this.#t.db.pool, viewer, id)
    if (!row) throw new Refusal('agent.unknown')
    const found = await this.#t.discovery.find(row)
    if (found.kind === 'missed') throw new Refusal('agent.discovery', found.message)
    const seen = this.#seen(found, row)
    if (!seen) throw new Refusal('agent.unknown')
    const { skills: _, ...shown } = seen
    const { cardUrl, source, operableSkills } = row
    return { id: row.id, cardUrl, source, ...shown, operableSkills }
  }

  /**
   * The card as this viewer may see it: whole, or reduced to the skills held. Null where only skills are held and the card, which
   * may just have been seen for the first time, does not route them: then nothing of it is.
   */
  #seen({ card, raw, trust, signing, report }: FoundCard, { heldSkills }: SeenAgent) {
    if (heldSkills === null) return { card: raw, trust, signing, report, skills: card.skills }
    if (!supportsSkillRouting(card, this.#t.extensionHost)) return null
    const { skills, ...reduced } = reducedCard(card, new Set(heldSkills))
    const told = { signing: reducedSigning(signing), report: reducedReport(report) }
    return { card: { ...reduced, skills }, trust, ...told, skills }
  }

  /** Looks at a card without credentials, registration or snapshot. */
  async preview(cardUrl: string): Promise<CardPreview> {
    const seen = await this.#t.discovery.preview(checkedUrl(cardUrl))
    if (seen.kind === 'missed') throw new Refusal('agent.discovery', seen.message)
    return { card: seen.raw, resolvedCardUrl: seen.resolvedCardUrl, report: seen.report }
  }
}

/** Once its card was read its name is known, and stands on its tasks as ever; before, there is only its address. */
const keptAgent = ({ id, cardUrl, source, operableSkills, card, name }: SeenAgent): Agent => ({
  id,
  cardUrl,
  source,
  operableSkills,
  ...(card === null ? {} : { name }),
})

const silent = (cardUrl: string): MissedCard => ({
  kind: 'missed',
  message: `Agent Card discovery failed. Tried: ${cardUrl} (no answer yet)`,
  permanent: false,
})

const notAsked: MissedCard = {
  kind: 'missed',
  message: 'Not asked for its Agent Card yet: the agents before it have not answered. Ask again in a moment.',
  permanent: false,
}

/** One patience for many questions: once it is over nothing is begun any more, and nothing is waited for. */
class Lateness {
  readonly #come: Promise<null>
  #isOver = false

  constructor(ms: number) {
    this.#come = once(AbortSignal.timeout(ms), 'abort').then(() => {
      this.#isOver = true
      return null
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Null where the answer would come too late. */
  async unless<T>(ask: () => Promise<T>): Promise<T | null> {
    return this.#isOver ? null : Promise.race([ask(), this.#come])
  }
}
