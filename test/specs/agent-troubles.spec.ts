/** What stands in an agent's way: told to whoever may see it, of this agent alone, and nothing where all is well. */
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ActorAnswer, ActorPage } from '../../domain/actor.ts'
import { AgentTroubles } from '../../domain/agent-troubles.ts'
import { streamOpenAfterMs } from '../../domain/patience.ts'
import { UnderWayAnswer } from '../../domain/under-way.ts'
import { UnsettledAnswer } from '../../domain/unsettled-send.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'

/** A pass of looks that failed late is tried again half a minute after. */
const patience = { timeout: 40_000, interval: 50 }
const who = {
  stranger: { organizationId: '00000000-0000-7000-8000-00000000aaaa' },
  colleague: { userId: '00000000-0000-7000-8000-00000000bbbb' },
}
const none = { count: 0, isWhole: true }
const nothing = { looks: { ...none, scopes: [] }, unfollowed: { ...none, tasks: [] }, others: none, full: [] }

describe('an agent', () => {
  let running: TestConsole
  let faulty: RawPeer
  let healthy: RawPeer
  let troubled: string
  let well: string
  /** Sends of which nobody knows, the newest first. */
  const doubtful: string[] = []

  beforeAll(async () => {
    running = await startConsole({
      database: 'postgresql',
      uiDirectory: null,
      identify: (person, { headers }) => ({
        ...person,
        ...(headers['x-who'] === 'stranger' ? who.stranger : {}),
        ...(headers['x-who'] === 'colleague' ? who.colleague : {}),
      }),
    })
    faulty = await startRawPeer({ card: { name: 'Ledger Agent' } })
    healthy = await startRawPeer({ card: { name: 'Archive Agent' } })
    troubled = (await running.system.agents.register(running.viewer, faulty.cardUrl)).id
    well = (await running.system.agents.register(running.viewer, healthy.cardUrl)).id
    await running.finished((await running.send(well, { text: 'direct' })).id)
  })
  afterAll(async () => {
    await running.close()
    await faulty.close()
    await healthy.close()
  })

  const get = async (path: string, headers = {}) => (await running.api.get(path, headers)).body
  const troublesOf = async (id: string, headers = {}) =>
    AgentTroubles.parse(await get(`/api/agents/${id}/troubles`, headers))
  const commandPlaces = () => {
    const { concurrency: limit = 0, laneLimit: perAgent = 0 } = running.system.kinds['command'] ?? {}
    return { limit, perAgent }
  }
  const sendsOf = async (id: string) => UnsettledAnswer.parse(await get(`/api/sends/unsettled?agentId=${id}`)).sends

  it('that is well has none, and is said to have shown its card', async () => {
    const told = await troublesOf(well)
    expect(told).toMatchObject({ ...nothing, others: { ...nothing.others, oldestAt: null } })
    expect(Date.parse(told.cardReadAt ?? '')).toBeLessThanOrEqual(Date.parse(told.at))
  })

  it('whose tasks cannot be read is told with why and since when, until it can be read again', async () => {
    for (const operation of ['SubscribeToTask', 'GetTask', 'ListTasks'])
      faulty.script.fault(operation, { fault: 'reset', performed: false }, Infinity)
    const before = Date.now()
    // Who is in doubt has the agent asked at once.
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    doubtful.unshift((await running.finished((await running.send(troubled, { text: 'pay the invoice' })).id)).id)
    const sent = await running.finished((await running.send(troubled, { text: 'hold the line' })).id)
    const failing = () => troublesOf(troubled)
    await expect.poll(failing, patience).toMatchObject({
      looks: { scopes: [{ reason: 'Agent network request failed.' }], count: 1 },
      unfollowed: { count: 1, isWhole: true },
    })
    const { looks, unfollowed } = await failing()
    expect(unfollowed.tasks).toEqual([
      {
        localId: sent.result?.localId,
        title: 'hold the line',
        reason: 'Agent network request failed.',
        since: expect.any(String),
        nextTryAt: unfollowed.tasks[0]?.nextTryAt,
      },
    ])
    // The task's page tells of the same.
    const follower = ActorAnswer.parse(await get(`/api/actors/subscription/${sent.result?.localId}`))
    expect(follower.since).toBe(unfollowed.tasks[0]?.since)
    // However often it is tried since, it has not moved, in the list of actors either.
    const follows = async () =>
      ActorPage.parse(await get('/api/actors?kind=subscription')).actors.find(({ id }) => id === sent.result?.localId)
    const changed = async () => (await running.task(sent.result?.localId ?? '', () => true)).updatedAt
    const tried = (await follows())?.updatedAt ?? ''
    const lastChange = await changed()
    await expect.poll(async () => (await follows())?.updatedAt, patience).not.toBe(tried)
    expect((await follows())?.movedAt).toBe(follower.since)
    expect(await changed()).toBe(lastChange)
    for (const { since } of [...looks.scopes, ...unfollowed.tasks])
      expect(Date.parse(since ?? '')).toBeGreaterThanOrEqual(before)
    expect(await troublesOf(well)).toMatchObject(nothing)
    faulty.script.heal()
    await expect.poll(failing, patience).toMatchObject({ looks: none, unfollowed: none })
  })

  it('whose stream opens again is followed from then on, though it tells nothing', async () => {
    const quiet = await startRawPeer({ card: { name: 'Quiet Agent' } })
    onTestFinished(() => quiet.close())
    const { id } = await running.system.agents.register(running.viewer, quiet.cardUrl)
    quiet.script.fault('SubscribeToTask', { fault: 'reset', performed: false }, Infinity)
    const localId = (await running.finished((await running.send(id, { text: 'hold' })).id)).result?.localId
    const follower = async () => ActorAnswer.parse(await get(`/api/actors/subscription/${localId}`)).actor
    await expect.poll(() => troublesOf(id), patience).toMatchObject({ unfollowed: { count: 1 } })
    quiet.script.heal()
    quiet.script.fault('SubscribeToTask', { fault: 'hang-after-head', type: 'text/event-stream' }, Infinity)
    await expect.poll(() => troublesOf(id), patience).toMatchObject({ unfollowed: none })
    // By its being told so, and not because it has stood for long.
    const { value, context, work } = await follower()
    expect({ value, open: context['open'] }).toEqual({ value: 'following', open: true })
    expect(Date.now() - Date.parse(work?.startedAt ?? '')).toBeLessThan(streamOpenAfterMs)
  })

  it.each([
    [500, 'The agent failed with HTTP status 500: Out of memory.'],
    [400, 'The agent refused: Out of memory.'],
  ])('that answers with HTTP %i is told in words of that: %s', async (status, reason) => {
    const answer = {
      fault: 'error',
      code: status === 500 ? -32603 : -32602,
      message: 'Out of memory.',
      status,
    } as const
    // Its list, which is read once a minute, would tell that this agent's tasks are over.
    for (const operation of ['SubscribeToTask', 'GetTask', 'ListTasks'])
      faulty.script.fault(operation, answer, Infinity)
    const sent = await running.finished((await running.send(troubled, { text: 'hold this' })).id)
    const unfollowed = async () => (await troublesOf(troubled)).unfollowed
    const localId = sent.result?.localId
    await expect.poll(unfollowed, patience).toMatchObject({ tasks: [{ localId, reason }], count: 1 })
    faulty.script.heal()
    await expect.poll(unfollowed, patience).toMatchObject(none)
  })

  it('has its own sends that ended in doubt, and not the others', async () => {
    faulty.script.fault('SendMessage', { fault: 'reset', performed: false })
    doubtful.unshift((await running.finished((await running.send(troubled, { text: 'pay it again' })).id)).id)
    for (const id of [troubled, troubled.toUpperCase()])
      expect((await sendsOf(id)).map((send) => send.id)).toEqual(doubtful)
    expect(await sendsOf(well)).toEqual([])
  })

  it('tells what it did not get yet: one’s own with their words, others’ by their number', async () => {
    faulty.script.holdReplies()
    const sent = await running.send(troubled, { text: 'one more' })
    await running.db.pool.query(sql.unsafe`
      update command set created_at = now() - interval '1 minute' where id = ${sent.id}`)
    const own = async (id: string, headers = {}) =>
      UnderWayAnswer.parse(await get(`/api/sends/under-way?agentId=${id}`, headers))
    expect(await own(troubled)).toMatchObject({ sends: [{ id: sent.id }], count: 1, isWhole: true })
    expect(await own(well)).toMatchObject({ sends: [], count: 0, isWhole: true })
    expect((await troublesOf(troubled)).others.count).toBe(0)
    const colleague = { 'x-who': 'colleague' }
    expect(await own(troubled, colleague)).toMatchObject({ sends: [], count: 0 })
    const { others } = await troublesOf(troubled, colleague)
    expect(others).toEqual({ count: 1, isWhole: true, oldestAt: expect.any(String) })
    expect((await troublesOf(well, colleague)).others.count).toBe(0)
    faulty.script.release()
    await running.finished(sent.id)
    expect((await troublesOf(troubled, colleague)).others.count).toBe(0)
  })

  it('that has all its places taken is told with how many wait, since when, and by when the first is free', async () => {
    const busy = await startRawPeer({ card: { name: 'Busy Agent' } })
    onTestFinished(() => busy.close())
    const { id } = await running.system.agents.register(running.viewer, busy.cardUrl)
    await running.finished((await running.send(id, { text: 'direct' })).id)
    const { perAgent, limit } = commandPlaces()
    expect(perAgent).toBeLessThan(limit)
    busy.script.holdReplies()
    const sent = await Promise.all(Array.from({ length: perAgent + 2 }, () => running.send(id, { text: 'direct' })))
    await busy.received(perAgent + 1)
    // For a moment anything waits.
    expect((await troublesOf(id)).full).toEqual([])
    await running.db.pool.query(sql.unsafe`
      update actor set wake_at = wake_at - interval '1 minute' where kind = 'command' and lane = ${id} and lease_token is null`)
    const { at, full } = await troublesOf(id)
    const [told] = full
    expect(full).toEqual([
      {
        kind: 'command',
        taken: perAgent,
        places: perAgent,
        waiting: 2,
        oldestDueAt: expect.any(String),
        requestSince: expect.any(String),
      },
    ])
    expect(Date.parse(at) - Date.parse(told?.oldestDueAt ?? '')).toBeGreaterThan(59_000)
    expect(Date.parse(told?.requestSince ?? '')).toBeLessThan(Date.parse(at))
    expect((await troublesOf(well)).full).toEqual([])
    busy.script.release()
    for (const each of sent) await running.finished(each.id)
    expect((await troublesOf(id)).full).toEqual([])
  })

  it('has its actors in the list of all of them, live and finished', async () => {
    const of = async (id: string, more = '') =>
      ActorPage.parse(await get(`/api/actors?agentId=${id}${more}`)).actors.map(({ kind, value }) => [kind, value])
    const all = await of(troubled)
    expect(all).toContainEqual(['command', 'succeeded'])
    expect(all).toContainEqual(['command', 'uncertain'])
    expect(all.map(([kind]) => kind)).toContain('subscription')
    expect(all.map(([kind]) => kind)).toContain('reconciliation')
    expect(await of(troubled, '&kind=command&attention=true')).toEqual(doubtful.map(() => ['command', 'uncertain']))
    expect(await of(well)).toEqual([['command', 'succeeded']])
  })

  it('is named by a UUID, and unknown to another organization', async () => {
    for (const path of ['sends/unsettled', 'sends/under-way', 'actors']) {
      const { status, body } = await running.api.get(`/api/${path}?agentId=Ledger`)
      expect([path, status, body]).toEqual([path, 400, { error: { message: 'agentId must be a UUID.' } }])
    }
    const asStranger = { 'x-who': 'stranger' }
    expect(await get(`/api/agents/${troubled}/troubles`, asStranger)).toEqual({
      error: { message: 'Unknown agent.' },
    })
    expect(await get('/api/agents/Ledger/troubles')).toEqual({ error: { message: 'Unknown agent.' } })
    expect(await get(`/api/sends/unsettled?agentId=${troubled}`, asStranger)).toEqual({
      sends: [],
      more: false,
      count: { messages: 0, cancels: 0, isWhole: true },
    })
    expect(await get(`/api/actors?agentId=${troubled}`, asStranger)).toEqual({ actors: [], next: null })
  })
})
