/**
 * One person's view of a drawn organization, held against the model (visibility-model.ts): every route is asked, and which were is
 * remembered, so that the spec can hold it against the API's own document. Owns what is asked; not who is drawn.
 */
import { expect } from 'vitest'
import { z } from 'zod'
import { AgentTroubles, unfollowedShown } from '../../domain/agent-troubles.ts'
import { TroubledAgentsAnswer, UnfollowedTasksAnswer } from '../../domain/troubles.ts'
import { taskFilters, TaskRow } from '../../domain/task.ts'
import { cursorOf } from '../../http/cursors.ts'
import { Client, commandIn } from '../support/api.ts'
import type { Model } from './visibility-model.ts'
import { skillIds, type Agent, type Person, type Task, type World } from './visibility-world.ts'

/** Remembers which operations were asked for, as the document writes them: `GET /api/tasks/{taskId}`. */
export class Asked {
  readonly operations = new Set<string>()
  readonly #known: readonly { readonly operation: string; readonly method: string; readonly path: RegExp }[]

  constructor(document: { readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>> }) {
    this.#known = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({
        operation: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
      })),
    )
  }

  get all(): readonly string[] {
    return this.#known.map(({ operation }) => operation).toSorted()
  }

  /** Where several fit, the one without a parameter: that is how they are routed. */
  note(method: string, path: string): void {
    const fitting = this.#known.filter((each) => each.method === method && each.path.test(path.split('?', 1)[0] ?? ''))
    const [literal] = fitting.toSorted((x, y) => x.operation.split('{').length - y.operation.split('{').length)
    if (!literal) throw new Error(`The document does not know ${method} ${path}.`)
    this.operations.add(literal.operation)
  }
}

export interface Asking {
  readonly url: string
  readonly asked: Asked
  /** Of bytes that are stored, whether a task refers to them or not. */
  readonly digests: readonly string[]
}

class NotedClient extends Client {
  readonly #asked: Asked
  constructor(url: string, headers: Readonly<Record<string, string>>, asked: Asked) {
    super(url, headers)
    this.#asked = asked
  }
  override fetch(path: string, init: RequestInit = {}): Promise<Response> {
    this.#asked.note(init.method ?? 'GET', path)
    return super.fetch(path, init)
  }
}

const Ids = z.object({ id: z.string() })
const Rows = z.object({ tasks: z.array(TaskRow) })
const Views = z.object({ tasks: z.array(z.object({ localId: z.string() })), next: z.string().nullable() })
const Shown = z.object({
  id: z.string(),
  skills: z.array(Ids),
  card: z.object({ skills: z.array(Ids) }),
  operableSkills: z.array(z.string()).nullable(),
})
const Agents = z.object({ agents: z.array(Shown) })
const Sends = z.object({
  sends: z.array(z.object({ id: z.string(), evidence: z.object({ localId: z.string().nullable() }).nullable() })),
})
const Actors = z.object({ actors: z.array(Ids) })
const OneTask = z.object({ commands: z.array(Ids), operable: z.boolean() })
const Trail = z.object({ entries: z.array(z.object({ subjectId: z.string().nullable() })) })
const ActorPages = z.object({ actors: z.array(Ids), next: z.string().nullable() })
const OfTask = z.object({ actors: z.array(z.object({ actor: z.object({ kind: z.string() }) })) })
const Reviewers = z.object({ reviewers: z.array(z.object({ displayName: z.string(), self: z.boolean() })) })

export class Visit {
  readonly api: Client
  readonly #model: Model
  readonly #person: Person
  readonly #digests: readonly string[]

  constructor(house: Asking, model: Model, person: Person) {
    this.api = new NotedClient(house.url, { 'x-membership': person.membershipId }, house.asked)
    this.#digests = house.digests
    this.#model = model
    this.#person = person
  }

