/**
 * The end of a task and the end of following it, when a process dies in between: no subscription stays behind with a finished
 * task, and none leaves before it has seen what the task made. A process that is dead is one that does nothing more: what it
 * had committed is told in its name, and then another one comes.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Kinds } from '../../actors/loop/kinds.ts'
import { scopeId } from '../../actors/reconciliation-scopes.ts'
import type { Report } from '../../domain/fact.ts'
import { DatabaseBusy } from '../../persistence/admission.ts'
import type { ActorRef } from '../../persistence/actors.ts'
import { archivedSubscription } from '../support/archive.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { statusOf } from './models/stage.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const Id = z.object({ id: z.string() })
const later = '2030-01-01T00:00:00.000Z'

describe.each(eitherDatabase)('the end of a task on %s', (kind) => {
  let fresh: FreshDatabase
  let peer: RawPeer
  const alive = new Set<RunningSystem>()
  beforeEach(async () => {
    fresh = await freshDatabase(kind)
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
  })
  afterEach(async () => {
    for (const running of alive) await ends(running)
    await peer.close()
    await fresh.close()
  })

  async function starts(options: Parameters<typeof systemOn>[1] = {}, db = fresh.db): Promise<RunningSystem> {
    const running = await systemOn(db, options)
    alive.add(running)
    return running
  }
  async function ends(running: RunningSystem): Promise<void> {
    if (alive.delete(running)) await running.close()
  }

  async function sent(running: RunningSystem, text: string) {
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const { result } = await running.finished((await running.send(agentId, { text })).id)
    return { agentId, localId: String(result?.localId), remoteId: String(result?.taskId) }
  }
  const archived = (localId: string) => (): Promise<readonly string[]> => archivedSubscription(fresh, localId)
  const stateOf = (localId: string) => (): Promise<string | null> =>
    fresh.db.pool.maybeOneFirst(sql.type(Id)`
      select snapshot->>'value' as id from actor where kind = 'subscription' and id = ${localId}`)

  /** What somebody committed of the end, before they died. */
  const told = (running: RunningSystem, ref: ActorRef, of: Pick<Report, 'agentId' | 'source' | 'remoteTaskId'>) => {
    const end = statusOf(of.remoteTaskId ?? '', 'TASK_STATE_COMPLETED', later)
    // Whoever looks sees a task.
    const observations = [of.source === 'poll' ? { ...end, kind: 'task' as const } : end]
    const fact = { type: 'agent.reported' as const, report: { ...of, tenant: '', command: null, observations } }
    return running.system.runtime.step({ ref, event: null, told: [fact], lease: null, cause: 'test' })
  }

  it('that reconciliation saw ends a subscription at rest with the same commit: nothing can come between', async () => {
    const running = await starts()
    const { agentId, localId, remoteId } = await sent(running, 'ask')
    await expect.poll(stateOf(localId), patience).toBe('resting')
    await new Scopes(running).turn(agentId)
    const scope = { kind: 'reconciliation', id: scopeId({ agentId, tenant: '' }) }
    await told(running, scope, { agentId, source: 'poll', remoteTaskId: remoteId })
    expect(await archived(localId)()).toEqual([localId])
  })

  it('that the agent reached by itself is seen by asking, and the subscription at rest is over', async () => {
    const running = await starts()
    const { agentId, localId, remoteId } = await sent(running, 'ask')
    await expect.poll(stateOf(localId), patience).toBe('resting')
    const task = { id: remoteId, status: { state: 'TASK_STATE_COMPLETED', timestamp: later } }
    const headers = { 'content-type': 'application/json' }
    peer.script.fault('GetTask', { fault: 'body', headers, body: JSON.stringify(task) }, Infinity)
    await new Scopes(running).turn(agentId)
    expect(await archived(localId)()).toEqual([localId])
  })

  it('that a stream told before its process died is followed by the one look at the whole', async () => {
    const doomed = await starts({ rhythm: followsNothing })
    const { agentId, localId, remoteId } = await sent(doomed, 'hold')
    await told(doomed, { kind: 'subscription', id: localId }, { agentId, source: 'stream', remoteTaskId: remoteId })
    await ends(doomed)
    peer.script.finish('Made before the end.')
    const heir = await starts()
    await expect.poll(archived(localId), patience).toEqual([localId])
    const { artifacts } = await heir.task(localId, () => true)
    expect(artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))).toEqual(['Made before the end.'])
    expect(peer.callsOf('GetTask')).toBe(1)
    expect(peer.callsOf('SubscribeToTask')).toBe(0)
  })

  const made = async (running: RunningSystem, localId: string) =>
    (await running.task(localId, () => true)).artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))
  const follower = (localId: string): ActorRef => ({ kind: 'subscription', id: localId })

  it('that a push told is looked at until the whole is seen, whatever the agent answers at first', async () => {
    const running = await starts()
    const { agentId, localId, remoteId } = await sent(running, 'hold')
    await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBe(1)
    peer.script.fault('GetTask', { fault: 'error', code: -32603, message: 'Internal error' })
    await told(running, follower(localId), { agentId, source: 'push', remoteTaskId: remoteId })
    peer.script.finish('Made before the end.')
    await expect.poll(archived(localId), patience).toEqual([localId])
    expect(await made(running, localId)).toEqual(['Made before the end.'])
  })

  it('that a push told is seen whole also where nobody had followed the task: its first answer was a question', async () => {
    const running = await starts()
    const other = await sent(running, 'hold')
    peer.script.fault('SendMessage', {
      fault: 'body',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task: { id: 'asks', contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }),
    })
    const { agentId, localId } = await sent(running, 'ask')
    expect(await stateOf(localId)()).toBeNull()
    const headers = { 'content-type': 'application/json' }
    const artifacts = [{ artifactId: 'a', parts: [{ text: 'Made before the end.' }] }]
    const task = { id: 'asks', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED', timestamp: later }, artifacts }
    peer.script.fault('GetTask', { fault: 'body', headers, body: JSON.stringify(task) }, Infinity)
    await told(running, follower(other.localId), { agentId, source: 'push', remoteTaskId: 'asks' })
    await expect.poll(archived(localId), patience).toEqual([localId])
    expect(await made(running, localId)).toEqual(['Made before the end.'])
  })

  it('is looked for with all its tries, also where the database does not keep up before each', async () => {
    let busy = 0
    const pool = new Proxy(fresh.db.pool, {
      get(target, name) {
        const method: unknown = Reflect.get(target, name)
        if (name !== 'maybeOne') return method
        return (query: { readonly sql: string }) => {
          const reads = query.sql.includes('state_at') && query.sql.includes('remote_id is not null')
          if (reads && busy-- > 0) return Promise.reject(new DatabaseBusy())
          return (method as (query: unknown) => unknown).call(target, query)
        }
      },
    })
    const running = await starts({}, { ...fresh.db, pool })
    const { agentId, localId, remoteId } = await sent(running, 'hold')
    await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBe(1)
    busy = 4
    await told(running, follower(localId), { agentId, source: 'push', remoteTaskId: remoteId })
    peer.script.finish('Made before the end.')
    await expect.poll(archived(localId), patience).toEqual([localId])
    expect(busy).toBeLessThanOrEqual(0)
    expect(await made(running, localId)).toEqual(['Made before the end.'])
  })

  it('is looked at for as long as its agent takes, though others wait for the place', async () => {
    const turnMs = 200
    const onePlace = (kinds: Kinds): Kinds => {
      const { subscription } = kinds
      if (!subscription) throw new Error('There are no subscriptions.')
      return { ...kinds, subscription: { ...subscription, concurrency: 1, turnMs } }
    }
    const running = await starts({ rhythm: onePlace })
    const { agentId, localId, remoteId } = await sent(running, 'hold')
    await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBe(1)
    peer.script.fault('GetTask', { fault: 'delay', delayMs: 4_000 }, Infinity)
    for (let n = 0; n < 2; n++) await sent(running, 'hold')
    await told(running, follower(localId), { agentId, source: 'push', remoteTaskId: remoteId })
    peer.script.finish('Made before the end.')
    await expect.poll(archived(localId), patience).toEqual([localId])
    expect(await made(running, localId)).toEqual(['Made before the end.'])
  })

  it('is no question where the agent was removed meanwhile: the subscription is over', async () => {
    const doomed = await starts({ rhythm: followsNothing })
    const { agentId, localId, remoteId } = await sent(doomed, 'hold')
    await told(doomed, { kind: 'subscription', id: localId }, { agentId, source: 'stream', remoteTaskId: remoteId })
    await doomed.system.agents.remove(doomed.viewer, agentId)
    await ends(doomed)
    await starts()
    await expect.poll(archived(localId), patience).toEqual([localId])
    expect(peer.callsOf('GetTask')).toBe(0)
  })
})
