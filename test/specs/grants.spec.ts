/**
 * Grants: who sees and does what with an agent, or with one skill of it; how an administrator gives and takes it, and that what is
 * taken ends what is open. Every route against a model of the rules is visibility.spec.ts.
 */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { skillRoutingUri } from '../../a2a/extensions/skill-routing.ts'
import { AccessRecord, Reviewer, type AccessChange } from '../../domain/grant.ts'
import { TaskRow } from '../../domain/task.ts'
import { commandIn, type Client } from '../support/api.ts'
import { crowd } from '../support/crowd.ts'
import { eitherDatabase } from '../support/databases.ts'
import { startOrganization, type Organization, type Person } from '../support/people.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

const uri = skillRoutingUri('signalbox.example')
const skill = (id: string) => ({ id, name: `Skill ${id}`, description: `Does ${id}.`, tags: ['test'] })
const routing = { streaming: true, pushNotifications: false, extensions: [{ uri }] }
const skills = ['invoices', 'payroll'].map(skill)

const Skills = z.optional(z.array(z.object({ id: z.string() })))
const Agents = z.object({ agents: z.array(z.object({ id: z.string(), skills: Skills, card: z.unknown() })) })
const Audit = z.object({ kind: z.string(), data: z.record(z.string(), z.unknown()) })
type Given = Omit<Extract<AccessChange, { action: 'grant' }>, 'action' | 'skillId'> & { skillId?: string }

