/**
 * Organizations as the property of visibility.spec.ts draws them: people, teams, agents, grants, tasks, commands, artifacts and
 * actors in every relation that a grant knows. Owns how one is drawn; does not write it (visibility-rows.ts), and says nothing of who
 * may see what (visibility-model.ts).
 */
import fc from 'fast-check'
import { v7 as uuidv7 } from 'uuid'
import { scopeId } from '../../actors/reconciliation-scopes.ts'
import type { Role } from '../../domain/access.ts'
import type { GrantPermission, GrantSubject } from '../../domain/grant.ts'

export const skillIds = ['invoices', 'payroll'] as const
export const taskStates = ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED'] as const

export interface Person {
  readonly personId: string
  readonly membershipId: string
  readonly name: string
  readonly role: Role
  readonly enabled: boolean
}
export interface Team {
  readonly id: string
  readonly enabled: boolean
  readonly members: readonly Person[]
}
export interface Agent {
  readonly id: string
  readonly enabled: boolean
  /** What its card says, whenever somebody looks. */
  readonly routesSkills: boolean
  /** What the console knows of that; null before anybody looked. */
  known: boolean | null
}
export interface Grant {
  readonly id: string
  readonly agent: Agent
  readonly skillId: string | null
  readonly subjectType: GrantSubject
  readonly subjectId: string
  readonly permission: GrantPermission
  readonly enabled: boolean
}
export interface Task {
  readonly id: string
  readonly remoteId: string
  readonly agent: Agent
  readonly skillId: string | null
  readonly state: (typeof taskStates)[number]
  readonly createdAt: string
  readonly references: readonly string[]
  readonly owner: Person | null
  readonly dueAt: string | null
  readonly digest: string
}
export interface Command {
  readonly id: string
  readonly agent: Agent
  readonly skillId: string | null
  readonly status: 'succeeded' | 'failed' | 'uncertain'
  readonly about: Task | null
  /** The task that a look at the agent found for it. */
  readonly evidence: Task | null
  readonly at: string
}
export interface Actor {
  readonly kind: 'command' | 'subscription' | 'reconciliation'
  readonly id: string
  readonly at: string
  readonly about: Command | Task | Agent
}
export interface World {
  readonly organizationId: string
  readonly people: readonly Person[]
  readonly teams: readonly Team[]
  readonly agents: readonly Agent[]
  readonly grants: readonly Grant[]
  readonly tasks: readonly Task[]
  readonly commands: readonly Command[]
  readonly actors: readonly Actor[]
}

const skill = fc.constantFrom(null, ...skillIds)
const index = fc.nat(99)
/** What is drawn: choices only, so that a failing run can be drawn again; ids are given when it is written. */
export const plans = fc.record({
  people: fc.array(
    fc.record({
      role: fc.constantFrom<Role>('admin', 'operator', 'operator', 'viewer'),
      enabled: fc.constantFrom(true, true, true, false),
    }),
    { minLength: 3, maxLength: 3 },
  ),
  teams: fc.array(
    fc.record({ enabled: fc.constantFrom(true, true, false), members: fc.array(index, { maxLength: 3 }) }),
    {
      minLength: 1,
      maxLength: 2,
    },
  ),
  agents: fc.array(
    fc.record({
      enabled: fc.constantFrom(true, true, true, false),
      routesSkills: fc.constantFrom(true, true, false),
      isKnown: fc.boolean(),
    }),
    { minLength: 2, maxLength: 3 },
  ),
  grants: fc.array(
    fc.record({
      agent: index,
      skillId: skill,
      subject: index,
      subjectType: fc.constantFrom<GrantSubject>('organization', 'membership', 'membership', 'team'),
      permission: fc.constantFrom<GrantPermission>('read', 'operate'),
      enabled: fc.constantFrom(true, true, true, false),
    }),
    { minLength: 3, maxLength: 8 },
  ),
  tasks: fc.array(
    fc.record({
      agent: index,
      skillId: skill,
      state: fc.constantFrom(...taskStates),
      minute: fc.nat(3),
      references: fc.array(index, { maxLength: 2 }),
      owner: fc.option(index),
      due: fc.constantFrom('past', 'future', null),
      digest: fc.nat(2),
    }),
    { minLength: 5, maxLength: 8 },
  ),
  commands: fc.array(
    fc.record({
      agent: index,
      skillId: skill,
      status: fc.constantFrom<Command['status']>('succeeded', 'failed', 'uncertain', 'uncertain'),
      about: fc.option(index),
      evidence: index,
    }),
    { minLength: 3, maxLength: 5 },
  ),
})
export type Plan = typeof plans extends fc.Arbitrary<infer T> ? T : never

