/**
 * A task that ended in another's sight while its stream was open: what the stream still brings is kept, for an agent may never say
 * it again; and one that brings nothing more is hung up on, so that it keeps no place.
 */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { TaskView } from '../../domain/task.ts'
import { openDatabase, type Database } from '../../persistence/database.ts'
import { bothDatabases, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'
import { followsNothing, patience, Scopes } from './reconciliation-turns.ts'

const Found = z.object({ id: z.string() })
const notes = (taskId: string, text: string) => ({
  artifactUpdate: { taskId, artifact: { artifactId: 'notes', parts: [{ text }] }, append: true },
})
const said = ({ artifacts }: TaskView): unknown[] => artifacts.flatMap(({ parts }) => parts.map(({ value }) => value))

const houses = bothDatabases.flatMap((database) =>
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
  const isLeft = async (localId: string): Promise<boolean> =>
    (
      await follower.db.pool.any(sql.type(Found)`
      select id from actor_archive where kind = 'subscription' and id = ${localId}`)
    ).length > 0

  it('is read to its end: what it still brings is kept', async () => {
    const { localId, remoteId } = await ended()
    peer.script.emit(remoteId, notes(remoteId, 'After.'))
    await follower.task(localId, (view) => said(view).includes('After.'))
    peer.script.finish()
    await expect.poll(() => isLeft(localId), patience).toBe(true)
    const view = await follower.task(localId, () => true)
    expect(said(view).slice(0, 2)).toEqual(['Before.', 'After.'])
    expect(view.transitions.filter(({ state }) => state === 'TASK_STATE_COMPLETED')).toHaveLength(1)
    expect(view.state).toBe('TASK_STATE_COMPLETED')
    expect(peer.subscribed()).toEqual([remoteId])
    expect([...follower.lines, ...looker.lines].filter(({ level }) => level !== 'info')).toEqual([])
  })

  it('is hung up on where it brings nothing more', async () => {
    const { localId, remoteId } = await ended()
    await expect.poll(() => isLeft(localId), patience).toBe(true)
    expect(said(await follower.task(localId, () => true))).toEqual(['Before.'])
    expect(peer.subscribed()).toEqual([remoteId])
    expect([...follower.lines, ...looker.lines].filter(({ level }) => level !== 'info')).toEqual([])
  })
})
