/**
 * Who may see and do what, written from the specification [console-http-api: "Authentication" 4, 5; decided-shapes] in plain
 * loops over everything there is. It shares no code with the product: a suspect is no witness.
 */
import type { Role } from '../../domain/access.ts'
import type { Agent, Command, Grant, Person, Task, World } from './visibility-world.ts'

const looks: ReadonlySet<Role> = new Set(['admin', 'operator', 'viewer'])
const acts: ReadonlySet<Role> = new Set(['admin', 'operator'])

export interface SeenAgent {
  readonly id: string
  /** Null: all there are. */
  readonly skills: readonly string[] | null
  readonly operableSkills: readonly string[] | null
}

export class Model {
  readonly world: World

  constructor(world: World) {
    this.world = world
  }

  /** "visible only through an enabled grant whose subject is the organization, the person or one of their teams" */
  #names(grant: Grant, person: Person): boolean {
    if (!grant.enabled) return false
    if (grant.subjectType === 'organization') return grant.subjectId === this.world.organizationId
    if (grant.subjectType === 'membership') return grant.subjectId === person.membershipId
    const team = this.world.teams.find(({ id }) => id === grant.subjectId)
    return team !== undefined && team.enabled && team.members.includes(person)
  }

  #grantsOf(person: Person, agent: Agent, permission: 'read' | 'operate'): readonly Grant[] {
    return this.world.grants.filter((grant) => {
      if (grant.agent !== agent || !this.#names(grant, person)) return false
      // "skill grants work only for agents that advertise skill routing"
      if (grant.skillId !== null && agent.known === false) return false
      return permission === 'read' || grant.permission === 'operate'
    })
  }

  /** The agent as a whole where `skillId` is null: "A skill-scoped grant never authorizes a generic send". */
  may(person: Person, permission: 'read' | 'operate', agent: Agent, skillId: string | null): boolean {
    if (!(permission === 'read' ? looks : acts).has(person.role)) return false
    if (person.role === 'admin') return true
    return this.#grantsOf(person, agent, permission).some(
      (grant) => grant.skillId === null || (skillId !== null && grant.skillId === skillId),
    )
  }

  sees = (person: Person, thing: { readonly agent: Agent; readonly skillId: string | null }): boolean =>
    this.may(person, 'read', thing.agent, thing.skillId)

  seesPartOf = (person: Person, agent: Agent): boolean =>
    person.role === 'admin' || this.#grantsOf(person, agent, 'read').length > 0

  /** The skills held where the agent is not held as a whole; null where it is. */
  skillsHeld(person: Person, agent: Agent, permission: 'read' | 'operate' = 'read'): readonly string[] | null {
    if (this.may(person, permission, agent, null)) return null
    if (permission === 'operate' && !acts.has(person.role)) return []
    const held = this.#grantsOf(person, agent, permission).flatMap(({ skillId }) => skillId ?? [])
    return [...new Set(held)].toSorted()
  }

  /** What `GET /api/agents` shows: to see an agent is to look at its card, and from then on it is known whether it routes skills. */
  agentsSeen(person: Person): readonly SeenAgent[] {
    const looked = this.world.agents.filter((agent) => agent.enabled && this.seesPartOf(person, agent))
    const skills = new Map(looked.map((agent) => [agent, this.skillsHeld(person, agent)]))
    const operable = new Map(looked.map((agent) => [agent, this.skillsHeld(person, agent, 'operate')]))
    for (const agent of looked) agent.known = agent.routesSkills
    return looked
      .filter((agent) => skills.get(agent) === null || agent.routesSkills)
      .map((agent) => ({
        id: agent.id,
        skills: skills.get(agent) ?? null,
        operableSkills: operable.get(agent) ?? null,
      }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Newest first. */
  tasksSeen(person: Person, filter: string, now: string): readonly Task[] {
    const wanted: Readonly<Record<string, (task: Task) => boolean>> = {
      all: () => true,
      active: ({ state }) => state !== 'TASK_STATE_COMPLETED',
      'needs-input': ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED',
      done: ({ state }) => state === 'TASK_STATE_COMPLETED',
      mine: ({ owner }) => owner === person,
      overdue: ({ state, dueAt }) => state !== 'TASK_STATE_COMPLETED' && dueAt !== null && dueAt < now,
      unassigned: ({ state, owner }) => state !== 'TASK_STATE_COMPLETED' && owner === null,
    }
    return this.world.tasks
      .filter((task) => this.sees(person, task) && wanted[filter]?.(task))
      .toSorted((a, b) => (a.createdAt === b.createdAt ? (a.id < b.id ? 1 : -1) : a.createdAt < b.createdAt ? 1 : -1))
  }

  /** Agents with which anything is wrong that the person sees: no agent can be read, no unfinished task, and no send waits. */
  troubled(person: Person): readonly { readonly agentId: string; readonly troubles: readonly string[] }[] {
    const { agents, actors, commands } = this.world
    const seen = agents.filter((agent) => agent.enabled && this.seesPartOf(person, agent))
    const open = this.tasksSeen(person, 'active', '')
    const ended = commands.filter((command) => command.status !== 'succeeded' && this.sees(person, command))
    return seen
      .map((agent) => {
        const asking = actors.some(({ kind, about }) => kind === 'reconciliation' && about === agent)
        const troubles = [
          ...(asking && this.may(person, 'read', agent, null) ? ['unread'] : []),
          ...(open.some((task) => task.agent === agent) ? ['unfollowed'] : []),
          ...(ended.some((command) => command.agent === agent) ? ['unsettled'] : []),
        ]
        return { agentId: agent.id, troubles }
      })
      .filter(({ troubles }) => troubles.length > 0)
      .toSorted((a, b) => (a.agentId < b.agentId ? -1 : 1))
  }

  referencesOf(person: Person, task: Task): readonly { readonly taskId: string; readonly localId: string | null }[] {
    return task.references.map((remoteId) => ({
      taskId: remoteId,
      localId: this.localIdOf(person, task.agent, remoteId),
    }))
  }

  localIdOf(person: Person, agent: Agent, remoteId: string): string | null {
    const task = this.world.tasks.find((other) => other.agent === agent && other.remoteId === remoteId)
    return task && this.sees(person, task) ? task.id : null
  }

  seesBytes = (person: Person, digest: string): boolean =>
    this.world.tasks.some((task) => task.digest === digest && this.sees(person, task))

  reviewersOf = (task: Task): readonly string[] =>
    this.world.people
      .filter((person) => person.enabled && this.may(person, 'operate', task.agent, task.skillId))
      .map(({ name }) => name)
      .toSorted()

  /** The answer to a send. 404 for what is not seen, 403 for what is seen and may not be done. */
  sendStatus(person: Person, agent: Agent, of: { readonly task: Task } | { readonly skillId: string | null }): number {
    if (!acts.has(person.role)) return 403
    if (!agent.enabled || !this.seesPartOf(person, agent)) return 404
    if ('task' in of) {
      if (!this.sees(person, of.task)) return 404
      return this.may(person, 'operate', agent, of.task.skillId) ? 202 : 403
    }
    const { skillId } = of
    if (skillId !== null && !this.may(person, 'read', agent, skillId)) return 404
    if (!this.may(person, 'operate', agent, skillId)) return 403
    // Seen, and does not route: only who holds the whole agent comes this far.
    return skillId !== null && agent.known !== true ? 400 : 202
  }

  /** "What an operator may see of actors is what belongs to visible agents." */
  seesActor(person: Person, about: Command | Task | Agent): boolean {
    return 'agent' in about ? this.sees(person, about) : this.may(person, 'read', about, null)
  }
}
