/** That a stream is open is told while it is, and not of the look behind it, nor of what the next worker only asks for. */
import { sql } from 'slonik'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { isStreaming } from '../../persistence/failing.ts'
import { freshDatabase, type FreshDatabase } from '../support/databases.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { systemOn, type RunningSystem } from '../support/system.ts'

const patience = { timeout: 20_000, interval: 20 }
const Row = z.object({
  value: z.unknown(),
  failures: z.number(),
  open: z.boolean().nullable(),
  startedAt: z.string().nullable(),
  owner: z.string().nullable(),
  streaming: z.boolean(),
})

let fresh: FreshDatabase
beforeAll(async () => {
  fresh = await freshDatabase('postgresql')
})
afterAll(() => fresh.close())

const row = (localId: string) =>
  fresh.db.pool.one(sql.type(Row)`
    select snapshot->'value' as value, (snapshot->'context'->>'failures')::int as failures, (snapshot->'context'->>'open')::boolean as open,
      work_started_at as "startedAt", lease_owner as owner, ${isStreaming} as streaming
    from actor a where kind = 'subscription' and id = ${localId}`)

async function begin(
  spoil: (peer: RawPeer) => void,
): Promise<{ peer: RawPeer; first: RunningSystem; localId: string }> {
  const peer = await startRawPeer()
  onTestFinished(() => peer.close())
  const first = await systemOn(fresh.db)
  const { id } = await first.system.agents.register(first.viewer, peer.cardUrl)
  spoil(peer)
  const localId = (await first.finished((await first.send(id, { text: 'hold' })).id)).result?.localId ?? ''
  await expect.poll(async () => (await row(localId)).failures, patience).toBe(2)
  return { peer, first, localId }
}

it('is over with the stream, and not with the look at the task that follows', async () => {
  const { peer, first, localId } = await begin((peer) =>
    peer.script.fault(
      'SubscribeToTask',
      { fault: 'cut-short', body: ': hello\n\n', type: 'text/event-stream' },
      Infinity,
    ),
  )
  onTestFinished(() => first.close())
  peer.script.fault('GetTask', { fault: 'hang-before-head' }, Infinity)
  const before = peer.callsOf('SubscribeToTask')
  const looks = peer.callsOf('GetTask')
  await expect.poll(() => peer.callsOf('SubscribeToTask'), patience).toBe(before + 1)
  await expect.poll(() => peer.callsOf('GetTask'), patience).toBeGreaterThan(looks)
  // The stream has come and gone, and the look at the task hangs.
  expect(await row(localId)).toMatchObject({ value: 'following', open: null, streaming: false })
  expect(peer.callsOf('SubscribeToTask')).toBe(before + 1)
})

it('is not so of what another worker asks for, after one that drained while it was', async () => {
  const { peer, first, localId } = await begin((peer) =>
    peer.script.fault('SubscribeToTask', { fault: 'reset', performed: false }, Infinity),
  )
  peer.script.heal()
  peer.script.fault('SubscribeToTask', { fault: 'hang-after-head', type: 'text/event-stream' }, Infinity)
  await expect.poll(() => row(localId), patience).toMatchObject({ open: true, streaming: true })
  await first.close()
  expect(await row(localId)).toMatchObject({ owner: null, streaming: false })
  peer.script.heal()
  peer.script.fault('SubscribeToTask', { fault: 'hang-before-head' }, Infinity)
  const second = await systemOn(fresh.db)
  onTestFinished(() => second.close())
  const owner = second.system.worker.owner
  await expect.poll(() => row(localId), patience).toMatchObject({ owner, open: null, streaming: false })
})
