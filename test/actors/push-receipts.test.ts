/** Taking deliveries: which are the same, and what a sender is told when it was not the delivery's fault. */
import { request as ask, type IncomingMessage } from 'node:http'
import { sql } from 'slonik'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PushReceipts } from '../../actors/push-receipts.ts'
import { instruments } from '../../actors/system.ts'
import { ParserPool } from '../../actors/threads/pool.ts'
import { pieceMessages } from '../../domain/long-history.ts'
import { failureOf } from '../../http/refusals.ts'
import { forgetDeliveries } from '../../persistence/push.ts'
import type { TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import {
  calledTask,
  callingAgent,
  callsOnly,
  credentialFor,
  deliver,
  pathOf,
  pushConsole,
  sourcesOf,
  signingKey,
  type Callback,
} from '../support/push.ts'

let house: TestConsole
let peer: RawPeer
let agentId: string
beforeAll(async () => {
  house = await pushConsole('postgresql')
  ;({ id: agentId, peer } = await callingAgent(house))
})
afterAll(async () => {
  await house.close()
  await peer.close()
})

const working = (agent = { id: agentId, peer }): Promise<Callback> => calledTask(house, agent)
const chunk = ({ taskId, contextId }: Callback, text: string) => ({
  artifactUpdate: { taskId, contextId, artifact: { artifactId: 'words', parts: [{ text }] } },
})

test('a delivery whose parsing was lost is to come again, the loss is told, and then it is taken', async () => {
  const { system, db } = house
  const callback = await working()
  const { registrationId } = callback
  const losses: unknown[] = []
  const pool = new ParserPool({ threads: 1, taskDeadlineMs: 1, lost: (error) => losses.push(error) })
  const receipts = new PushReceipts({
    db,
    pool,
    instruments,
    runtime: system.runtime,
    artifacts: system.artifacts,
    rates: system.rates,
    door: { masked: (_agentId, said) => Promise.resolve(said) },
    push: { callbackOrigin: 'http://127.0.0.1:9', signingKey },
  })
  const target = await receipts.admit(registrationId, [credentialFor(registrationId)])
  // Large enough for a thread, which takes longer than that to read it.
  const event = chunk(callback, 'signal '.repeat(600_000))
  const body = new TextEncoder().encode(JSON.stringify(event))
  const error: unknown = await receipts.receive({ target, deliveryId: 'd1', body }).catch((thrown: unknown) => thrown)
  expect(failureOf(error)).toMatchObject({ status: 503, alarm: 'outage' })
  expect(losses).toHaveLength(1)
  expect(pool.stats.tasksLost).toBe(1)
  await pool.close()
  expect((await house.api.task(callback.localId)).artifacts).toEqual([])
  expect((await deliver(house, registrationId, event, { 'x-a2a-delivery-id': 'd1' })).status).toBe(204)
  expect((await house.api.task(callback.localId)).artifacts).toHaveLength(1)
})

test('a delivery with a history of thousands of messages is taken in pieces, and once', async () => {
  const callback = await working()
  const { taskId, contextId, localId, registrationId } = callback
  const said = (n: number) => ({ messageId: `m${n}`, role: 'ROLE_AGENT', parts: [{ text: 'word' }] })
  const history = Array.from({ length: 2 * pieceMessages }, (_, n) => said(n))
  const event = { task: { id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' }, history } }
  const before = (await sourcesOf(house, localId)).length
  for (const id of ['long', 'long', 'again'])
    expect((await deliver(house, registrationId, event, { 'x-a2a-delivery-id': id })).status).toBe(204)
  expect((await sourcesOf(house, localId)).slice(before)).toEqual(['push', 'push', 'push'])
  const { messages } = await house.api.task(localId)
  expect(messages.slice(-history.length).map(({ id }) => id)).toEqual(history.map(({ messageId }) => messageId))
})

const bodyLimitBytes = 16 * 1024 * 1024

test('an agent that stalls with all it may send keeps no other agent from delivering', async () => {
  const mine = [await working(), await working()]
  const other = await startRawPeer({ card: callsOnly })
  const theirs = await working({ id: await house.api.register(other.cardUrl), peer: other })
  // Four deliveries about two tasks, each a byte short of the largest: two are held, the others are told to come later.
  const answers: unknown[] = []
  const stalled = [...mine, ...mine].map(({ registrationId }) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': bodyLimitBytes,
      authorization: `Bearer ${credentialFor(registrationId)}`,
    }
    const delivery = ask(house.url + pathOf(registrationId), { method: 'POST', headers })
    delivery.on('error', () => undefined)
    const answered = new Promise<void>((resolve) => {
      delivery.on('response', ({ statusCode }: IncomingMessage) => {
        answers.push(statusCode)
        resolve()
      })
    })
    const written = new Promise((resolve) => delivery.write(Buffer.alloc(bodyLimitBytes - 1, 0x20), resolve))
    return { delivery, arrived: Promise.race([answered, written]) }
  })
  await Promise.all(stalled.map(({ arrived }) => arrived))
  const largest = JSON.stringify(chunk(theirs, 'Words.')).padEnd(bodyLimitBytes)
  expect((await deliver(house, theirs.registrationId, largest)).status).toBe(204)
  await expect.poll(() => answers.slice(0, 2)).toEqual([503, 503])
  for (const { delivery } of stalled) delivery.destroy()
  await other.close()
})

test('a delivery is the same as another by its id, and by its content only where it has none', async () => {
  const callback = await working()
  const { registrationId, taskId, contextId, localId } = callback
  const say = async (body: object, deliveryId?: string): Promise<void> => {
    const answer = await deliver(house, registrationId, body, { 'x-a2a-delivery-id': deliveryId })
    expect(answer.status).toBe(204)
  }
  const status = (state: string) => ({ statusUpdate: { taskId, contextId, status: { state: `TASK_STATE_${state}` } } })
  const state = async () => (await house.api.task(localId)).state
  // Without instants, as agents of 0.3 say them: the third is no repetition of the first.
  await say(status('WORKING'), 'd1')
  await say(status('INPUT_REQUIRED'), 'd2')
  await say(status('WORKING'), 'd3')
  expect(await state()).toBe('TASK_STATE_WORKING')
  await say(status('INPUT_REQUIRED'), 'd2')
  expect(await state()).toBe('TASK_STATE_WORKING')
  // What is dropped by its id was not taken: it is no repetition where it comes as another delivery.
  await say(status('AUTH_REQUIRED'), 'd2')
  expect(await state()).toBe('TASK_STATE_WORKING')
  await say(status('AUTH_REQUIRED'))
  expect(await state()).toBe('TASK_STATE_AUTH_REQUIRED')
  await say(status('WORKING'))
  await say(status('AUTH_REQUIRED'))
  expect(await state()).toBe('TASK_STATE_WORKING')
})

test('forgetting deliveries waits for nobody who forgets them, too', async () => {
  const { pool } = house.db
  const { registrationId } = await working()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: began } = Promise.withResolvers<void>()
  await pool.query(sql.unsafe`
    insert into push_delivery (registration_id, key, received_at)
    select ${registrationId}, key, now() - interval '2 hours' from unnest(array['held', 'free']) key`)
  const elsewhere = pool.transaction(async (tx) => {
    await tx.query(sql.unsafe`select from push_delivery where key = 'held' for update`)
    began()
    await released
  })
  await begun
  const left = () => pool.anyFirst(sql.unsafe`select key from push_delivery where key in ('held', 'free')`)
  await forgetDeliveries(pool)
  expect(await left()).toEqual(['held'])
  release()
  await elsewhere
  await forgetDeliveries(pool)
  expect(await left()).toEqual([])
})
