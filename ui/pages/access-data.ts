/** What the pages of access share: the record, names for its ids, and the sentences of scopes and subjects. Owns no state. */
import { html, type TemplateResult } from 'lit'
import { AccessRecord, type AccessChange, type Grant } from '../../domain/grant.ts'
import type { RoutesSkills } from '../../domain/access-effects.ts'
import type { Agent } from '../../domain/agent.ts'
import { hostOf, readCard } from '../card.ts'
import { icon } from '../elements/icon.ts'
import { plural } from '../format.ts'
import type { Question } from '../queries.ts'

/** Steady: an administrator may ask 60 times a minute, and changes of access are few. */
export const accessQuestion: Question<AccessRecord> = {
  path: '/api/admin/security',
  schema: AccessRecord,
  freshness: 'steady',
}

/** A change that somebody is asked to confirm. */
export interface Proposal {
  readonly title: string
  /** What it means beside its effects on people, which are told by themselves. */
  readonly sentences: readonly string[]
  readonly word: string
  readonly change: AccessChange
}

/** Bubbles from a view of access to the page, which asks. */
export class ProposeEvent extends Event {
  readonly proposal: Proposal
  constructor(proposal: Proposal) {
    super('propose', { bubbles: true, composed: true })
    this.proposal = proposal
  }
}

export const nameOf = ({ name, cardUrl }: Agent): string => name ?? hostOf(cardUrl)

export class Directory {
  readonly record: AccessRecord
  /** Undefined while agents are still being asked for their cards. */
  readonly agents: readonly Agent[] | undefined
  readonly #agents: ReadonlyMap<string, Agent>

  constructor(record: AccessRecord, agents: readonly Agent[] | undefined) {
    this.record = record
    this.agents = agents
    this.#agents = new Map((agents ?? []).map((agent) => [agent.id, agent]))
  }

  agent(id: string): string {
    const agent = this.#agents.get(id)
    if (agent) return nameOf(agent)
    return this.agents ? `Removed agent ${id.slice(0, 8)}` : id.slice(0, 8)
  }

  has(agentId: string): boolean {
    return this.#agents.has(agentId)
  }

  skillsOf(agentId: string): readonly { readonly id: string; readonly name: string }[] {
    return (this.#agents.get(agentId)?.skills ?? []).map(({ id, name }) => ({ id, name }))
  }

  /** The host in the extension's URI is the deployment's, which a page does not know, so every host is a yes. */
  readonly routesSkills: RoutesSkills = (agentId) => {
    const card = readCard(this.#agents.get(agentId)?.card)
    return card ? card.extensions.some(({ uri }) => uri.endsWith('/console/skill-routing/v1')) : null
  }

  person(membershipId: string): string {
    return this.record.memberships.find(({ id }) => id === membershipId)?.name ?? 'Somebody who was withdrawn'
  }

  team(teamId: string): string {
    return this.record.teams.find(({ id }) => id === teamId)?.name ?? 'Unknown team'
  }

  /** Members who may sign in: a withdrawn membership stays in its teams and is nobody. */
  membersOf(teamId: string): AccessRecord['memberships'] {
    const ids = new Set(
      this.record.teamMembers.filter((each) => each.teamId === teamId).map((each) => each.membershipId),
    )
    return this.record.memberships.filter(({ id }) => ids.has(id))
  }

  subject({ subjectType, subjectId }: Pick<Grant, 'subjectType' | 'subjectId'>): string {
    if (subjectType === 'organization')
      return `Everybody (${plural(this.record.memberships.length, 'person', 'people')})`
    return subjectType === 'team' ? this.team(subjectId) : this.person(subjectId)
  }

  get openGrants(): readonly Grant[] {
    return this.record.grants.filter(({ enabled }) => enabled)
  }
}

/** Who came by an address that is not for them learns why the page is empty. */
export const adminsOnly = (what: string): TemplateResult =>
  html`<div class="empty">
    ${icon('key-round', 28)}<b>${what} is for administrators</b>
    <p>Your role does not include it. Ask an administrator if you need something from here.</p>
  </div>`
