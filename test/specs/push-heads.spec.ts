/** Deliveries whose head says one thing twice: nobody is let in by either of two credentials, and nothing is taken under two names. */
import { once } from 'node:events'
import { request as ask, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { TestConsole } from '../support/console.ts'
import type { RawPeer } from '../support/peers/raw.ts'
import {
  calledTask,
  callingAgent,
  credentialFor,
  deliver,
  pathOf,
  pushConsole,
  type Callback,
} from '../support/push.ts'

let house: TestConsole
let agent: { readonly id: string; readonly peer: RawPeer }
let called: Callback
beforeAll(async () => {
  house = await pushConsole('postgresql')
  agent = await callingAgent(house)
})
beforeEach(async () => {
  called = await calledTask(house, agent)
})
afterAll(async () => {
  await house.close()
  await agent.peer.close()
})

const update = (): object => ({
  statusUpdate: {
    taskId: called.taskId,
    contextId: called.contextId,
    status: { state: 'TASK_STATE_COMPLETED', timestamp: '2030-01-01T00:00:00Z' },
  },
})

/** Each field is sent as it stands here, as often as it does: `fetch` would join them. */
async function deliverWith(...fields: readonly (readonly [name: string, value: string])[]): Promise<[number, unknown]> {
  const headers = [['host', new URL(house.url).host], ['content-type', 'application/json'], ...fields].flat()
  const outgoing = ask(house.url + pathOf(called.registrationId), { method: 'POST', headers })
  outgoing.end(JSON.stringify(update()))
  const [reply] = (await once(outgoing, 'response')) as [IncomingMessage]
  return [reply.statusCode ?? 0, await json(reply)]
}

const right = (): readonly [string, string] => ['authorization', `Bearer ${credentialFor(called.registrationId)}`]
const wrong = ['authorization', 'Bearer wrong'] as const
const token = (): readonly [string, string] => ['x-a2a-notification-token', credentialFor(called.registrationId)]

test('two credentials are a wrong one, whichever comes first', async () => {
  for (const fields of [
    [right(), wrong],
    [wrong, right()],
    [right(), right()],
    [right(), wrong, token()],
    [token(), token()],
  ])
    expect(await deliverWith(...fields)).toEqual([401, { error: 'Invalid push authentication.' }])
})

test('two names of a delivery are none, and two hosts are no request', async () => {
  const named = [1, 2].map((n) => ['x-a2a-delivery-id', `${n}`] as const)
  expect(await deliverWith(right(), ...named)).toEqual([400, { error: 'Invalid push delivery ID.' }])
  expect(await deliverWith(right(), ['host', 'console.example'])).toEqual([400, { error: 'Invalid request.' }])
  expect(await house.api.task(called.localId)).toMatchObject({ state: 'TASK_STATE_SUBMITTED' })
})

test('a piece of an artifact is taken and not added, whether the artifact is known or not', async () => {
  const piece = (artifactId: string, append: boolean) => ({
    artifactUpdate: {
      taskId: called.taskId,
      contextId: called.contextId,
      artifact: { artifactId, parts: [{ text: append ? 'more' : 'begun' }] },
      append,
    },
  })
  for (const event of [piece('unknown', true), piece('known', false), piece('known', true)])
    expect(await deliver(house, called.registrationId, event)).toMatchObject({ status: 204 })
  const { artifacts } = await house.api.task(called.localId)
  expect(artifacts.map(({ artifactId, parts }) => [artifactId, parts])).toEqual([
    ['known', [expect.objectContaining({ value: 'begun' })]],
  ])
})
