/** Push: agents are told where to call, their calls are taken by the rules of the specification, and the task is followed sooner. */
import { createHmac } from 'node:crypto'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { TaskView } from '../../domain/task.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { openDoorway, type Doorway } from '../support/doorway.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'

const signingKey = '0f'.repeat(32)
const offersPush = { capabilities: { streaming: false, pushNotifications: true } }
const credentialFor = (id: string): string =>
  createHmac('sha256', Buffer.from(signingKey, 'hex')).update(id).digest('base64url')

/** Which ways told what is known of a task, in order. */
const sourcesOf = async (house: TestConsole, taskId: string): Promise<readonly string[]> =>
  house.db.pool.anyFirst(sql.type(z.object({ source: z.string() }))`
    select source from task_event where task_id = ${taskId} order by position`)

/** Kind and status of the actor of a task's push, wherever it lies. */
const pushActorOf = async (house: TestConsole, taskId: string): Promise<string | null> =>
  house.db.pool.maybeOneFirst(sql.type(z.object({ value: z.string() }))`
    select snapshot->>'value' as value from actor where kind = 'push' and id = ${taskId}
    union all select snapshot->>'value' from actor_archive where kind = 'push' and id = ${taskId}`)

const isDone = (view: TaskView): boolean => view.state === 'TASK_STATE_COMPLETED'
const isWorking = (view: TaskView): boolean => view.state === 'TASK_STATE_WORKING'

const dialects = [
  ['1.0', 'JSONRPC'],
  ['1.0', 'HTTP+JSON'],
  ['0.3', 'JSONRPC'],
  ['0.3', 'HTTP+JSON'],
] as const

describe.each(bothDatabases)('push on %s', (database) => {
  let house: TestConsole
  let doorway: Doorway
  beforeAll(async () => {
    doorway = await openDoorway()
    house = await startConsole({ database, system: { push: { callbackOrigin: doorway.origin, signingKey } } })
    doorway.leadTo(house.url)
  })
  afterAll(async () => {
    await house.close()
    await doorway.close()
  })

  test.each(dialects)(
    'a published agent, %s over %s, calls and the task ends by its call',
    async (version, binding) => {
      const peer: Peer = await startSdkPeer({ version, binding, card: offersPush })
      try {
        const agentId = await house.api.register(peer.cardUrl)
        const before = doorway.passages.length
        const { localId } = await house.api.send(agentId, { text: 'hold' })
        await expect.poll(() => pushActorOf(house, localId)).toBe('registered')
        peer.script.finish('Done.')
        const view = await house.task(localId, isDone)
        expect(await sourcesOf(house, localId)).toContain('push')
        await house.task(localId, ({ artifacts }) => artifacts.length === 1)
        await expect.poll(() => pushActorOf(house, localId)).toBe('ended')
        const mine = doorway.passages.slice(before)
        expect(mine.length).toBeGreaterThan(0)
        expect(mine.map(({ status }) => status)).toEqual(mine.map(() => 204))
        expect(view.state).toBe('TASK_STATE_COMPLETED')
      } finally {
        await peer.close()
      }
    },
  )

  test('x', () => {
    expect(credentialFor('x')).toHaveLength(43)
    expect(isWorking).toBeTypeOf('function')
  })
})
