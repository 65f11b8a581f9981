/** What the actor debugger answers, over actors that really moved. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ActorAnswer, ActorLogPage, ActorPage } from '../../domain/actor.ts'
import type { Command } from '../../domain/command.ts'
import { QueuesAnswer, SupervisorAnswer } from '../../domain/queue.ts'
import { TaskActorsAnswer } from '../../domain/task-actors.ts'
import { UnderWayAnswer } from '../../domain/under-way.ts'
import { SentWordsAnswer, UnsettledAnswer } from '../../domain/unsettled-send.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

describe('the actor debugger', () => {
  let running: TestConsole
  let peer: Peer
  let delivered: string

  beforeAll(async () => {
    running = await startConsole({ database: 'pglite', uiDirectory: null })
    peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    const agent = await running.system.agents.register(running.viewer, peer.cardUrl)
    const sent = await running.finished((await running.send(agent.id, { text: 'ask' })).id)
    delivered = sent.id
    await running.task(sent.result?.localId ?? '', (task) => task.state === 'TASK_STATE_INPUT_REQUIRED')
  })
  afterAll(async () => {
    await running.close()
    await peer.close()
  })

  const get = async (url: string): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(running.url + url)
    return { status: response.status, body: await response.json() }
  }
  const page = async (query = ''): Promise<ActorPage> => ActorPage.parse((await get(`/api/actors${query}`)).body)

  it('lists live and finished actors alike, the last moved first', async () => {
    const { actors, next } = await page()
    expect(next).toBeNull()
    expect(actors).toContainEqual(
      expect.objectContaining({ kind: 'command', id: delivered, value: 'succeeded', status: 'done' }),
    )
    expect(actors.map(({ kind }) => kind)).toContain('subscription')
    const moved = actors.map(({ updatedAt }) => Date.parse(updatedAt))
    expect(moved).toEqual(moved.toSorted((a, b) => b - a))
  })

  it('pages by a cursor without leaving anything out', async () => {
    const all = (await page()).actors.map(({ id, kind }) => `${kind}/${id}`)
    const walked: string[] = []
    for (let cursor: string | null = ''; cursor !== null && walked.length <= all.length;) {
      const { actors, next }: ActorPage = await page(`?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
      walked.push(...actors.map(({ id, kind }) => `${kind}/${id}`))
      cursor = next
    }
    expect(walked.toSorted()).toEqual(all.toSorted())
  })

  it('narrows by kind, state, words and attention', async () => {
    expect((await page('?kind=command')).actors.map(({ id }) => id)).toEqual([delivered])
    expect((await page('?state=succeeded')).actors.map(({ id }) => id)).toEqual([delivered])
    expect((await page(`?q=${delivered.slice(-6)}`)).actors.length).toBeGreaterThan(0)
    expect((await page('?attention=true')).actors).toEqual([])
  })

  it('shows one actor with what may be shown of its context, and what can happen next', async () => {
    const { body } = await get(`/api/actors/command/${delivered}`)
    const { actor } = ActorAnswer.parse(body)
    expect(actor).toMatchObject({ status: 'done', attention: false, next: [], work: null, timers: [], lease: null })
    expect(actor.context).toEqual({ attempts: 1, error: null })
    expect(actor.taskId).not.toBeNull()
    const resting = (await page('?kind=subscription')).actors[0]
    const rest = ActorAnswer.parse((await get(`/api/actors/subscription/${resting?.id}`)).body).actor
    expect(rest).toMatchObject({ value: 'resting', status: 'active' })
    expect(rest.next.map(({ event }) => event)).toContain('rearmed')
    // In words, and not by the names that machines use.
    expect(rest.next).toContainEqual({ event: 'settled', label: 'the task is finished, as told another way' })
  })

  it('reads the log with the edges that were taken, and people by their names', async () => {
    const { body } = await get(`/api/actors/command/${delivered}/log`)
    const { steps, next } = ActorLogPage.parse(body)
    expect(next).toBeNull()
    expect(steps.map(({ revision }) => revision)).toEqual([1, 2, 3])
    expect(steps[0]).toMatchObject({ cause: running.viewer.displayName, edges: [], facts: ['command.accepted'] })
    expect(steps.map(({ edges }) => edges)).toEqual([
      [],
      ['command.pending.discovering|xstate.done.actor.discover|0'],
      ['command.dispatching|xstate.done.actor.deliver|0'],
    ])
    expect(steps[2]?.event).toEqual({ type: 'xstate.done.actor.deliver', output: { kind: 'replied' } })
    const later = ActorLogPage.parse((await get(`/api/actors/command/${delivered}/log?after=1&limit=1`)).body)
    expect(later.steps).toEqual([steps[1]])
    expect(later.next).toBe(2)
  })

  it('shows the supervisor with every loop up, and the process that runs them', async () => {
    const { supervisor, process: own } = SupervisorAnswer.parse((await get('/api/supervisor')).body)
    expect(supervisor).toMatchObject({
      value: { running: { command: 'up', leases: 'up' } },
      restarts: 0,
      lastFailure: null,
    })
    expect(own.owner).toContain(`/${process.pid}/`)
    expect(own.loops.map(({ state, restarts, lastFailure }) => [state, restarts, lastFailure])).toEqual(
      own.loops.map(() => ['up', 0, null]),
    )
    const { places } = own.loops.find(({ name }) => name === 'subscription') ?? {}
    expect(places).toEqual({ taken: 0, limit: 8, perAgent: 8 })
    expect(own).toMatchObject({ works: true, parser: { threads: 1, tasksLost: 0 }, database: { profile: 'pglite' } })
  })

  it('tells who looks after a task, and by which way its news came', async () => {
    const localId = (await running.api.command(delivered)).result?.localId ?? ''
    const { actors, heard } = TaskActorsAnswer.parse((await get(`/api/task-actors/${localId}`)).body)
    expect(actors[0]).toMatchObject({ actor: { kind: 'subscription', id: localId, value: 'resting' }, wait: null })
    expect(heard.map(({ way }) => way)).toContain('stream')
    for (const id of ['no-uuid', '00000000-0000-7000-8000-000000000000'])
      expect(await get(`/api/task-actors/${id}`)).toEqual({
        status: 404,
        body: { error: { message: 'Task not found.' } },
      })
  })

  it('tells queues and leases of every kind, where nothing waits', async () => {
    const { kinds, commands } = QueuesAnswer.parse((await get('/api/queues')).body)
    expect(kinds.map(({ kind }) => kind)).toEqual(Object.keys(running.system.kinds))
    for (const { kind, attention } of kinds) expect([kind, attention]).toEqual([kind, 0])
    expect(commands).toEqual({ pending: 0, dispatching: 0, oldestPendingAt: null })
  })

  it.each([
    ['?limit=0', 400, 'limit must be 1–100.'],
    ['?limit=101', 400, 'limit must be 1–100.'],
    ['?limit=ten', 400, 'limit must be 1–100.'],
    ['?cursor=nonsense', 400, 'Invalid cursor.'],
    [`?cursor=${Buffer.from('["today","x"]').toString('base64url')}`, 400, 'Invalid cursor.'],
    ['/command/no-uuid', 404, 'Actor not found.'],
    ['/command/00000000-0000-7000-8000-000000000000', 404, 'Actor not found.'],
    ['/command/00000000-0000-7000-8000-000000000000/log', 404, 'Actor not found.'],
  ])('refuses /api/actors%s', async (path, status, message) => {
    expect(await get(`/api/actors${path}`)).toEqual({ status, body: { error: { message } } })
  })
})

describe('what is stuck or uncertain', () => {
  const stranger = '00000000-0000-7000-8000-0000000000ff'
  let idle: TestConsole
  let running: TestConsole
  let faulty: RawPeer
  let uncertain: Command

  beforeAll(async () => {
    const fresh = await startConsole({
      database: 'postgresql',
      uiDirectory: null,
      identify: (person, { headers }) => (headers['x-stranger'] ? { ...person, organizationId: stranger } : person),
    })
    running = fresh
    faulty = await startRawPeer()
    faulty.script.fault('SendMessage', { fault: 'reset', performed: true })
    const agent = await running.system.agents.register(running.viewer, faulty.cardUrl)
    uncertain = await running.finished((await running.send(agent.id, { text: 'pay the invoice' })).id)
    idle = await startConsole({ database: 'postgresql', uiDirectory: null, system: { works: false } })
  })
  afterAll(async () => {
    await running.close()
    await idle.close()
    await faulty.close()
  })

  it('tells of an uncertain command when it left, how that ended, and what a first look at the agent showed', async () => {
    const answer = async () => ActorAnswer.parse((await running.api.get(`/api/actors/command/${uncertain.id}`)).body)
    await expect.poll(async () => (await answer()).evidence?.looks, { timeout: 15_000, interval: 10 }).toBe(1)
    const { actor, delivery, evidence, wait } = await answer()
    expect(actor).toMatchObject({ value: 'uncertain', attention: true })
    expect(delivery).toMatchObject({ action: 'send', acceptedAt: uncertain.createdAt, ended: 'unknown', localId: null })
    expect(Date.parse(delivery?.leftAt ?? '')).toBeGreaterThanOrEqual(Date.parse(uncertain.createdAt))
    expect(evidence).toMatchObject({ outcome: 'found', messageId: uncertain.messageId })
    expect(wait).toBeNull()
    const { kinds } = QueuesAnswer.parse((await running.api.get('/api/queues')).body)
    expect(kinds.find(({ kind }) => kind === 'command')?.attention).toBe(1)
    const { actors } = ActorPage.parse((await running.api.get('/api/actors?attention=true')).body)
    expect(actors.map(({ id }) => id)).toEqual([uncertain.id])
  })

  it('lists a send that made no task, and gives back its words', async () => {
    const { sends, more } = UnsettledAnswer.parse((await running.api.get('/api/sends/unsettled')).body)
    expect(more).toBe(false)
    expect(sends).toEqual([
      expect.objectContaining({ id: uncertain.id, status: 'uncertain', title: 'pay the invoice', localId: null }),
    ])
    expect(sends[0]?.evidence).toMatchObject({ outcome: 'found', looks: 1 })
    const { send } = SentWordsAnswer.parse((await running.api.get(`/api/sends/${uncertain.id}`)).body)
    expect(send).toMatchObject({ text: 'pay the invoice', otherParts: 0, agentId: uncertain.agentId })
  })

  it('shows nothing of it to another organization', async () => {
    const asStranger = { 'x-stranger': 'yes' }
    const get = async (path: string) => (await running.api.get(path, asStranger)).body
    expect(await get('/api/sends/unsettled')).toEqual({ sends: [], more: false })
    expect(await get(`/api/sends/${uncertain.id}`)).toEqual({ error: { message: 'Command not found.' } })
    expect(await get('/api/actors?attention=true')).toEqual({ actors: [], next: null })
    const { kinds, leases } = QueuesAnswer.parse(await get('/api/queues'))
    expect(kinds.every(({ due, attention }) => due === 0 && attention === 0)).toBe(true)
    expect(leases).toEqual([])
  })

  it('lists what a person sent and nobody delivered yet, and to nobody else', async () => {
    const who = { stranger: { organizationId: stranger }, colleague: { userId: crypto.randomUUID() } }
    const waiting = await startConsole({
      database: 'postgresql',
      uiDirectory: null,
      system: { works: false },
      identify: (person, { headers }) => ({
        ...person,
        ...(headers['x-who'] === 'stranger' ? who.stranger : {}),
        ...(headers['x-who'] === 'colleague' ? who.colleague : {}),
      }),
    })
    onTestFinished(() => waiting.close())
    const underWay = async (headers = {}) =>
      UnderWayAnswer.parse((await waiting.api.get('/api/sends/under-way', headers)).body)
    const agent = await waiting.system.agents.register(waiting.viewer, faulty.cardUrl)
    const first = await waiting.send(agent.id, { text: 'the first' })
    const second = await waiting.send(agent.id, { text: 'the second' })
    const { at, sends, count, isWhole } = await underWay()
    expect([count, isWhole]).toEqual([2, true])
    expect(sends.map(({ id, status, title }) => [id, status, title])).toEqual([
      [first.id, 'pending', 'the first'],
      [second.id, 'pending', 'the second'],
    ])
    expect(Date.parse(at)).toBeGreaterThanOrEqual(Date.parse(second.createdAt))
    for (const other of Object.keys(who))
      expect(await underWay({ 'x-who': other })).toMatchObject({ sends: [], count: 0 })
  })

  it('says that work waits and nobody works', async () => {
    const agent = await idle.system.agents.register(idle.viewer, faulty.cardUrl)
    const sent = await idle.send(agent.id, { text: 'hello' })
    const { wait } = ActorAnswer.parse((await idle.api.get(`/api/actors/command/${sent.id}`)).body)
    expect(wait).toMatchObject({ ahead: 0, taken: [], places: 256 })
    const queues = QueuesAnswer.parse((await idle.api.get('/api/queues')).body)
    expect(queues.kinds.find(({ kind }) => kind === 'command')).toMatchObject({ due: 1 })
    expect(queues.commands).toMatchObject({ pending: 1, dispatching: 0, oldestPendingAt: sent.createdAt })
    const { process: own, supervisor } = SupervisorAnswer.parse((await idle.api.get('/api/supervisor')).body)
    expect(own.works).toBe(false)
    expect(own.loops.find(({ name }) => name === 'command')).toMatchObject({ state: 'left', places: null })
    const running = { command: 'leftToWorkers', leases: 'leftToWorkers', freshness: 'up', housekeeping: 'up' }
    expect(supervisor.value).toMatchObject({ running })
  })
})
