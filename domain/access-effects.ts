/**
 * What a change of access would change, for whom: told before somebody confirms it. Compares what each person holds before and
 * after (access-reasons.ts), so that a grant which gives nothing new, or whose end takes nothing away, says so. Changes nothing.
 */
import type { AccessChange, AccessRecord, GrantPermission } from './grant.ts'
import { accessReasons, type AccessReasons } from './access-reasons.ts'
import { isolated } from './isolation.ts'

type Held = Pick<AccessReasons, 'whole' | 'skills'>

export interface AccessEffect {
  readonly agentId: string
  readonly person: AccessRecord['memberships'][number]
  readonly before: Held
  readonly after: Held
}

/** Whether an agent's card advertises skill routing; null where that is not known. */
export type RoutesSkills = (agentId: string) => boolean | null

/** The record as it would be. What has no effect on what anybody holds, a new team, leaves it as it is. */
export function changedRecord(record: AccessRecord, change: AccessChange): AccessRecord {
  const { teams, teamMembers, grants } = record
  switch (change.action) {
    case 'createTeam':
      return record
    case 'addTeamMember': {
      const { teamId, membershipId } = change
      return { ...record, teamMembers: [...teamMembers, { id: 'new', teamId, membershipId }] }
    }
    case 'removeTeamMember': {
      const stays = (each: AccessRecord['teamMembers'][number]): boolean =>
        each.teamId !== change.teamId || each.membershipId !== change.membershipId
      return { ...record, teamMembers: teamMembers.filter(stays) }
    }
    case 'disableTeam': {
      const disabled = teams.map((team) => (team.id === change.teamId ? { ...team, enabled: false } : team))
      return { ...record, teams: disabled }
    }
    case 'grant': {
      const { action: _, ...grant } = change
      return { ...record, grants: [...grants, { id: 'new', enabled: true, ...grant }] }
    }
    case 'revokeGrant': {
      const revoked = grants.map((grant) => (grant.id === change.grantId ? { ...grant, enabled: false } : grant))
      return { ...record, grants: revoked }
    }
  }
}

/** Agents that a change can touch at all. */
function agentsTouched({ grants }: AccessRecord, change: AccessChange): ReadonlySet<string> {
  if (change.action === 'createTeam') return new Set()
  if (change.action === 'grant') return new Set([change.agentId])
  const touched = grants.filter(({ id, subjectType, subjectId }) =>
    change.action === 'revokeGrant' ? id === change.grantId : subjectType === 'team' && subjectId === change.teamId,
  )
  return new Set(touched.map(({ agentId }) => agentId))
}

const isSame = (a: Held, b: Held): boolean =>
  a.whole === b.whole &&
  a.skills.size === b.skills.size &&
  [...a.skills].every(([id, held]) => b.skills.get(id) === held)

export function effectsOf(record: AccessRecord, change: AccessChange, routesSkills: RoutesSkills): AccessEffect[] {
  const next = changedRecord(record, change)
  const agents = [...agentsTouched(record, change)]
  return record.memberships.flatMap((person) =>
    agents.flatMap((agentId) => {
      const question = { membershipId: person.id, agentId, routesSkills: routesSkills(agentId) }
      const before = accessReasons(record, question)
      const after = accessReasons(next, question)
      return before && after && !isSame(before, after) ? [{ agentId, person, before, after }] : []
    }),
  )
}

const permissionWords: Record<GrantPermission, string> = { operate: 'read and send', read: 'read' }

/** The rest of a sentence that begins with names: what these people will hold. */
function outcome({ before, after }: AccessEffect, agent: string): string {
  const skills = [...after.skills]
    .map(([id, held]) => `the skill “${isolated(id)}” (${permissionWords[held]})`)
    .join(', ')
  if (after.whole === null && after.skills.size === 0) return `will no longer see ${agent}`
  if (after.whole === null) return `will see ${agent} with ${skills} only`
  const also = skills === '' ? '' : `, and of it hold ${skills}`
  if (after.whole === 'read' && before.whole === 'operate')
    return `will still see ${agent}, and may no longer send to it${also}`
  if (after.whole === 'operate' && before.whole !== null) return `may send to ${agent}, which they see already`
  if (after.whole === 'operate') return `will see ${agent} and all its tasks, and may send to it`
  return `will see ${agent} and all its tasks, and may not send to it${also}`
}

const namedPeople = 5
function people(names: readonly string[]): string {
  const shown = names.slice(0, namedPeople).map(isolated)
  const more = names.length - shown.length
  const list = more > 0 ? [...shown, `${more} more`] : shown
  return list.length > 1 ? `${list.slice(0, -1).join(', ')} and ${list.at(-1) ?? ''}` : (list[0] ?? '')
}

/** A sentence for each thing that changes, with the people for whom it does. Empty where nothing does. */
export function effectWords(effects: readonly AccessEffect[], agentName: (id: string) => string): string[] {
  const byOutcome = Map.groupBy(effects, (effect) => outcome(effect, isolated(agentName(effect.agentId))))
  return [...byOutcome].map(([what, of]) => `${people(of.map(({ person }) => person.name))} ${what}.`)
}
