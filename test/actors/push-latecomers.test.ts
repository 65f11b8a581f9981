/** Tasks that were under way before their deployment had push: their agents are told where to call, however many there are, and once. */
import { sql } from 'slonik'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Latecomers } from '../../actors/push-latecomers.ts'
import type { Runtime } from '../../actors/loop/runtime.ts'
import { eitherDatabase, freshDatabase, type FreshDatabase } from '../support/databases.ts'
import type { CardOverlay } from '../support/peers/card.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { callsOnly, pushStateOf, signingKey } from '../support/push.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

const create = 'CreateTaskPushNotificationConfig'
const push = { callbackOrigin: 'https://console.example', signingKey }
const Told = z.object({ params: z.object({ taskId: z.string() }) })

describe.each(eitherDatabase)('where push is turned on, on %s', (kind) => {
  let fresh: FreshDatabase
  const open: { close(): Promise<unknown> }[] = []
  beforeEach(async () => {
    fresh = await freshDatabase(kind)
  })
  afterEach(async () => {
    for (const one of open.splice(0).toReversed()) await one.close()
    await fresh.close()
  })
  const started = async (options: Parameters<typeof systemOn>[1]): Promise<RunningSystem> => {
    const running = await systemOn(fresh.db, options)
    open.push(running)
    return running
  }
  const peerThat = async (card: CardOverlay = callsOnly): Promise<RawPeer> => {
    const peer = await startRawPeer({ card })
    open.push(peer)
    return peer
  }

  /** Every hundredth has ended. */
  const begin = ({ viewer }: RunningSystem, agentId: string, count: number): Promise<readonly string[]> =>
    fresh.db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`
      insert into task (id, organization_id, agent_id, tenant, remote_id, kind, state, version, events, created_at, updated_at)
      select gen_random_uuid(), ${viewer.organizationId}, ${agentId}, case when n % 3 = 0 then 'x' else '' end, gen_random_uuid(), 'task',
        case when n % 100 = 0 then 'TASK_STATE_COMPLETED' else 'TASK_STATE_WORKING' end, 1, 1, now(), now()
      from generate_series(1, ${count}::int) n returning id`)

  it('the agents of tasks under way are told where to call, and those that do not call are left alone', async () => {
    const before = await systemOn(fresh.db)
    const [calls, silent] = [await peerThat(), await peerThat({ capabilities: { streaming: false } })]
    const tasks: string[] = []
    for (const peer of [calls, calls, silent]) {
      const { id } = await before.system.agents.register(before.viewer, peer.cardUrl)
      const sent = await before.send(id, { text: 'hold' })
      tasks.push((await before.finished(sent.id)).result?.localId ?? '')
    }
    await before.close()
    expect(await Promise.all(tasks.map((id) => pushStateOf(fresh, id)))).toEqual([null, null, null])
    await started({ push })
    const states = () => Promise.all(tasks.map((id) => pushStateOf(fresh, id)))
    await expect.poll(states).toEqual(['registered', 'registered', 'unsupported'])
    expect([calls.callsOf(create), silent.callsOf(create)]).toEqual([2, 0])
    expect(calls.taskIds()).toContain(Told.parse(calls.seen(create)?.body).params.taskId)
  })

  it('none is told where to call of a task that ended before it was found', async () => {
    const running = await started({ works: false, push })
    const peer = await peerThat()
    const { id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl)
    const [id] = await begin(running, agentId, 1)
    const { runtime } = running.system
    const late: Pick<Runtime, 'perform'> = {
      perform: async (operation, input) => {
        await fresh.db.pool.query(sql.unsafe`update task set state = 'TASK_STATE_COMPLETED'`)
        return runtime.perform(operation, input)
      },
    }
    await new Latecomers({ db: fresh.db, runtime: late, instruments: { monotonic: () => 0 } }).sweep()
    await started({ push })
    await expect.poll(() => pushStateOf(fresh, id ?? '')).toBe('ended')
    expect(peer.callsOf(create)).toBe(0)
  })

  it('they are found however many there are, some hundred at a time, and none is found twice', async () => {
    const running = await started({ works: false, push })
    const { id: agentId } = await running.system.agents.register(running.viewer, 'http://agent.example/card.json')
    await begin(running, agentId, 1200)
    const found = () =>
      fresh.db.pool.oneFirst(sql.type(z.object({ count: z.number() }))`
        select count(*)::int as count from actor where kind = 'push'`)
    let nowMs = 0
    const latecomers = new Latecomers({
      db: fresh.db,
      runtime: running.system.runtime,
      instruments: { monotonic: () => nowMs },
    })
    const counts: number[] = []
    for (let sweep = 0; sweep < 4; sweep++) {
      await latecomers.sweep()
      counts.push(await found())
    }
    expect(counts).toEqual([500, 1000, 1188, 1188])
    // The walk begins anew after a minute, for what a process without push began beside it.
    await begin(running, agentId, 3)
    await latecomers.sweep()
    expect(await found()).toBe(1188)
    nowMs += 60_000
    for (let sweep = 0; sweep < 3; sweep++) await latecomers.sweep()
    expect(await found()).toBe(1191)
  })
})
