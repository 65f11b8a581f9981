/**
 * Who may sign in: memberships of a provider's identities, made and taken back by an operator. Nothing else makes one; a
 * sign-in never does. Owns their audit; does not own the flags (bin/provision.ts) or what a membership sees (access.ts).
 */
import {
  disableMember,
  ensureOrganization,
  provisionMember,
  type Identity,
  type LocalIds,
  type Provisioned,
} from '../persistence/people.ts'
import { deleteSessionsOf } from '../persistence/sessions.ts'
import { act, type ActTools } from './act.ts'

/** Admits an identity to the organization `slug`, which is made where it is missing. A second time changes name and role. */
export async function provision(tools: ActTools, slug: string, person: Provisioned): Promise<LocalIds> {
  const { newToken } = tools.instruments
  return act(tools, async (tx) => {
    const organizationId = await ensureOrganization(tx, slug, newToken())
    const fresh = { personId: newToken(), membershipId: newToken() }
    const member = await provisionMember(tx, organizationId, person, fresh)
    const { identity, role } = person
    const { membershipId } = member
    const done = { kind: 'identity.provisioned', subjectId: membershipId, data: { ...identity, role } } as const
    // A second time it may be another role, and what they have open is judged by it.
    const acts = [{ organizationId, personId: null, ...done, wakes: membershipId }]
    return { result: { organizationId, ...member }, acts }
  })
}

/** Takes a membership back and ends its sessions, and what they have open; null where there was none that was enabled. */
export async function withdraw(tools: ActTools, slug: string, identity: Identity): Promise<LocalIds | null> {
  return act(tools, async (tx) => {
    const member = await disableMember(tx, slug, identity)
    if (!member) return { result: null, acts: [] }
    const { organizationId, membershipId } = member
    const sessions = await deleteSessionsOf(tx, membershipId)
    const done = { kind: 'access.revoked', subjectId: membershipId, data: { ...identity, sessions } } as const
    return { result: member, acts: [{ organizationId, personId: null, ...done, wakes: membershipId }] }
  })
}
