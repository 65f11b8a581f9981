/**
 * A task that ended in another's sight while its stream was open: what the stream still brings is kept, for an agent may never say
 * it again; and one that brings nothing more is hung up on, so that it keeps no place.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { LastWords } from '../../actors/last-words.ts'
import type { TaskView } from '../../domain/task.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { statusOf } from './models/stage.ts'
import { archivedSubscription } from '../support/archive.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const notes = (taskId: string, text: string) => ({
  artifactUpdate: { taskId, artifact: { artifactId: 'notes', parts: [{ text }] }, append: true },
})
const said = ({ artifacts }: TaskView): unknown[] => artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))

const houses = eitherDatabase.flatMap((database) =>
  (['this process', 'another process'] as const)
    .filter((who) => database === 'postgresql' || who === 'this process')
    .map((who) => ({ database, who })),
)

describe.each(houses)('a stream on $database whose task’s end $who sees', ({ database, who }) => {
  let fresh: FreshDatabase
  let other: Database | null
  let follower: RunningSystem
  let looker: RunningSystem
  let peer: RawPeer
  let agentId: string
  beforeEach(async () => {
    fresh = await freshDatabase(database)
    other = who === 'another process' ? await openDatabase(fresh.profile) : null
    follower = await systemOn(fresh.db)
    looker = other === null ? follower : await systemOn(other, { rhythm: followsNothing })
    peer = await startRawPeer({ binding: 'HTTP+JSON' })
    agentId = (await follower.system.agents.register(follower.viewer, peer.cardUrl)).id
  })
  afterEach(async () => {
    if (looker !== follower) await looker.close()
    await follower.close()
    await other?.close()
    await peer.close()
    await fresh.close()
  })

  /** Its agent shows the end, and nothing of what it has made. */
  async function ended(): Promise<{ readonly localId: string; readonly remoteId: string }> {
    const { result } = await follower.finished((await follower.send(agentId, { text: 'hold' })).id)
    const localId = result?.localId ?? ''
    await expect.poll(() => peer.subscribed(), patience).toHaveLength(1)
    const [remoteId = ''] = peer.taskIds()
    peer.script.emit(remoteId, notes(remoteId, 'Before.'))
    const { contextId } = await follower.task(localId, (view) => said(view).includes('Before.'))
    const bare = { id: remoteId, contextId, status: { state: 'TASK_STATE_COMPLETED' } }
    const headers = { 'content-type': 'application/json' }
    peer.script.fault('GetTask', { fault: 'body', body: JSON.stringify(bare), headers }, Infinity)
    await new Scopes(looker).turn(agentId)
    await follower.task(localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    return { localId, remoteId }
  }
  const archived = (localId: string) => () => archivedSubscription(follower, localId)

  it('is read to its end: what it still brings is kept', async () => {
    const { localId, remoteId } = await ended()
    peer.script.emit(remoteId, notes(remoteId, 'After.'))
    await follower.task(localId, (view) => said(view).includes('After.'))
    peer.script.finish('Done.')
    await expect.poll(archived(localId), patience).toEqual([localId])
    const view = await follower.task(localId, () => true)
    expect(said(view).filter((words) => words !== 'Done.')).toEqual(['Before.', 'After.'])
    expect(view.transitions.filter(({ state }) => state === 'TASK_STATE_COMPLETED')).toHaveLength(1)
    expect(view.state).toBe('TASK_STATE_COMPLETED')
    expect(peer.subscribed()).toEqual([remoteId])
    expect([...follower.lines, ...looker.lines].filter(({ level }) => level !== 'info')).toEqual([])
  })

  it('is hung up on where it brings nothing more', async () => {
    const { localId, remoteId } = await ended()
    await expect.poll(archived(localId), patience).toEqual([localId])
    expect(said(await follower.task(localId, () => true))).toEqual(['Before.'])
    expect(peer.subscribed()).toEqual([remoteId])
    expect([...follower.lines, ...looker.lines].filter(({ level }) => level !== 'info')).toEqual([])
  })
})