  get #world(): World {
    return this.#model.world
  }

  /** Answered where it is seen; else not known, whatever else is asked of it. */
  async #isSeen(path: string, seen: boolean): Promise<void> {
    const { status } = await this.api.get(path)
    expect([path, this.#person.role, status]).toEqual([path, this.#person.role, seen ? 200 : 404])
  }

  async agents(): Promise<void> {
    // Asked of the model first: looking at a card is what makes it known.
    const expected = this.#model.agentsSeen(this.#person)
    const { agents } = Agents.parse((await this.api.get('/api/agents')).body)
    const shown = agents.map(({ id, skills, card, operableSkills }) => {
      expect(card.skills.map((skill) => skill.id)).toEqual(skills.map((skill) => skill.id))
      return { id, skills: skills.map((skill) => skill.id), operableSkills }
    })
    expect(shown.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
      expected.map(({ skills, ...agent }) => ({ ...agent, skills: skills ?? [...skillIds] })),
    )
    await this.#answering(agents)
    const seen = new Set(expected.map(({ id }) => id))
    for (const agent of this.#world.agents) {
      for (const of of ['', '/troubles']) await this.#isSeen(`/api/agents/${agent.id}${of}`, seen.has(agent.id))
      if (seen.has(agent.id)) await this.#troubles(agent)
    }
  }

  /** The same one by one: by now it is known whether each routes skills, so what is kept is told of no others. */
  async #answering(listed: readonly { readonly id: string }[]): Promise<void> {
    const [kept, ...rest] = await (await this.api.stream('/api/answering-agents')).rest()
    expect(z.object({ agents: z.array(Ids) }).parse(kept?.data).agents).toEqual(listed.map(({ id }) => ({ id })))
    const answers = rest.slice(0, -1).map(({ data }) => z.object({ agent: Shown }).parse(data).agent)
    expect([answers.length, new Set(answers)]).toEqual([listed.length, new Set(listed)])
  }

  /** No agent can be read, nor any unfinished task: what others hold is neither told nor counted. */
  async #troubles(agent: Agent): Promise<void> {
    const person = this.#person
    const { body } = await this.api.get(`/api/agents/${agent.id}/troubles`)
    const { looks, unfollowed, others } = AgentTroubles.parse(body)
    const whole = this.#model.may(person, 'read', agent, null)
    const asking = this.#world.actors.filter(({ kind, about }) => whole && kind === 'reconciliation' && about === agent)
    expect([looks.scopes.map(({ id }) => id), looks.count]).toEqual([asking.map(({ id }) => id), asking.length])
    const open = this.#model.tasksSeen(person, 'active', '').filter((task) => task.agent === agent)
    const ids = open
      .map(({ id }) => id)
      .toSorted()
      .toReversed()
    expect(unfollowed.tasks.map(({ localId }) => localId)).toEqual(ids.slice(0, unfollowedShown))
    expect([unfollowed.count, others.count]).toEqual([ids.length, 0])
    expect([looks.isWhole, unfollowed.isWhole, others.isWhole]).toEqual([true, true, true])
  }

  /** The same in lists: an agent is marked, and a task told, by what is held of it. */
  async #marks(): Promise<void> {
    const person = this.#person
    const marked = TroubledAgentsAnswer.parse((await this.api.get('/api/troubled-agents')).body)
    expect(marked.agents).toEqual(this.#model.troubled(person))
    const { tasks } = UnfollowedTasksAnswer.parse((await this.api.get('/api/unfollowed-tasks')).body)
    const open = this.#model.tasksSeen(person, 'active', '').filter(({ agent }) => agent.enabled)
    const ids = open.map(({ id }) => id).toSorted()
    expect(tasks.map(({ localId }) => localId)).toEqual(ids.toReversed())
  }

  async tasks(): Promise<void> {
    const person = this.#person
    const now = new Date().toISOString()
    for (const filter of taskFilters) {
      const expected = this.#model.tasksSeen(person, filter, now)
      const rows = await this.#tasks(filter, 100, 0)
      expect([filter, rows.map(({ localId }) => localId)]).toEqual([filter, expected.map(({ id }) => id)])
      expect(rows.map(({ referenceLinks }) => referenceLinks)).toEqual(
        expected.map((task) => this.#model.referencesOf(person, task)),
      )
      expect(rows.map(({ workflow }) => workflow?.assigneeName ?? null)).toEqual(
        expected.map(({ owner }) => owner?.name ?? null),
      )
    }
    const page = await this.#tasks('all', 2, 1)
    const all = this.#model.tasksSeen(person, 'all', now)
    expect(page.map(({ localId }) => localId)).toEqual(all.slice(1, 3).map(({ id }) => id))
    for (const task of this.#world.tasks) await this.#task(task)
    await this.#views()
    await this.#marks()
  }

  async #tasks(filter: string, limit: number, offset: number): Promise<readonly TaskRow[]> {
    const reply = await this.api.get(`/api/tasks?filter=${filter}&limit=${limit}&offset=${offset}`)
    return Rows.parse(reply.body).tasks
  }

  async #task(task: Task): Promise<void> {
    const person = this.#person
    const sees = this.#model.sees(person, task)
    await this.#view(task, sees)
    const looked = await this.api.get(`/api/task-actors/${task.id}`)
    expect(looked.status).toBe(sees ? 200 : 404)
    if (sees) {
      const { actors } = OfTask.parse(looked.body)
      const whole = this.#model.may(person, 'read', task.agent, null)
      expect(actors.map(({ actor }) => actor.kind)).toEqual(
        whole ? ['subscription', 'reconciliation'] : ['subscription'],
      )
    }
    const reply = await this.api.get(`/api/reviewers?taskId=${task.id}`)
    const operates = this.#model.may(person, 'operate', task.agent, task.skillId)
    const mayAsk = person.role !== 'viewer'
    expect(reply.status).toBe(mayAsk ? (sees ? (operates ? 200 : 403) : 404) : 403)
    if (reply.status !== 200) return
    const { reviewers } = Reviewers.parse(reply.body)
    expect(reviewers.map(({ displayName }) => displayName)).toEqual(this.#model.reviewersOf(task))
    expect(reviewers.filter(({ self }) => self).map(({ displayName }) => displayName)).toEqual([person.name])
  }

  async #view(task: Task, sees: boolean): Promise<void> {
    const person = this.#person
    const reply = await this.api.get(`/api/tasks/${task.id}`)
    expect([task.id, reply.status]).toEqual([task.id, sees ? 200 : 404])
    const besides = await this.api.get(`/api/tasks/${task.id}/commands`)
    const trail = await this.api.get(`/api/audit?taskId=${task.id}`)
    expect([besides.status, trail.status]).toEqual(sees ? [200, 200] : [404, 404])
    if (!sees) return
    const { commands, operable } = OneTask.parse(reply.body)
    expect(besides.body).toEqual({ commands: z.looseObject({ commands: z.unknown() }).parse(reply.body).commands })
    expect(operable).toBe(this.#model.may(person, 'operate', task.agent, task.skillId))
    const about = this.#world.commands.filter((command) => command.about === task)
    expect(commands.map(({ id }) => id).toSorted()).toEqual(
      about.flatMap(({ id, status }) => (status === 'succeeded' ? [] : [id])).toSorted(),
    )
    const { entries } = Trail.parse(trail.body)
    expect(entries.map(({ subjectId }) => subjectId ?? '').toSorted()).toEqual(
      [task.id, ...about.map(({ id }) => id)].toSorted(),
    )
  }

  async #views(): Promise<void> {
    const all: string[] = []
    for (let after: string | null = ''; after !== null;) {
      const page = Views.parse((await this.api.get(`/api/task-views?limit=2${after && `&after=${after}`}`)).body)
      all.push(...page.tasks.map(({ localId }) => localId))
      after = page.next
    }
    const seen = this.#model.tasksSeen(this.#person, 'all', '')
    expect(all).toEqual(seen.map(({ id }) => id).toSorted())
  }

  async commands(): Promise<void> {
    const person = this.#person
    const seen = this.#world.commands.filter((command) => this.#model.sees(person, command))
    for (const command of this.#world.commands) {
      await this.#isSeen(`/api/commands/${command.id}`, seen.includes(command))
      await this.#isSeen(`/api/sends/${command.id}`, seen.includes(command))
    }
    const { sends } = Sends.parse((await this.api.get('/api/sends/unsettled')).body)
    // Every drawn command is over, also those that the first person sent.
    expect((await this.api.get('/api/sends/under-way')).body).toMatchObject({ sends: [], count: 0, isWhole: true })
    const unsettled = seen.filter(({ status }) => status !== 'succeeded')
    expect(sends.map(({ id }) => id)).toEqual(unsettled.map(({ id }) => id))
    expect(sends.map(({ evidence }) => evidence?.localId ?? null)).toEqual(
      unsettled.map(({ agent, evidence }) => evidence && this.#model.localIdOf(person, agent, evidence.remoteId)),
    )
  }

  async rest(): Promise<void> {
    const person = this.#person
    for (const digest of this.#digests)
      await this.#isSeen(`/api/artifacts/${digest}`, this.#model.seesBytes(person, digest))
    const seen = this.#world.actors.filter(({ about }) => this.#model.seesActor(person, about))
    const { actors } = Actors.parse((await this.api.get('/api/actors?limit=100')).body)
    expect(actors.map(({ id }) => id).toSorted()).toEqual(seen.map(({ id }) => id).toSorted())
    await this.#actorPages(seen.map(({ id }) => id))
    for (const actor of this.#world.actors) {
      await this.#isSeen(`/api/actors/${actor.kind}/${actor.id}`, seen.includes(actor))
      await this.#isSeen(`/api/actors/${actor.kind}/${actor.id}/log`, seen.includes(actor))
    }
    await this.#administration()
    await this.#streams()
  }

  /** Page by page; and behind a cursor that somebody else was given, for a cursor is a place and no permission. */
  async #actorPages(seen: readonly string[]): Promise<void> {
    const all: string[] = []
    let cursor: string | null = cursorOf({ at: '2999-01-01T00:00:00.000Z', id: this.#world.organizationId })
    while (cursor !== null) {
      const page = ActorPages.parse((await this.api.get(`/api/actors?limit=4&cursor=${cursor}`)).body)
      all.push(...page.actors.map(({ id }) => id))
      cursor = page.next
    }
    expect(all.toSorted()).toEqual([...seen].toSorted())
  }

  /** What administering opens, told by what is wrong with a request: 403 comes before anybody looks at it. */
  async #administration(): Promise<void> {
    const { role, name } = this.#person
    const isAdmin = role === 'admin'
    const paths = ['/api/admin/security', '/api/supervisor', '/api/queues', '/api/audit/export', '/api/audit/chain']
    for (const path of paths) expect([path, (await this.api.get(path)).status]).toEqual([path, isAdmin ? 200 : 403])
    for (const path of ['/api/admin/security', '/api/agents', '/api/agents/preview'])
      expect([path, (await this.api.post(path, {})).status]).toEqual([path, isAdmin ? 400 : 403])
    expect((await this.api.delete(`/api/agents/${crypto.randomUUID()}`)).status).toBe(isAdmin ? 404 : 403)
    const trail = await this.api.get('/api/audit?group=ownership&limit=200')
    expect(trail.status).toBe(isAdmin ? 200 : 403)
    if (isAdmin) {
      const { entries } = Trail.parse(trail.body)
      expect(entries.map(({ subjectId }) => subjectId ?? '').toSorted()).toEqual(
        this.#world.tasks.map(({ id }) => id).toSorted(),
      )
    }
    expect((await this.api.get('/api/auth/session')).body).toMatchObject({ user: { displayName: name, role } })
    expect((await this.api.post('/api/auth/logout')).status).toBe(200)
    expect((await this.api.get('/api/openapi.json')).status).toBe(200)
  }

  /** Nothing of another organization is there, not even for an administrator. */
  async strangers({ agents, tasks, commands, actors }: World): Promise<void> {
    for (const { id } of agents) for (const of of ['', '/troubles']) await this.#isSeen(`/api/agents/${id}${of}`, false)
    for (const { id, agent, remoteId } of tasks) {
      for (const path of ['tasks/', 'task-actors/', 'reviewers?taskId=', 'audit?taskId='])
        await this.#isSeen(`/api/${path}${id}`, false)
      const route = `/api/agents/${agent.id}`
      expect((await this.api.post(`${route}/stream`, { resubscribe: true, taskId: remoteId, tenant: '' })).status).toBe(
        404,
      )
      expect((await this.api.post(`${route}/messages`, { text: 'x', taskId: remoteId })).status).toBe(404)
    }
    for (const { id } of commands) for (const of of ['commands', 'sends']) await this.#isSeen(`/api/${of}/${id}`, false)
    for (const { id } of commands) {
      expect((await this.api.post(`/api/sends/${id}/settle`, { decision: 'arrived' })).status).toBe(404)
      expect((await this.api.post(`/api/sends/${id}/reopen`, {})).status).toBe(404)
    }
    for (const { kind, id } of actors)
      for (const of of ['', '/log']) await this.#isSeen(`/api/actors/${kind}/${id}${of}`, false)
  }

  async #streams(): Promise<void> {
    for (const task of this.#world.tasks) {
      const body = { resubscribe: true, taskId: task.remoteId, tenant: '' }
      const stream = await this.api.stream(`/api/agents/${task.agent.id}/stream`, body)
      const seen = task.agent.enabled && this.#model.sees(this.#person, task)
      // To follow is to operate: the route's permission, and the grant's.
      const follows = this.#model.may(this.#person, 'operate', task.agent, task.skillId) ? 200 : 403
      expect(stream.response.status).toBe(this.#person.role === 'viewer' ? 403 : seen ? follows : 404)
      stream.cancel()
    }
    const signals = await this.api.stream('/api/tasks/events')
    expect((await signals.next()).event).toBe('ready')
    signals.cancel()
  }

  /** Sends, each with a key of its own. Resolves with the keys that made a command, by what was sent. */
  async sends(keys: Map<string, string>): Promise<void> {
    for (const agent of this.#world.agents)
      for (const skillId of [null, ...skillIds]) {
        const expected = this.#model.sendStatus(this.#person, agent, { skillId })
        await this.#send(agent, skillId === null ? { text: 'x' } : { text: 'x', skillId }, expected, keys)
      }
    for (const task of this.#world.tasks) {
      const expected = this.#model.sendStatus(this.#person, task.agent, { task })
      await this.#send(task.agent, { text: 'x', taskId: task.remoteId }, expected, keys)
      const refused = expected === 202 ? [] : ['messages', 'stream', `tasks/${task.remoteId}/cancel`]
      for (const route of refused) {
        const body = route.startsWith('tasks/') ? undefined : { text: 'x', taskId: task.remoteId }
        expect((await this.api.post(`/api/agents/${task.agent.id}/${route}`, body)).status).toBe(expected)
      }
    }
  }

  /**
   * Once everything was read: what is settled leaves the lists. Everybody says the same, so that who was first does not matter; and
   * whoever may settle may take it back, and does, and settles it again for the next one.
   */
  async settlements(): Promise<void> {
    const person = this.#person
    for (const command of this.#world.commands) {
      const { agent, skillId, status } = command
      const operates = this.#model.may(person, 'operate', agent, skillId)
      const answered = status === 'succeeded' ? 409 : 200
      const held = this.#model.sees(person, command) ? (operates ? answered : 403) : 404
      const expected = person.role === 'viewer' ? 403 : held
      for (const of of ['settle', 'reopen', 'settle']) {
        const reply = await this.api.post(
          `/api/sends/${command.id}/${of}`,
          of === 'settle' ? { decision: 'arrived' } : {},
        )
        expect([command.id, of, person.role, reply.status]).toEqual([command.id, of, person.role, expected])
      }
    }
  }

  async #send(agent: Agent, body: object, expected: number, keys: Map<string, string>): Promise<void> {
    const path = `/api/agents/${agent.id}/commands`
    const reply = await this.api.post(path, body, { 'idempotency-key': crypto.randomUUID() })
    expect([path, body, this.#person.role, reply.status]).toEqual([path, body, this.#person.role, expected])
    const what = JSON.stringify([agent.id, body])
    const known = keys.get(what) ?? crypto.randomUUID()
    // What somebody else has sent is answered again to who could send it, and to nobody else.
    const again = await this.api.post(path, body, { 'idempotency-key': known })
    expect(again.status).toBe(expected)
    if (expected !== 202) return
    keys.set(what, known)
    const { id } = commandIn(again)
    expect((await this.api.get(`/api/commands/${id}`)).status).toBe(200)
  }
}
