/** What the actor debugger answers, over actors that really moved. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ActorAnswer, ActorLogPage, ActorPage } from '../../domain/actor.ts'
import { QueuesAnswer, SupervisorAnswer } from '../../domain/queue.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import type { Peer } from '../support/peers/peer.ts'
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

  it('shows the supervisor with every loop up', async () => {
    const { supervisor } = SupervisorAnswer.parse((await get('/api/supervisor')).body)
    expect(supervisor).toMatchObject({
      value: { running: { command: 'up', leases: 'up' } },
      restarts: 0,
      lastFailure: null,
    })
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
