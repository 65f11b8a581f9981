/** What the actor debugger answers, over actors that really moved. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Outbound } from '../../actors/outbound.ts'
import { ActorAnswer, ActorLogPage, ActorPage } from '../../domain/actor.ts'
import type { Command } from '../../domain/command.ts'
import { answeredError, answeredStatus, lostAnswers } from '../../domain/lost-answer.ts'
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

  it('finds what it lists by the titles that it shows, in letters of any case, live and finished', async () => {
    const { actors } = await page()
    const titled = actors.filter(({ title }) => title !== '')
    expect(new Set(titled.map(({ status }) => status))).toEqual(new Set(['active', 'done']))
    const titles = new Set(titled.map(({ title }) => title))
    for (const title of titles) {
      const shown = actors.filter((each) => each.title === title).map(({ kind, id }) => `${kind}/${id}`)
      const found = await page(`?q=${encodeURIComponent(title.toUpperCase())}`)
      expect(found.actors.map(({ kind, id }) => `${kind}/${id}`)).toEqual(expect.arrayContaining(shown))
      expect(found.actors.map(({ title: each }) => each.toUpperCase())).toEqual(
        found.actors.map(() => title.toUpperCase()),
      )
    }
    expect((await page('?q=words that no title has')).actors).toEqual([])
    expect((await page('?q=words that no title has&attention=true')).actors).toEqual([])
  })

  it('refuses what no name can hold, and knows no kind that there is none of', async () => {
    for (const name of ['q', 'state', 'kind', 'owner'])
      expect((await running.api.get(`/api/actors?${name}=%00`)).status).toBe(400)
    const id = '01a00000-0000-7000-8000-000000000001'
    for (const path of [`%00/${id}`, `%00/${id}/log`, `toString/${id}`])
      expect((await running.api.get(`/api/actors/${path}`)).status).toBe(404)
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

  it('reads the log back from its end, too, each step with the edge that led to it', async () => {
    const log = async (query: string): Promise<ActorLogPage> =>
      ActorLogPage.parse((await get(`/api/actors/command/${delivered}/log?${query}`)).body)
    const { steps } = await log('after=0')
    expect(await log('before=999999999&limit=2')).toEqual({ steps: steps.slice(1), next: 2 })
    expect(await log('before=2&limit=2')).toEqual({ steps: steps.slice(0, 1), next: null })
    expect(await log('before=999999999&limit=3')).toEqual({ steps, next: null })
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
    ['/command/00000000-0000-7000-8000-000000000000/log?before=x', 400, 'before must be a revision.'],
    ['/command/00000000-0000-7000-8000-000000000000/log?before=1&after=1', 400, 'after and before exclude each other.'],
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
    faulty = await startRawPeer({ card: { name: 'Ledger Agent' } })
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
    const { sends, ...beyond } = UnsettledAnswer.parse((await running.api.get('/api/sends/unsettled')).body)
    expect(beyond).toEqual({ more: false, count: { messages: 1, cancels: 0, isWhole: true } })
    expect(sends).toEqual([
      expect.objectContaining({ id: uncertain.id, status: 'uncertain', title: 'pay the invoice', localId: null }),
    ])
    expect(sends[0]?.evidence).toMatchObject({ outcome: 'found', looks: 1 })
    const { send } = SentWordsAnswer.parse((await running.api.get(`/api/sends/${uncertain.id}`)).body)
    expect(send).toMatchObject({ text: 'pay the invoice', otherParts: 0, agentId: uncertain.agentId })
    // By these whoever runs the agent can look for it.
    expect(send).toMatchObject({
      agentName: 'Ledger Agent',
      messageId: uncertain.messageId,
      taskId: null,
      localId: null,
    })
  })

  it('names an uncertain cancel by its task', async () => {
    const { agentId } = uncertain
    const held = await running.finished((await running.send(agentId, { text: 'hold the line' })).id)
    const taskId = held.result?.taskId ?? ''
    faulty.script.fault('CancelTask', { fault: 'reset', performed: false })
    const { id } = await running.finished((await running.send(agentId, { action: 'cancelTask', taskId })).id)
    const { actor } = ActorAnswer.parse((await running.api.get(`/api/actors/command/${id}`)).body)
    expect(actor).toMatchObject({ value: 'uncertain', title: 'Cancel: hold the line' })
    const { send } = SentWordsAnswer.parse((await running.api.get(`/api/sends/${id}`)).body)
    expect(send).toMatchObject({ title: 'hold the line', taskId, localId: held.result?.localId })
  })

  it('tells of a message that was found how its task stands here now, and not at an old look', async () => {
    const { agentId } = uncertain
    const asked = await running.finished((await running.send(agentId, { text: 'ask' })).id)
    const { localId = '', taskId } = asked.result ?? {}
    await running.task(localId, ({ state }) => state === 'TASK_STATE_INPUT_REQUIRED')
    faulty.script.fault('SendMessage', { fault: 'reset', performed: true })
    const { id } = await running.finished((await running.send(agentId, { text: 'blue', taskId: taskId ?? '' })).id)
    const evidence = async () => ActorAnswer.parse((await running.api.get(`/api/actors/command/${id}`)).body).evidence
    await expect.poll(evidence, { timeout: 15_000, interval: 10 }).toMatchObject({ outcome: 'found', localId })
    const { state } = await running.task(localId, ({ state: now }) => now === 'TASK_STATE_COMPLETED')
    expect(await evidence()).toMatchObject({
      localState: state,
      sentence: `The agent has the message: it stands in the history of task ${taskId}.`,
    })
  })

  it('shows nothing of it to another organization', async () => {
    const asStranger = { 'x-stranger': 'yes' }
    const get = async (path: string) => (await running.api.get(path, asStranger)).body
    expect(await get('/api/sends/unsettled')).toEqual({
      sends: [],
      more: false,
      count: { messages: 0, cancels: 0, isWhole: true },
    })
    expect(await get(`/api/sends/${uncertain.id}`)).toEqual({ error: { message: 'Command not found.' } })
    expect(await get('/api/actors?attention=true')).toEqual({ actors: [], next: null })
    const { kinds, leases } = QueuesAnswer.parse(await get('/api/queues'))
    expect(kinds.every(({ due, attention }) => due === 0 && attention === 0)).toBe(true)
    expect(leases).toEqual([])
  })

  it('names the agent that has all its places taken, and since when the oldest of them waits for its answer', async () => {
    const places = 64
    faulty.script.holdReplies()
    onTestFinished(() => faulty.script.release())
    const sends = Array.from({ length: places + 1 }, (_, n) => running.send(uncertain.agentId, { text: `hung ${n}` }))
    const ids = (await Promise.all(sends)).map(({ id }) => id)
    const waits = async () => {
      const all = await Promise.all(ids.map((id) => running.api.get(`/api/actors/command/${id}`)))
      return all.flatMap(({ body }) => ActorAnswer.parse(body).wait ?? [])
    }
    await expect
      .poll(waits, { timeout: 15_000, interval: 200 })
      .toEqual([expect.objectContaining({ taken: [expect.objectContaining({ ofLane: places })] })])
    const [wait] = await waits()
    expect(Date.parse(wait?.requestSince ?? '')).toBeLessThanOrEqual(Date.now())
    const { kinds } = QueuesAnswer.parse((await running.api.get('/api/queues')).body)
    expect(kinds.find(({ kind }) => kind === 'command')?.busiest).toEqual({ name: 'Ledger Agent', held: places })
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

describe('what came instead of an answer', () => {
  const policy = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] } as const
  let running: TestConsole
  let faulty: RawPeer
  let agentId: string

  beforeAll(async () => {
    // A minute of silence, cut short: longer than an answer over loopback takes, shorter than a test.
    const outbound = new Outbound(policy, { longestMs: 8_000 })
    running = await startConsole({ database: 'pglite', uiDirectory: null, system: { outbound } })
    faulty = await startRawPeer()
    agentId = (await running.system.agents.register(running.viewer, faulty.cardUrl)).id
  })
  afterAll(async () => {
    await running.close()
    await faulty.close()
  })

  it.each([
    ['silence', { fault: 'hang-before-head' }, lostAnswers.timeout],
    ['half an answer and silence', { fault: 'hang-after-head' }, lostAnswers.unfinished],
    ['announcements', { fault: 'interim', statuses: Array.from({ length: 99 }, () => 100) }, lostAnswers.announced],
    ['a reset', { fault: 'reset', performed: false }, lostAnswers.reset],
    ['too much', { fault: 'flood', bytes: 30 * 1024 * 1024 }, 'Agent response exceeds the safety limit.'],
    ['a redirect', { fault: 'redirect', location: 'http://127.0.0.1:1/' }, 'Agent redirects are not permitted.'],
    ['garbage', { fault: 'body', body: '{"jsonrpc": "2.0", "resu' }, lostAnswers.undecided],
    ['an error of its own', { fault: 'error', code: -32603, message: 'token sk-4711 expired' }, answeredError(-32603)],
    ['a status', { fault: 'status', status: 503 }, answeredStatus(503)],
  ] as const)('tells %s in words of ours, and nothing that the agent wrote', async (_, fault, cause) => {
    faulty.script.fault('SendMessage', fault)
    const { id, status } = await running.finished((await running.send(agentId, { text: 'hello' })).id)
    expect(status).toBe('uncertain')
    const { body } = await running.api.get(`/api/actors/command/${id}`)
    expect(ActorAnswer.parse(body).delivery).toMatchObject({ ended: 'unknown', cause })
    const log = (await running.api.get(`/api/actors/command/${id}/log`)).body
    expect(ActorLogPage.parse(log).steps.at(-1)?.event).toMatchObject({ output: { kind: 'unknown', cause } })
    expect(JSON.stringify([body, log])).not.toContain('sk-4711')
  })

  it('names the way that was taken, and none whose guard said no: its card was missed three times, and nothing was gone', async () => {
    const hidden = await startRawPeer()
    const agent = await running.system.agents.register(running.viewer, hidden.cardUrl)
    hidden.script.fault('GetAgentCard', { fault: 'status', status: 500 }, Infinity)
    const { id, status } = await running.finished((await running.send(agent.id, { text: 'hello' })).id)
    await hidden.close()
    expect(status).toBe('failed')
    const { steps } = ActorLogPage.parse((await running.api.get(`/api/actors/command/${id}/log`)).body)
    expect(steps.at(-1)?.edges).toEqual(['command.pending.discovering|xstate.done.actor.discover|4'])
  })
})
