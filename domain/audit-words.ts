/**
 * Records of the audit trail in plain words. Owns one sentence for every kind; names are looked up by whoever shows them, and what
 * has none any more is told by its id. Nothing of what a person or an agent wrote is in a record, so none is in a sentence.
 */
import type { AuditKind, AuditRecord } from './audit.ts'
import { isolated } from './isolation.ts'

/** Undefined where nothing is known by that id. */
export interface AuditNames {
  /** By user id or membership id. */
  readonly person: (id: string) => string | undefined
  readonly agent: (id: string) => string | undefined
  readonly team: (id: string) => string | undefined
}

const shortId = (id: string): string => id.slice(0, 8)

/** Who did it. */
export function auditActor({ actorType, actorUserId }: AuditRecord, names: AuditNames): string {
  if (actorUserId !== null) return isolated(names.person(actorUserId) ?? `Person ${shortId(actorUserId)}`)
  return actorType === 'agent' ? 'The agent' : 'The system'
}

/** A record with its names at hand. */
class Telling {
  readonly #record: AuditRecord
  readonly #names: AuditNames

  constructor(record: AuditRecord, names: AuditNames) {
    this.#record = record
    this.#names = names
  }

  text(field: string): string {
    const value = this.#record.data[field]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  }

  get subject(): string {
    return this.#record.subjectId ?? ''
  }

  has(field: string): boolean {
    return this.text(field) !== ''
  }

  person(id: string): string {
    const name = this.#names.person(id)
    return name === undefined ? `a person (${shortId(id)})` : isolated(name)
  }

  agent(id: string): string {
    const name = this.#names.agent(id)
    return name === undefined ? `an agent (${shortId(id)})` : isolated(name)
  }

  team(id: string): string {
    const name = this.#names.team(id)
    return name === undefined ? `a team (${shortId(id)})` : `the team “${isolated(name)}”`
  }

  /** The subject of a grant. */
  holder(): string {
    const id = this.text('subjectId')
    const type = this.text('subjectType')
    if (type === 'organization') return 'everybody in the organization'
    return type === 'team' ? this.team(id) : this.person(id)
  }

  /** What was granted. */
  scope(): string {
    const agent = this.agent(this.text('agentId'))
    return this.has('skillId') ? `the skill “${isolated(this.text('skillId'))}” of ${agent}` : agent
  }

  permission(): string {
    return this.text('permission') === 'operate' ? 'to read and send' : 'to read'
  }
}

const revoked = (it: Telling): string => {
  if (it.has('subjectType')) return `revoked ${it.scope()} from ${it.holder()}`
  return `withdrew the membership of ${it.person(it.subject)}; their sessions ended`
}

const exported = (it: Telling): string => {
  if (it.text('format') !== 'csv') return `exported the chain, rows ${Number(it.text('after')) + 1} to ${it.text('to')}`
  return `exported the audit trail as CSV, ${it.text('records')} records`
}

/** The decision in its own words, of which it has none but hyphens: `not-arrived`. */
const settled = (it: Telling): string =>
  `settled a send to ${it.agent(it.text('agentId'))} as ${it.text('decision').replaceAll('-', ' ')}`

/** What was decided before stays in the trail, and is named again with what took it back. */
const reopened = (it: Telling): string =>
  `reopened a send to ${it.agent(it.text('agentId'))} that was settled as ${it.text('decision').replaceAll('-', ' ')}`

const sentences: Record<AuditKind, (it: Telling) => string> = {
  'session.started': () => 'signed in',
  'session.ended': () => 'signed out',
  'identity.provisioned': (it) => `admitted ${it.person(it.subject)} as ${it.text('role')}`,
  'agent.registered': (it) => `registered ${it.agent(it.subject)} at ${isolated(it.text('cardUrl'))}`,
  'agent.removed': (it) => `removed ${it.agent(it.subject)}`,
  'credential.rotated': (it) => `stored a credential (${it.text('kind')}) for ${it.agent(it.subject)}`,
  'credential.revoked': (it) => `revoked the credential (${it.text('kind')}) for ${it.agent(it.subject)}`,
  'access.granted': (it) => `granted ${it.scope()} to ${it.holder()}, ${it.permission()}`,
  'access.revoked': revoked,
  'team.created': (it) => `created the team “${isolated(it.text('name'))}”`,
  'team.member_added': (it) => `added ${it.person(it.text('membershipId'))} to ${it.team(it.subject)}`,
  'team.member_removed': (it) => `took ${it.person(it.text('membershipId'))} out of ${it.team(it.subject)}`,
  'team.disabled': (it) => `disabled ${it.team(it.subject)}`,
  'escalation.policy_saved': () => 'saved the escalation policy',
  'task.send.accepted': (it) => `sent a message to ${it.agent(it.text('agentId'))}`,
  'task.cancel.accepted': (it) => `asked ${it.agent(it.text('agentId'))} to cancel`,
  'command.settled': settled,
  'command.reopened': reopened,
  'decision.requested': () => 'asked for an approval',
  'decision.revised': () => 'revised what is to be approved',
  'decision.approve': () => 'approved',
  'decision.edit': () => 'edited and approved',
  'decision.reject': () => 'rejected',
  'decision.request_changes': () => 'asked for changes',
  'decision.delegate': () => 'delegated the decision',
  'decision.expired': () => 'closed an approval whose time was over',
  'decision.superseded': () => 'closed an approval that another one replaced',
  'task.claimed': () => 'took the task',
  'task.released': () => 'gave the task back',
  'task.assigned': () => 'assigned the task',
  'task.due_set': () => 'set when the task is due',
  'task.due_cleared': () => 'cleared when the task is due',
  'task.escalated': () => 'escalated the task',
  'task.note_added': () => 'added a note to the task',
  'audit.exported': exported,
}

const isKnown = (kind: string): kind is AuditKind => Object.hasOwn(sentences, kind)

/** What was done, to be read after who did it. A kind newer than this page is told by its name. */
export const auditWords = (record: AuditRecord, names: AuditNames): string =>
  isKnown(record.kind) ? sentences[record.kind](new Telling(record, names)) : record.kind