const pick = <T>(from: readonly T[], at: number): T => {
  const chosen = from[at % from.length]
  if (chosen === undefined) throw new Error('There is nothing to choose from.')
  return chosen
}
export const instant = (minutes: number): string => new Date(Date.UTC(2026, 0, 1) + minutes * 60_000).toISOString()

/** Gives a plan its ids. `digests`: of bytes that are stored. `at`: the moment of every command, so that lists of late ones have them. */
export function worldOf(plan: Plan, digests: readonly string[], at: Date): World {
  const organizationId = uuidv7()
  // One administrator at least, who looks at every card in the end.
  const everybody = [...plan.people, { role: 'admin' as const, enabled: true }]
  const people = everybody.map((drawn, n): Person => ({
    ...drawn,
    personId: uuidv7(),
    membershipId: uuidv7(),
    name: `Person ${n}`,
  }))
  const teams = plan.teams.map(({ enabled, members }): Team => ({
    id: uuidv7(),
    enabled,
    members: [...new Set(members.map((member) => pick(people, member)))],
  }))
  const agents = plan.agents.map(({ enabled, routesSkills, isKnown }): Agent => ({
    id: uuidv7(),
    enabled,
    routesSkills,
    known: isKnown ? routesSkills : null,
  }))
  const subjects = {
    organization: [organizationId],
    membership: people.map((p) => p.membershipId),
    team: teams.map((t) => t.id),
  }
  const granted = plan.grants.map(({ agent, subject, subjectType, ...drawn }): Grant => ({
    ...drawn,
    id: uuidv7(),
    agent: pick(agents, agent),
    subjectType,
    subjectId: pick(subjects[subjectType], subject),
  }))
  const sameAs = (grant: Grant): string =>
    [grant.enabled ? '' : grant.id, grant.agent.id, grant.skillId, grant.subjectId, grant.permission].join()
  const grants = [...new Map(granted.map((grant) => [sameAs(grant), grant])).values()]
  // Agents name their own tasks: another of theirs, of whatever skill, or one that nobody here knows.
  const nameIn = (agent: number, at: number): string => {
    const theirs = plan.tasks.flatMap((task, n) =>
      pick(agents, task.agent) === pick(agents, agent) ? [`remote-${n}`] : [],
    )
    return pick([...theirs, 'remote-unknown'], at)
  }
  const tasks = plan.tasks.map(({ agent, minute, references, owner, due, digest, ...drawn }, n): Task => ({
    ...drawn,
    id: uuidv7(),
    remoteId: `remote-${n}`,
    agent: pick(agents, agent),
    createdAt: instant(minute),
    references: [...new Set(references.map((at) => nameIn(agent, at)))].toSorted(),
    owner: owner === null ? null : pick(people, owner),
    dueAt: due === null ? null : due === 'past' ? '2026-01-01T00:00:00.000Z' : '2099-01-01T00:00:00.000Z',
    digest: pick(digests, digest),
  }))
  const commands = commandsOf(plan, agents, tasks, at)
  const actors = actorsOf(agents, tasks, commands)
  return { organizationId, people, teams, agents, grants, tasks, commands, actors }
}

function commandsOf(plan: Plan, agents: readonly Agent[], tasks: readonly Task[], at: Date): readonly Command[] {
  return plan.commands.map(({ agent, skillId, status, about, evidence }, n): Command => {
    const task = about === null ? null : pick(tasks, about)
    const its = task?.agent ?? pick(agents, agent)
    // What continues a task belongs to the task's skill; what was found for it may belong to another.
    const own = task ? task.skillId : skillId
    const theirs = tasks.filter((other) => other.agent === its)
    const strange = theirs.filter((other) => other.skillId !== own)
    const found = strange.length > 0 ? strange : theirs
    return {
      id: uuidv7(),
      agent: its,
      skillId: own,
      status,
      about: task,
      evidence: status === 'uncertain' && found.length > 0 ? pick(found, evidence) : null,
      at: new Date(at.getTime() - n * 1_000).toISOString(),
    }
  })
}

function actorsOf(agents: readonly Agent[], tasks: readonly Task[], commands: readonly Command[]): readonly Actor[] {
  return [
    ...commands.map((about): Actor => ({ kind: 'command', id: about.id, at: about.at, about })),
    ...tasks.map((about): Actor => ({ kind: 'subscription', id: about.id, at: about.createdAt, about })),
    ...agents.map((about): Actor => ({
      kind: 'reconciliation',
      id: scopeId({ agentId: about.id, tenant: '' }),
      at: instant(9),
      about,
    })),
  ]
}
