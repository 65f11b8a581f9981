/**
 * F11 through the front door: an agent tells a task over its stream and by push at once, shuffled, repeated and with words of another
 * task in between, and answers no GetTask before the end. What is promised is written in hostile-order.test.ts.
 */
import fc from 'fast-check'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { StreamResponse } from '../../a2a/messages.ts'
import type { TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { isLong, sized } from '../support/pass.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { calledTask, deliver, pushConsole, taskActorState } from '../support/push.ts'
import { patience } from '../actors/reconciliation-turns.ts'
import { deliveries, renamed, stories, storyOf } from './hostile-stories.ts'
import { suiteSeed } from './seed.ts'

const json = { 'content-type': 'application/json' }
const told = stories.chain((plot) => fc.record({ plot: fc.constant(plot), batches: deliveries(storyOf(plot).events) }))

describe.each(bothDatabases)('a task told in any order over the wire on %s', (database) => {
  let house: TestConsole
  let peer: RawPeer
  let id: string
  beforeAll(async () => {
    house = await pushConsole(database)
    peer = await startRawPeer({
      binding: 'HTTP+JSON',
      card: { capabilities: { streaming: true, pushNotifications: true } },
    })
    id = await house.api.register(peer.cardUrl)
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  // Which events reach the fold, and by whom, is one question on both: on the embedded database in the long pass.
  it.runIf(isLong || database === 'postgresql')('ends as the agent has it, and hears no word of another', async () => {
    await fc.assert(
      fc.asyncProperty(told, async ({ plot, batches }) => {
        // More in a minute than all agents together may call.
        await house.db.pool.query(sql.unsafe`delete from rate_window`)
        peer.script.heal()
        peer.script.fault('GetTask', { fault: 'status', status: 503 }, Infinity)
        peer.script.fault('ListTasks', { fault: 'status', status: 503 }, Infinity)
        const callback = await calledTask(house, { id, peer })
        const { localId, taskId, contextId, registrationId } = callback
        const { events, whole } = storyOf(plot, taskId, contextId)
        const foreign = storyOf(plot, `${taskId}-other`, contextId).events
        const push = async (event: StreamResponse, status = 204): Promise<void> =>
          expect((await deliver(house, registrationId, event)).status).toBe(status)
        for (const batch of batches)
          for (const delivery of batch) {
            const event = renamed(delivery.event, taskId, contextId)
            for (const other of foreign.slice(0, 2)) {
              peer.script.emit(taskId, { ...other })
              await push(other, 409)
            }
            if (delivery.source !== 'push') peer.script.emit(taskId, { ...event })
            if (delivery.source !== 'stream') await push(event)
          }
        peer.script.heal()
        const body = JSON.stringify('task' in whole ? whole.task : null)
        peer.script.fault('GetTask', { fault: 'body', headers: json, body }, Infinity)
        const end = events.at(-1)
        if (!end || !('task' in whole)) throw new Error('A story ends, and shows it.')
        peer.script.emit(taskId, { ...end })
        await push(end)
        const shown = async () => {
          const { state, messages, artifacts } = await house.api.task(localId)
          const agents = messages.filter(({ role }) => role === 'agent').map((each) => each.id)
          const parts = artifacts.map(({ artifactId, parts: said }) => [artifactId, said.map(({ value }) => value)])
          return { state, messages: agents.toSorted(), artifacts: Object.fromEntries(parts) }
        }
        const { status, history = [], artifacts = [] } = whole.task
        const said = [...history, ...(status.message ? [status.message] : [])].map(({ messageId }) => messageId)
        const parts = artifacts.map(({ artifactId, parts: made }) => [artifactId, made.map((part) => part.text)])
        const expected = {
          state: status.state,
          messages: expect.arrayContaining(said),
          artifacts: Object.fromEntries(parts),
        }
        await expect.poll(shown, patience).toEqual(expected)
        // Seen whole and told again after its end, it is no news.
        await expect.poll(() => taskActorState(house, 'subscription', localId), patience).toBe('finished')
        const before = await house.api.task(localId)
        for (const event of events) await push(event)
        expect(await house.api.task(localId)).toEqual(before)
        expect(JSON.stringify(before)).not.toContain(`${taskId}-other`)
      }),
      { numRuns: sized(3, 60), seed: suiteSeed, endOnFailure: true },
    )
  })
})