describe('an end that is told while its follower still looks for the agent', () => {
  const Row = z.object({ isHeld: z.boolean() })
  it.each([
    ['waited for a person', true],
    ['is of an agent that does not stream', false],
  ])('of a task that %s is not forgotten: it is looked at and closed', async (_which, streaming) => {
    const fresh = await freshDatabase('pglite')
    const peer = await startRawPeer({ binding: 'HTTP+JSON', streaming })
    const before = await systemOn(fresh.db, { rhythm: followsNothing })
    const { id: agentId } = await before.system.agents.register(before.viewer, peer.cardUrl)
    const { result } = await before.finished((await before.send(agentId, { text: 'hold' })).id)
    const [localId, remoteTaskId] = [String(result?.localId), String(result?.taskId)]
    const push = ({ system }: RunningSystem, state: string, at: string) => {
      const observations = [statusOf(remoteTaskId, state, at)]
      const report = { agentId, tenant: '', source: 'push' as const, command: null, remoteTaskId, observations }
      const told = [{ type: 'agent.reported' as const, report }]
      const ref = { kind: 'subscription', id: localId }
      return system.runtime.step({ ref, event: null, told, lease: null, cause: 'test' })
    }
    if (streaming) await push(before, 'TASK_STATE_INPUT_REQUIRED', '2029-01-01T00:00:00.000Z')
    await before.close()
    // Nobody knows the card any more, and it is a while in coming.
    peer.script.fault('GetAgentCard', { fault: 'delay', delayMs: 1_500 }, Infinity)
    const running = await systemOn(fresh.db)
    const isHeld = () =>
      running.db.pool.oneFirst(sql.type(Row)`
        select lease_token is not null as "isHeld" from actor where kind = 'subscription' and id = ${localId}`)
    await expect.poll(isHeld, patience).toBe(true)
    const looks = peer.callsOf('GetTask')
    peer.script.finish()
    await push(running, 'TASK_STATE_COMPLETED', '2030-01-01T00:00:00.000Z')
    const left = () => archivedSubscription(running, localId)
    await expect.poll(left, { timeout: 20_000, interval: 50 }).toEqual([localId])
    expect(peer.callsOf('GetTask')).toBeGreaterThan(looks)
    await running.close()
    await peer.close()
    await fresh.close()
  })
})

describe('last words', () => {
  const opened = () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const seen = { hungUp: 0 }
    return { seen, words: new LastWords(() => void (seen.hungUp += 1)) }
  }

  it('are waited for three seconds, from the end on', async () => {
    const { seen, words } = opened()
    words.listen()
    await vi.advanceTimersByTimeAsync(60_000)
    words.begin()
    await vi.advanceTimersByTimeAsync(2_900)
    expect(seen.hungUp).toBe(0)
    await vi.advanceTimersByTimeAsync(200)
    expect(seen.hungUp).toBe(1)
  })

  it('are waited for thirty seconds in all, of which what they take here is none', async () => {
    const { seen, words } = opened()
    words.begin()
    for (let n = 0; n < 11; n++) {
      words.listen()
      await vi.advanceTimersByTimeAsync(2_500)
      words.hear()
      await vi.advanceTimersByTimeAsync(60_000)
    }
    expect(seen.hungUp).toBe(0)
    words.listen()
    await vi.advanceTimersByTimeAsync(2_600)
    expect(seen.hungUp).toBe(1)
  })

  it('have three seconds more where their place is wanted, whatever comes', async () => {
    const { seen, words } = opened()
    words.begin()
    words.hurry()
    for (let n = 0; n < 3; n++) {
      expect(seen.hungUp).toBe(0)
      words.listen()
      await vi.advanceTimersByTimeAsync(990)
      words.hear()
    }
    await vi.advanceTimersByTimeAsync(40)
    expect(seen.hungUp).toBe(1)
    expect(words.hasHungUp).toBe(true)
  })

  it('that came while the process stood still are heard first', async () => {
    const { seen, words } = opened()
    words.begin()
    words.listen()
    // The timer rings before the socket is read, which is in the same turn of the event loop.
    await vi.advanceTimersByTimeAsync(2_999)
    setTimeout(() => words.hear(), 1)
    vi.advanceTimersByTime(1)
    await vi.advanceTimersByTimeAsync(10)
    expect(seen.hungUp).toBe(0)
  })
})
