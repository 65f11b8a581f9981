/**
 * Why a person sees an agent, or does not: the role, and every grant that names them, with what keeps it from counting. The
 * same rule as persistence/visibility.ts, told in words from what an administrator reads; it decides nothing.
 */
import { mayEver, type Role } from './access.ts'
import type { AccessRecord, Grant, GrantPermission } from './grant.ts'
import { isolated } from './isolation.ts'

type Person = AccessRecord['memberships'][number]

/** `revoked`: the grant was. `team`: its team is disabled. `unrouted`: a grant of a skill of an agent that ignores skills. */
export type Obstacle = 'revoked' | 'team' | 'unrouted'

/** A grant that names the person. */
export interface Way {
  readonly grant: Grant
  /** Name of the team through which it does; null where it is their own or everybody's. */
  readonly team: string | null
  readonly obstacle: Obstacle | null
}

export interface AccessReasons {
  readonly person: Person
  /** What they hold of the agent as a whole. `administer`: their role holds all there is. */
  readonly whole: GrantPermission | 'administer' | null
  /** What they hold of single skills where that is more than they hold of the whole, by skill id. */
  readonly skills: ReadonlyMap<string, GrantPermission>
  /** Those that count first, in the order in which they were given. */
  readonly ways: readonly Way[]
}

export interface AccessQuestion {
  readonly membershipId: string
  readonly agentId: string
  /** Whether its card advertises skill routing; null while the card is not known. Only a known no disables grants of skills. */
  readonly routesSkills: boolean | null
}

/** Null where nobody by that id may sign in. */
export function accessReasons(record: AccessRecord, question: AccessQuestion): AccessReasons | null {
  const person = record.memberships.find(({ id }) => id === question.membershipId)
  if (!person) return null
  const ways = record.grants
    .filter(({ agentId }) => agentId === question.agentId)
    .flatMap((grant) => wayOf(record, question, grant) ?? [])
  const counting = ways.filter(({ obstacle }) => obstacle === null).map(({ grant }) => grant)
  return {
    person,
    ...heldBy(person.role, counting),
    ways: ways.toSorted((a, b) => Number(a.obstacle !== null) - Number(b.obstacle !== null)),
  }
}

function wayOf(record: AccessRecord, { membershipId, routesSkills }: AccessQuestion, grant: Grant): Way | null {
  const { subjectType, subjectId, skillId } = grant
  const unrouted = skillId !== null && routesSkills === false ? 'unrouted' : null
  const obstacle: Obstacle | null = grant.enabled ? unrouted : 'revoked'
  if (subjectType === 'organization')
    return subjectId === record.organizationId ? { grant, team: null, obstacle } : null
  if (subjectType === 'membership') return subjectId === membershipId ? { grant, team: null, obstacle } : null
  const team = record.teams.find(({ id }) => id === subjectId)
  const isIn = record.teamMembers.some((each) => each.teamId === subjectId && each.membershipId === membershipId)
  if (!team || !isIn) return null
  return { grant, team: team.name, obstacle: grant.enabled && !team.enabled ? 'team' : obstacle }
}

function heldBy(role: Role, grants: readonly Grant[]): Pick<AccessReasons, 'whole' | 'skills'> {
  if (role === 'admin') return { whole: 'administer', skills: new Map() }
  const most = (of: readonly Grant[]): GrantPermission | null => {
    if (of.length === 0) return null
    return mayEver(role, 'operate') && of.some(({ permission }) => permission === 'operate') ? 'operate' : 'read'
  }
  const whole = most(grants.filter(({ skillId }) => skillId === null))
  const bySkill = Map.groupBy(
    grants.filter(({ skillId }) => skillId !== null),
    ({ skillId }) => skillId ?? '',
  )
  const skills = [...bySkill].flatMap(([skillId, of]): [string, GrantPermission][] => {
    const held = most(of)
    return held === null || held === whole || whole === 'operate' ? [] : [[skillId, held]]
  })
  return { whole, skills: new Map(skills) }
}

export interface ReasonLine {
  readonly text: string
  readonly counts: boolean
}

/** The answer in one sentence, and a line for each reason, the deciding ones first. `agent`: its name. */
export function explainAccess(
  reasons: AccessReasons,
  agent: string,
): { verdict: string; lines: readonly ReasonLine[] } {
  const { person, whole, ways } = reasons
  const name = isolated(person.name)
  const byRole: ReasonLine[] =
    whole === 'administer'
      ? [{ text: `${name} is an administrator. Administrators see every agent, without a grant.`, counts: true }]
      : []
  const byGrant = ways.map((way) => lineOf(way, person, whole === 'administer'))
  const none = byRole.length + byGrant.length === 0
  const invisible = { text: `No grant names ${name}, a team of theirs or the organization.`, counts: false }
  return { verdict: verdictOf(reasons, isolated(agent)), lines: none ? [invisible] : [...byRole, ...byGrant] }
}

const skillNames = (skillIds: readonly string[]): string =>
  `the ${skillIds.length === 1 ? 'skill' : 'skills'} ${skillIds.map((id) => `“${isolated(id)}”`).join(', ')}`

function verdictOf({ person, whole, skills }: AccessReasons, agent: string): string {
  const name = isolated(person.name)
  if (whole === 'administer')
    return `${name} sees ${agent} and all its tasks, may send to it, and may change who else does.`
  if (whole === 'operate') return `${name} sees ${agent} and all its tasks, and may send to it.`
  const sendable = [...skills].flatMap(([id, permission]) => (permission === 'operate' ? [id] : []))
  const sending = sendable.length === 0 ? 'and may send nothing' : `and may send only to ${skillNames(sendable)}`
  if (whole === 'read') return `${name} sees ${agent} and all its tasks, ${sending}.`
  if (skills.size > 0) return `${name} sees ${agent} with ${skillNames([...skills.keys()])} only, ${sending}.`
  return `${name} does not see ${agent}: for them it does not exist.`
}

const obstacles: Record<Obstacle, string> = {
  revoked: 'That grant was revoked, so it gives nothing.',
  team: 'That team is disabled, so it gives nothing.',
  unrouted: 'The agent does not advertise skill routing, so a grant of one skill gives nothing.',
}

function lineOf({ grant, team, obstacle }: Way, person: Person, needless: boolean): ReasonLine {
  const { skillId, subjectType, permission } = grant
  const name = isolated(person.name)
  const what = skillId === null ? 'The agent' : `Its skill “${isolated(skillId)}”`
  const whom = {
    organization: 'everybody in the organization',
    membership: name,
    team: `the team “${isolated(team ?? '')}”, which ${name} is in`,
  }[subjectType]
  const may = permission === 'operate' ? 'to read and send' : 'to read'
  const ceiling =
    permission === 'operate' && person.role === 'viewer' && obstacle === null ? ' As a viewer they read only.' : ''
  const hindered = obstacle === null ? ceiling : ` ${obstacles[obstacle]}`
  return { text: `${what} was granted to ${whom}, ${may}.${hindered}`, counts: obstacle === null && !needless }
}