/** Who may do what is decided before a database is asked; that it is recorded is tried on both (audit.spec.ts). */
describe.each(eitherDatabase)('grants on %s', (database) => {
  let house: Organization
  let admin: Person
  let router: RawPeer
  let plain: RawPeer
  let routerId: string
  let plainId: string

  beforeAll(async () => {
    house = await startOrganization({ database, system: { limits: crowd } })
    admin = await house.person('admin')
    router = await startRawPeer({ card: { skills, capabilities: routing } })
    plain = await startRawPeer()
    routerId = await admin.api.register(router.cardUrl)
    plainId = await admin.api.register(plain.cardUrl)
    await admin.api.get('/api/agents')
  })
  afterAll(async () => {
    await house.close()
    await Promise.all([router.close(), plain.close()])
  })

  const record = async (): Promise<AccessRecord> =>
    AccessRecord.parse((await admin.api.get('/api/admin/security')).body)
  const change = async (asked: AccessChange): Promise<void> => {
    const { status, body } = await admin.api.post('/api/admin/security', asked)
    expect([status, body]).toEqual([200, { updated: true }])
  }
  const give = async ({ skillId, ...given }: Given): Promise<string> => {
    const before = new Set((await record()).grants.map(({ id }) => id))
    await change({ action: 'grant', skillId: skillId ?? null, ...given })
    const made = (await record()).grants.find(({ id }) => !before.has(id))
    if (!made) throw new Error('Nothing was granted.')
    return made.id
  }
  const toPerson = (person: Person, agentId: string, permission: 'read' | 'operate', skillId?: string) => {
    const { membershipId: subjectId } = person.viewer
    const to = { agentId, subjectType: 'membership' as const, subjectId, permission }
    return give(skillId === undefined ? to : { ...to, skillId })
  }
  const agentsOf = async ({ api }: Person): Promise<string[]> =>
    Agents.parse((await api.get('/api/agents')).body).agents.map(({ id }) => id)
  const tasksOf = async ({ api }: Person): Promise<TaskRow[]> =>
    z.object({ tasks: z.array(TaskRow) }).parse((await api.get('/api/tasks')).body).tasks
  const refusal = async (api: Client, agentId: string, body: object): Promise<[number, string]> => {
    const reply = await api.post(`/api/agents/${agentId}/commands`, body, { 'idempotency-key': crypto.randomUUID() })
    const { error } = z.object({ error: z.object({ message: z.string() }) }).parse(reply.body)
    return [reply.status, error.message]
  }
  const unknown = [404, 'Unknown agent.']
  const forbidden = [403, 'This action is not permitted.']

  test('nothing is seen without a grant; each kind of subject gives, adds up, and is taken back at once', async () => {
    const person = await house.person('operator')
    expect(await agentsOf(person)).toEqual([])
    expect((await person.api.get(`/api/agents/${plainId}`)).status).toBe(404)
    expect(await refusal(person.api, plainId, { text: 'hello' })).toEqual(unknown)

    const own = await toPerson(person, plainId, 'read')
    expect(await agentsOf(person)).toEqual([plainId])
    expect(await refusal(person.api, plainId, { text: 'hello' })).toEqual(forbidden)

    await change({ action: 'createTeam', name: 'Dispatch' })
    const teamId = (await record()).teams.at(-1)?.id ?? ''
    const { membershipId, organizationId } = person.viewer
    await change({ action: 'addTeamMember', teamId, membershipId })
    await give({ agentId: plainId, subjectType: 'team', subjectId: teamId, permission: 'operate' })
    await person.api.send(plainId, { text: 'hello' })
    await change({ action: 'revokeGrant', grantId: own })
    expect(await tasksOf(person)).toHaveLength(1)
    await change({ action: 'removeTeamMember', teamId, membershipId })
    expect([await agentsOf(person), await tasksOf(person)]).toEqual([[], []])

    await change({ action: 'addTeamMember', teamId, membershipId })
    expect(await tasksOf(person)).toHaveLength(1)
    await change({ action: 'disableTeam', teamId })
    expect(await tasksOf(person)).toEqual([])

    const all = await give({
      agentId: plainId,
      subjectType: 'organization',
      subjectId: organizationId,
      permission: 'operate',
    })
    const viewer = await house.person('viewer')
    expect(await agentsOf(viewer)).toEqual([plainId])
    // A role is a ceiling: a viewer who is given `operate` still only looks.
    expect(await refusal(viewer.api, plainId, { text: 'hello' })).toEqual(forbidden)
    await change({ action: 'revokeGrant', grantId: all })
    expect(await agentsOf(viewer)).toEqual([])
  })

  test('a skill: a reduced card, sends to it alone, its tasks alone', async () => {
    const clerk = await house.person('operator')
    const payer = await house.person('operator')
    await toPerson(clerk, routerId, 'operate', 'invoices')
    await toPerson(payer, routerId, 'read', 'payroll')
    // What does not route skills could not keep a send to one, so a grant of one gives nothing there.
    await toPerson(clerk, plainId, 'operate', 'hello')
    expect(await agentsOf(clerk)).toEqual([routerId])

    const detail = z
      .object({ card: z.record(z.string(), z.unknown()), report: z.object({ issues: z.array(z.unknown()) }) })
      .parse((await clerk.api.get(`/api/agents/${routerId}`)).body)
    expect(detail.card['skills']).toMatchObject([{ id: 'invoices' }])
    expect(JSON.stringify(detail)).not.toContain('payroll')
    expect(Object.keys(detail.card)).not.toContain('supportedInterfaces')
    expect(JSON.stringify((await clerk.api.get('/api/agents')).body)).not.toContain('payroll')

    expect(await refusal(clerk.api, routerId, { text: 'hello' })).toEqual(forbidden)
    expect(await refusal(clerk.api, routerId, { text: 'hello', skillId: 'payroll' })).toEqual(unknown)
    expect(await refusal(payer.api, routerId, { text: 'hello', skillId: 'payroll' })).toEqual(forbidden)
    // A role is the ceiling: who only looks may operate no skill, whatever was granted.
    const visitor = await house.person('viewer')
    await toPerson(visitor, routerId, 'operate', 'invoices')
    expect((await visitor.api.get(`/api/agents/${routerId}`)).body).toMatchObject({ operableSkills: [] })
    expect(await refusal(clerk.api, routerId, { text: 'hello', skillId: 'invoices', contextId: 'c' })).toEqual([
      400,
      'A skill-scoped send must start a new context.',
    ])

    const { localId, commandId } = await clerk.api.send(routerId, { text: 'ask', skillId: 'invoices' })
    const task = await clerk.api.task(localId)
    expect(task.skillId).toBe('invoices')
    expect((await payer.api.get(`/api/tasks/${localId}`)).status).toBe(404)
    expect((await payer.api.get(`/api/commands/${commandId}`)).status).toBe(404)
    expect((await payer.api.get(`/api/actors/command/${commandId}`)).status).toBe(404)
    expect((await clerk.api.get(`/api/actors/command/${commandId}`)).status).toBe(200)
    expect(await tasksOf(payer)).toEqual([])

    // A reply needs no word about the skill: the task has it, and the agent is told again.
    const answered = await clerk.api.send(routerId, { text: 'red', taskId: task.taskId })
    expect(answered.localId).toBe(localId)
    expect(router.seen('SendMessage')?.body).toMatchObject({
      params: { metadata: { [uri]: { skillId: 'invoices' } }, message: { extensions: [uri] } },
    })
    expect(await refusal(clerk.api, routerId, { text: 'x', taskId: task.taskId, skillId: 'payroll' })).toEqual([
      400,
      'Task skill cannot be changed.',
    ])
  })

  test('a reference to a task of another skill is unknown to who sends, and not named to who reads', async () => {
    const clerk = await house.person('operator')
    await toPerson(clerk, routerId, 'operate', 'invoices')
    const secret = await admin.api.send(routerId, { text: 'hello', skillId: 'payroll' })
    const { taskId } = await admin.api.task(secret.localId)
    const body = { text: 'hello', skillId: 'invoices', config: { referenceTaskIds: [taskId] } }
    expect(await refusal(clerk.api, routerId, body)).toEqual([404, 'Referenced task not found.'])
    const { localId } = await admin.api.send(routerId, body)
    expect((await admin.api.task(localId)).referenceLinks).toEqual([{ taskId, localId: secret.localId }])
    expect((await clerk.api.task(localId)).referenceLinks).toEqual([{ taskId, localId: null }])
    expect(await refusal(clerk.api, routerId, { text: 'x', taskId })).toEqual([404, 'Task not found.'])
  })

  test('a key opens no door: after a grant is gone its command is not answered again', async () => {
    const person = await house.person('operator')
    const grantId = await toPerson(person, plainId, 'operate')
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const ask = () => person.api.post(`/api/agents/${plainId}/commands`, { text: 'direct' }, headers)
    const { id } = commandIn(await ask())
    expect(commandIn(await ask()).id).toBe(id)
    await change({ action: 'revokeGrant', grantId })
    expect((await ask()).status).toBe(404)
    expect((await person.api.get(`/api/commands/${id}`)).status).toBe(404)
  })

  test('an open stream ends at once with the grant, the role, the membership and the session', async () => {
    const person = await house.person('operator')
    const grantId = await toPerson(person, plainId, 'operate')
    const { localId } = await person.api.send(plainId, { text: 'hold' })
    const { taskId } = await person.api.task(localId)
    const follow = { resubscribe: true, taskId, tenant: '' }
    const stream = await person.api.stream(`/api/agents/${plainId}/stream`, follow)
    await stream.until('snapshot')
    await change({ action: 'revokeGrant', grantId })
    expect((await stream.until('error')).data).toMatchObject({ message: 'Task not found.' })
    expect((await stream.next()).event).toBe('end')

    await toPerson(person, plainId, 'operate')
    const endsOf = async (happens: () => Promise<unknown>): Promise<unknown> => {
      const again = await person.api.stream(`/api/agents/${plainId}/stream`, follow)
      await again.until('snapshot')
      const startedAt = performance.now()
      await happens()
      const { data } = await again.until('error')
      expect((await again.next()).event).toBe('end')
      // Without being told it would ask again after five seconds.
      expect(performance.now() - startedAt).toBeLessThan(4_000)
      return data
    }
    expect(await endsOf(() => person.become('viewer'))).toMatchObject({ message: 'This action is not permitted.' })
    await person.become('operator')
    const signals = await person.api.stream('/api/tasks/events')
    await signals.until('ready')
    expect(await endsOf(() => person.withdraw())).toMatchObject({ message: 'Sign in to continue.' })
    // What happened to the task while they were still a member may have been told; after it the stream is over.
    expect((await signals.rest()).filter(({ event }) => event !== 'freshness')).toEqual([])

    const other = await house.person('viewer')
    const heard = await other.api.stream('/api/tasks/events')
    await heard.until('ready')
    await other.api.post('/api/auth/logout')
    expect((await heard.rest()).filter(({ event }) => event !== 'freshness')).toEqual([])
    plain.script.finish()
  })

  test('an answer that leaves its skill fails the command, and nothing of it is kept', async () => {
    // Over HTTP+JSON, where an answer carries no id of its request and can be written beforehand.
    const peer = await startRawPeer({ binding: 'HTTP+JSON', card: { skills, capabilities: routing } })
    const agentId = await admin.api.register(peer.cardUrl)
    await admin.api.get(`/api/agents/${agentId}`)
    const clerk = await house.person('operator')
    await toPerson(clerk, agentId, 'operate', 'invoices')
    const secret = await admin.api.send(agentId, { text: 'ask', skillId: 'payroll' })
    const before = await house.task(secret.localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    const task = (id: string, metadata = {}) => ({
      id,
      contextId: 'elsewhere',
      status: { state: 'TASK_STATE_COMPLETED', timestamp: new Date().toISOString() },
      metadata,
    })
    const answers = [task(before.taskId ?? ''), task('new', { [uri]: { skillId: 'payroll' } })]
    for (const answer of answers) {
      const body = JSON.stringify({ task: answer })
      peer.script.fault('SendMessage', { fault: 'body', body, headers: { 'content-type': 'application/json' } })
      const reply = await clerk.api.post(`/api/agents/${agentId}/messages`, { text: 'hello', skillId: 'invoices' })
      expect([reply.status, reply.body]).toMatchObject([
        409,
        { error: { message: 'Agent response crossed a task skill boundary.' } },
      ])
    }
    const after = await admin.api.task(secret.localId)
    expect([after.version, after.state]).toEqual([before.version, before.state])
    expect(await tasksOf(clerk)).toEqual([])
    await peer.close()
  })

  test('an event that claims another skill is not kept', async () => {
    const { localId } = await admin.api.send(routerId, { text: 'hold', skillId: 'invoices' })
    const { taskId, contextId } = await admin.api.task(localId)
    await router.script.held(1)
    await house.task(localId, () => router.subscribed().includes(taskId ?? ''))
    const say = (name: string, skillId: string): void => {
      const artifact = { artifactId: name, name, parts: [{ text: name }] }
      const metadata = { [uri]: { skillId } }
      router.script.emit(taskId ?? '', { artifactUpdate: { taskId, contextId, artifact, metadata } })
    }
    say('strange', 'payroll')
    say('own', 'invoices')
    const view = await house.task(localId, ({ artifacts }) => artifacts.some(({ artifactId }) => artifactId === 'own'))
    expect(view.artifacts.map(({ artifactId }) => artifactId)).toEqual(['own'])
    const crossed = await house.db.pool.anyFirst(sql.type(z.object({ source: z.string() }))`
      select data->>'source' as source from fact where kind = 'task.crossed' and subject_id = ${localId}`)
    expect(crossed).toEqual(['stream'])
    router.script.finish()
  })

  test('reviewers are enabled administrators and operators who can operate the agent and skill', async () => {
    const [clerk, reader, stranger, looker, gone] = await Promise.all([
      house.person('operator', 'Clerk'),
      house.person('operator', 'Reader'),
      house.person('operator', 'Stranger'),
      house.person('viewer', 'Looker'),
      house.person('operator', 'Gone'),
    ])
    for (const person of [clerk, looker, gone]) await toPerson(person, routerId, 'operate', 'invoices')
    await toPerson(reader, routerId, 'read')
    await toPerson(stranger, routerId, 'operate', 'payroll')
    await gone.withdraw()
    const { localId } = await clerk.api.send(routerId, { text: 'hello', skillId: 'invoices' })
    const reply = await clerk.api.get(`/api/reviewers?taskId=${localId}`)
    const { reviewers } = z.object({ reviewers: z.array(Reviewer) }).parse(reply.body)
    const named = reviewers.map(({ displayName }) => displayName)
    expect(named).toEqual(named.toSorted())
    expect(reviewers).toContainEqual({ ...reviewerOf(clerk), self: true })
    expect(reviewers).toContainEqual({ ...reviewerOf(admin), self: false })
    for (const person of [reader, stranger, looker, gone]) expect(named).not.toContain(person.viewer.displayName)
    expect((await reader.api.get(`/api/reviewers?taskId=${localId}`)).status).toBe(403)
    expect((await stranger.api.get(`/api/reviewers?taskId=${localId}`)).status).toBe(404)
    expect((await clerk.api.get('/api/reviewers?taskId=nothing')).status).toBe(404)
    expect((await clerk.api.get('/api/reviewers')).status).toBe(400)
  })

  const granting = (person: Person) => ({
    action: 'grant' as const,
    agentId: plainId,
    skillId: null,
    subjectType: 'membership' as const,
    subjectId: person.viewer.membershipId,
    permission: 'read' as const,
  })

  test('what is wrong with a change is said in one sentence, and only administrators change anything', async () => {
    const person = await house.person('operator')
    const { membershipId } = person.viewer
    const nobody = crypto.randomUUID()
    const grant = granting(person)
    const refusals: [unknown, string][] = [
      [{}, 'Invalid access management request.'],
      [{ ...grant, note: 'x' }, 'Invalid access management request.'],
      [{ ...grant, skillId: '' }, 'Invalid access management request.'],
      [{ ...grant, skillId: 'x'.repeat(256) }, 'Invalid access management request.'],
      [{ ...grant, permission: 'administer' }, 'Invalid access management request.'],
      [{ action: 'createTeam', name: ' ' }, 'Invalid access management request.'],
      [{ action: 'createTeam', name: 'a\0b' }, 'Invalid access management request.'],
      [{ ...grant, agentId: nobody }, 'Unknown agent.'],
      [{ ...grant, subjectId: nobody }, 'Unknown grant subject.'],
      [{ ...grant, subjectType: 'team', subjectId: membershipId }, 'Unknown grant subject.'],
      [{ ...grant, subjectType: 'organization', subjectId: nobody }, 'Unknown grant subject.'],
      [{ action: 'revokeGrant', grantId: nobody }, 'Unknown grant.'],
      [{ action: 'disableTeam', teamId: nobody }, 'Unknown team.'],
      [{ action: 'addTeamMember', teamId: nobody, membershipId }, 'Unknown team.'],
    ]
    for (const [body, message] of refusals) {
      const reply = await admin.api.post('/api/admin/security', body)
      expect([body, reply.status, reply.body]).toEqual([body, 400, { error: { message } }])
    }
    expect((await admin.api.post('/api/admin/security')).body).toEqual({
      error: { message: 'Request body is required.' },
    })
    for (const { api } of [person, await house.person('viewer')]) {
      expect((await api.get('/api/admin/security')).status).toBe(403)
      expect((await api.post('/api/admin/security', grant)).status).toBe(403)
    }
  })

  test('changes are recorded in the audit trail, and asked for twice are made once', async () => {
    const person = await house.person('operator')
    const { membershipId, organizationId } = person.viewer
    const nobody = crypto.randomUUID()
    const grant = granting(person)
    const seen = (await record()).grants.length
    await change({ ...grant, subjectId: membershipId.toUpperCase() })
    await change(grant)
    const [made, ...more] = (await record()).grants.slice(seen)
    expect(more).toEqual([])
    expect(made).toMatchObject({ agentId: plainId, skillId: null, subjectId: membershipId, enabled: true })
    const grantId = made?.id ?? ''
    await change({ action: 'revokeGrant', grantId })
    await change({ action: 'revokeGrant', grantId })
    await change({ action: 'createTeam', name: '  Yard  ' })
    const team = (await record()).teams.find(({ name }) => name === 'Yard')
    const teamId = team?.id ?? ''
    expect(
      (await admin.api.post('/api/admin/security', { action: 'addTeamMember', teamId, membershipId: nobody })).body,
    ).toEqual({ error: { message: 'Unknown membership.' } })
    for (const action of ['addTeamMember', 'addTeamMember', 'removeTeamMember', 'removeTeamMember'] as const)
      await change({ action, teamId, membershipId })
    await change({ action: 'disableTeam', teamId })
    await change({ action: 'disableTeam', teamId })
    expect(
      (await admin.api.post('/api/admin/security', { action: 'addTeamMember', teamId, membershipId })).body,
    ).toEqual({
      error: { message: 'Unknown team.' },
    })
    const trail = await house.db.pool.any(sql.type(Audit)`
      select kind, data from audit where organization_id = ${organizationId} and subject_id in (${grantId}, ${teamId})
        and actor_person_id = ${admin.viewer.userId} order by at, id`)
    const { action: _, ...granted } = grant
    expect(trail).toEqual([
      { kind: 'access.granted', data: granted },
      { kind: 'access.revoked', data: granted },
      { kind: 'team.created', data: { name: 'Yard' } },
      { kind: 'team.member_added', data: { membershipId } },
      { kind: 'team.member_removed', data: { membershipId } },
      { kind: 'team.disabled', data: {} },
    ])
  })
})

const reviewerOf = ({ viewer: { membershipId, displayName, role } }: Person) => ({ membershipId, displayName, role })
