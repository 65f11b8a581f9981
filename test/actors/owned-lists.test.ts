/** The lists that begin at ownership: mine and overdue follow what becomes of owner, due time and task, newest task first. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Operation } from '../../actors/loop/operation.ts'
import type { TaskFilter } from '../../domain/task.ts'
import type { ActorRef } from '../../persistence/actors.ts'
import { listTasks } from '../../persistence/task-views.ts'
import { eitherDatabase } from '../support/databases.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'

describe.each(eitherDatabase)('lists of owned tasks on %s', (kind) => {
  let running: RunningSystem
  let peer: Peer
  const tasks: { localId: string; taskId: string }[] = []
  let agentId: string

  beforeAll(async () => {
    running = await freshSystem(kind)
    peer = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    agentId = (await running.system.agents.register(running.viewer, peer.cardUrl)).id
    for (let n = 0; n < 3; n++) {
      const command = await running.finished((await running.send(agentId, { text: 'ask' })).id)
      const { localId = '', taskId } = command.result ?? {}
      await running.task(localId, (task) => task.state === 'TASK_STATE_INPUT_REQUIRED')
      await running.system.runtime.perform(own(running.viewer.organizationId), { kind: 'ownership', id: localId })
      tasks.push({ localId, taskId: taskId ?? '' })
    }
  })
  afterAll(async () => {
    await running.close()
    await peer.close()
  })

  const tell = (n: number, event: { type: string } & Record<string, unknown>) =>
    running.system.runtime.send({ kind: 'ownership', id: tasks[n]?.localId ?? '' }, event, 'test')
  const listed = async (filter: TaskFilter, page = { limit: 50, offset: 0 }): Promise<number[]> => {
    const rows = await listTasks(running.db.pool, running.viewer, { filter, ...page, now: new Date().toISOString() })
    return rows.map((row) => tasks.findIndex(({ localId }) => localId === row.localId))
  }
  const past = new Date(Date.now() - 60_000).toISOString()
  const future = new Date(Date.now() + 3_600_000).toISOString()

  it('mine are those that I hold, newest task first, whenever I claimed them', async () => {
    const { membershipId } = running.viewer
    expect(await listed('mine')).toEqual([])
    await tell(2, { type: 'claim', membershipId, at: past })
    await tell(0, { type: 'claim', membershipId, at: past })
    expect(await listed('mine')).toEqual([2, 0])
    expect(await listed('mine', { limit: 1, offset: 1 })).toEqual([0])
    expect(await listed('unassigned')).toEqual([1])
    await tell(2, { type: 'release' })
    expect(await listed('mine')).toEqual([0])
    expect(await listed('unassigned')).toEqual([2, 1])
  })

  it('overdue are those past their time, owned or not, until they finish', async () => {
    await tell(0, { type: 'setDue', dueAt: past, inMs: 0 })
    await tell(1, { type: 'setDue', dueAt: past, inMs: 0 })
    await tell(2, { type: 'setDue', dueAt: future, inMs: 3_600_000 })
    expect(await listed('overdue')).toEqual([1, 0])
    await running.finished((await running.send(agentId, { text: 'red', taskId: tasks[1]?.taskId ?? '' })).id)
    await running.task(tasks[1]?.localId ?? '', (task) => task.state === 'TASK_STATE_COMPLETED')
    expect(await listed('overdue')).toEqual([0])
    expect(await listed('mine')).toEqual([0])
  })
})

/** As claiming will do it: an ownership actor begins with the first thing that happens to a task's ownership. */
const own = (organizationId: string): Operation<ActorRef, null> => ({
  name: 'own',
  run: (_batch, refs) =>
    Promise.resolve(
      refs.map((ref) => ({
        kind: 'done' as const,
        result: null,
        effects: { spawns: [{ ref, lane: null, isNew: false, organizationId, cause: 'test' }] },
      })),
    ),
})
