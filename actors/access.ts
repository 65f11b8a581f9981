/**
 * Changing who may see and do what: the operation behind `POST /api/admin/security`. A change, its audit row and the fact that
 * wakes everybody's streams are one transaction. Asking for what is so already changes nothing and leaves no trace. Does not own
 * what a grant means (persistence/visibility.ts).
 */
import type { Viewer } from '../domain/access.ts'
import type { AccessChange } from '../domain/grant.ts'
import { Refusal } from '../domain/refusal.ts'
import {
  addTeamMember,
  createTeam,
  disableGrant,
  disableTeam,
  insertGrant,
  isMember,
  isRegistered,
  lockGrant,
  lockTeam,
  removeTeamMember,
} from '../persistence/access.ts'
import type { Transaction } from '../persistence/connection.ts'
import { act, type Act, type ActTools } from './act.ts'

/** What was changed, for the audit trail. */
type Recorded = Pick<Act, 'subjectId' | 'data' | 'kind'>

export class Access {
  readonly #tools: ActTools

  constructor(tools: ActTools) {
    this.#tools = tools
  }

  /** Resolves once it is in force: the next request of whoever it concerns is judged by it. */
  async change({ organizationId, userId: personId }: Viewer, asked: AccessChange): Promise<void> {
    await act(this.#tools, async (tx, at) => {
      const recorded = await this.#apply(tx, organizationId, asked, at)
      // Whatever anybody may see may have changed.
      const acts = recorded ? [{ organizationId, personId, ...recorded, wakes: organizationId }] : []
      return { result: undefined, acts }
    })
  }

  /** Null where it was so already. */
  #apply(tx: Transaction, organizationId: string, asked: AccessChange, at: Date): Promise<Recorded | null> {
    switch (asked.action) {
      case 'createTeam':
        return this.#createTeam(tx, organizationId, asked.name)
      case 'addTeamMember':
        return this.#addMember(tx, organizationId, asked)
      case 'removeTeamMember':
        return removeMember(tx, organizationId, asked)
      case 'disableTeam':
        return endTeam(tx, organizationId, asked.teamId)
      case 'grant':
        return this.#grant(tx, organizationId, asked)
      case 'revokeGrant':
        return revoke(tx, organizationId, asked.grantId, at.toISOString())
    }
  }

  async #createTeam(tx: Transaction, organizationId: string, name: string): Promise<Recorded> {
    const id = this.#tools.instruments.newToken()
    await createTeam(tx, { id, organizationId, name })
    return { kind: 'team.created', subjectId: id, data: { name } }
  }

  async #addMember(
    tx: Transaction,
    organizationId: string,
    { teamId, membershipId }: Member,
  ): Promise<Recorded | null> {
    // A disabled team gives nothing and is never enabled again, so nobody is added to it.
    if (!(await lockTeam(tx, organizationId, teamId))?.enabled) throw new Refusal('access.team.unknown')
    if (!(await isMember(tx, organizationId, membershipId))) throw new Refusal('access.membership.unknown')
    const added = await addTeamMember(tx, { id: this.#tools.instruments.newToken(), teamId, membershipId })
    return added ? { kind: 'team.member_added', subjectId: teamId, data: { membershipId } } : null
  }

  async #grant(tx: Transaction, organizationId: string, { action: _, ...wanted }: Granting): Promise<Recorded | null> {
    const { agentId, skillId, subjectType, subjectId, permission } = wanted
    if (!(await isRegistered(tx, organizationId, agentId))) throw new Refusal('access.agent.unknown')
    if (!(await isSubject(tx, organizationId, wanted))) throw new Refusal('access.subject.unknown')
    const id = this.#tools.instruments.newToken()
    const isNew = await insertGrant(tx, { id, organizationId, ...wanted })
    const data = { agentId, skillId, subjectType, subjectId, permission }
    return isNew ? { kind: 'access.granted', subjectId: id, data } : null
  }
}

type Member = Extract<AccessChange, { readonly action: 'addTeamMember' | 'removeTeamMember' }>
type Granting = Extract<AccessChange, { readonly action: 'grant' }>

async function isSubject(
  tx: Transaction,
  organizationId: string,
  { subjectType, subjectId }: Pick<Granting, 'subjectType' | 'subjectId'>,
): Promise<boolean> {
  if (subjectType === 'organization') return subjectId === organizationId
  if (subjectType === 'membership') return isMember(tx, organizationId, subjectId)
  return (await lockTeam(tx, organizationId, subjectId))?.enabled === true
}

async function removeMember(
  tx: Transaction,
  organizationId: string,
  { teamId, membershipId }: Member,
): Promise<Recorded | null> {
  if (!(await lockTeam(tx, organizationId, teamId))) throw new Refusal('access.team.unknown')
  if (await removeTeamMember(tx, teamId, membershipId))
    return { kind: 'team.member_removed', subjectId: teamId, data: { membershipId } }
  if (await isMember(tx, organizationId, membershipId)) return null
  throw new Refusal('access.membership.unknown')
}

async function endTeam(tx: Transaction, organizationId: string, teamId: string): Promise<Recorded | null> {
  const team = await lockTeam(tx, organizationId, teamId)
  if (!team) throw new Refusal('access.team.unknown')
  if (!team.enabled) return null
  await disableTeam(tx, teamId)
  return { kind: 'team.disabled', subjectId: teamId, data: {} }
}

async function revoke(tx: Transaction, organizationId: string, id: string, at: string): Promise<Recorded | null> {
  const grant = await lockGrant(tx, organizationId, id)
  if (!grant) throw new Refusal('access.grant.unknown')
  if (!grant.enabled) return null
  await disableGrant(tx, id, at)
  const { agentId, skillId, subjectType, subjectId, permission } = grant
  return { kind: 'access.revoked', subjectId: id, data: { agentId, skillId, subjectType, subjectId, permission } }
}
