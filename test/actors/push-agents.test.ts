/**
 * Push with agents: the published SDKs are told where to call and really call; agents that cannot, will not, or fail are left in
 * peace; what was registered is taken back. What the receiver takes is test/specs/push.spec.ts.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { storeBinding } from '../../actors/credential-changes.ts'
import { Vault, type KeyRing } from '../../actors/vault.ts'
import { ActorAnswer } from '../../domain/actor.ts'
import type { Binding } from '../../domain/credential.ts'
import type { TaskView } from '../../domain/task.ts'
import { spawnConsole, startConsole, type TestConsole } from '../support/console.ts'
import { eitherDatabase, freshDatabase } from '../support/databases.ts'
import { openDoorway, type Doorway } from '../support/doorway.ts'
import { startFront } from '../support/peers/raw-front.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { systemOn } from '../support/system.ts'
import { callsOnly, credentialFor, deliver, pushStateOf, signingKey, sourcesOf, toldTo } from '../support/push.ts'

const isDone = (view: TaskView): boolean => view.state === 'TASK_STATE_COMPLETED'
const ring: KeyRing = { keys: { k1: '11'.repeat(32) }, activeKey: 'k1' }
const create = 'CreateTaskPushNotificationConfig'
const remove = 'DeleteTaskPushNotificationConfig'
const down = { fault: 'status', status: 503 } as const

const dialects = [
  ['1.0', 'JSONRPC', '1.x'],
  ['1.0', 'HTTP+JSON', '1.x'],
  ['0.3', 'JSONRPC', '0.3'],
  ['0.3', 'HTTP+JSON', '0.3'],
  ['0.3', 'JSONRPC', '1.x'],
  ['0.3', 'HTTP+JSON', '1.x'],
] as const

const registrationsOf = async ({ db }: TestConsole, localId: string): Promise<readonly string[]> =>
  db.pool.anyFirst(sql.type(z.object({ id: z.string() }))`select id from push_registration where task_id = ${localId}`)

describe.each(eitherDatabase)('push with agents, on %s', (database) => {
  let house: TestConsole
  let doorway: Doorway
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    doorway = await openDoorway()
    const push = { callbackOrigin: doorway.origin, signingKey }
    house = await startConsole({ database, system: { push, vault: ring } })
    doorway.leadTo(house.url)
    peer = await startRawPeer({ card: callsOnly })
    agentId = await house.api.register(peer.cardUrl)
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
    await doorway.close()
  })
  const reaches = async (localId: string, state: string): Promise<void> => {
    await expect.poll(() => pushStateOf(house, localId), { timeout: 10_000 }).toBe(state)
  }

  test.each(dialects)(
    'a published agent of %s over %s (SDK %s) calls, and is told to stop',
    async (version, binding, sdk) => {
      const published = await startSdkPeer({ version, binding, sdk, card: callsOnly })
      const before = doorway.passages.length
      try {
        const { localId } = await house.api.send(await house.api.register(published.cardUrl), { text: 'hold' })
        await reaches(localId, 'registered')
        const [registrationId = ''] = await registrationsOf(house, localId)
        published.script.finish('Done.')
        const { artifacts } = await house.task(localId, (view) => isDone(view) && view.artifacts.length === 1)
        expect(artifacts[0]?.parts).toMatchObject([{ kind: 'text', value: 'Done.' }])
        expect(await sourcesOf(house, localId)).toContain('push')
        await reaches(localId, 'ended')
        const calls = doorway.passages.slice(before)
        expect(calls.length).toBeGreaterThan(0)
        expect(calls.map(({ status }) => status)).toEqual(calls.map(() => 204))
        // Each in its own way: the SDK of 1.x by the bearer that it was told, that of 0.3 by the token.
        const credential = credentialFor(registrationId)
        expect(calls[0]?.headers).toMatchObject(
          sdk === '1.x' ? { authorization: `Bearer ${credential}` } : { 'x-a2a-notification-token': credential },
        )
        const logged = [...house.log.lines(), ...house.lines.map((line) => JSON.stringify(line))]
        expect(logged.filter((line) => line.includes(credential))).toEqual([])
      } finally {
        await published.close()
      }
    },
  )

  test('a cancel is told twice by the SDK, and is one', async () => {
    const published = await startSdkPeer({ version: '1.0', binding: 'JSONRPC', card: callsOnly })
    const agent = await house.api.register(published.cardUrl)
    const { localId } = await house.api.send(agent, { text: 'hold' })
    await reaches(localId, 'registered')
    const { taskId } = await house.api.task(localId)
    await house.api.post(`/api/agents/${agent}/tasks/${taskId}/cancel`)
    const { transitions } = await house.task(localId, (view) => view.state === 'TASK_STATE_CANCELED')
    expect(transitions.filter(({ state }) => state === 'TASK_STATE_CANCELED')).toHaveLength(1)
    await reaches(localId, 'ended')
    await published.close()
  })

  test('what a call repeats of the credential that its agent is called with is kept blotted out', async () => {
    const token = `token-${randomUUID()}`
    // Another address of the same card is another agent, so that the others stay without a binding.
    const bound = await house.api.register(`${peer.origin}/`)
    const { localId } = await house.api.send(bound, { text: 'hold' })
    await reaches(localId, 'registered')
    const { taskId, contextId } = await house.api.task(localId)
    const target = { organizationId: house.viewer.organizationId, agentId: bound }
    const binding: Binding = { origins: ['https://agent.example'], credential: { type: 'bearer', token } }
    await storeBinding(house.db, new Vault(ring), target, binding, new Date().toISOString())
    const artifact = { artifactId: 'a', parts: [{ text: `I was called with ${token}.` }] }
    const said = { artifactUpdate: { taskId, contextId, artifact, lastChunk: true } }
    expect((await deliver(house, toldTo(peer).id, said)).status).toBe(204)
    const { artifacts } = await house.api.task(localId)
    expect(artifacts[0]?.parts).toMatchObject([{ value: `I was called with ${'*'.repeat(token.length)}.` }])
  })

  test('an agent that does not offer push is told nothing', async () => {
    const silent = await startSdkPeer({ version: '1.0', binding: 'JSONRPC' })
    const { localId } = await house.api.send(await house.api.register(silent.cardUrl), { text: 'hold' })
    await reaches(localId, 'unsupported')
    expect(silent.callsOf(create)).toBe(0)
    expect(await registrationsOf(house, localId)).toEqual([])
    await silent.close()
  })

  test.each([
    { fault: 'error', code: -32003, message: 'Push is not supported' },
    { fault: 'error', code: -32601, message: 'No such method' },
  ] as const)('an agent that says $code when it is told ends it quietly', async (fault) => {
    peer.script.fault(create, fault)
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    await reaches(localId, 'unsupported')
  })

  test.each([404, 405, 501])(
    'a server that says %i has no agent behind it, perhaps: it is told again',
    async (status) => {
      peer.script.fault(create, { fault: 'status', status })
      const { localId } = await house.api.send(agentId, { text: 'hold' })
      await reaches(localId, 'waiting')
      await reaches(localId, 'registered')
      expect(await registrationsOf(house, localId)).toEqual([toldTo(peer).id])
    },
  )

  test('an agent that reads neither form of a registration is asked again, and people see what it said to both', async () => {
    const published = await startSdkPeer({ version: '0.3', binding: 'HTTP+JSON', card: callsOnly })
    const front = await startFront(published)
    onTestFinished(async () => {
      await front.close()
      await published.close()
    })
    front.fault(create, { fault: 'status', status: 400 })
    const { localId } = await house.api.send(await house.api.register(front.cardUrl), { text: 'hold' })
    await reaches(localId, 'waiting')
    const { body } = await house.api.get(`/api/actors/push/${localId}`)
    const { reason } = ActorAnswer.parse(body).actor.context
    expect(reason).toMatch(/^The agent refused: HTTP 400 Bad Request \(In the other form of 0.3: .*`config` object/)
    await reaches(localId, 'registered')
  })

  test('an agent that fails is told again, under the same name, and people see why', async () => {
    peer.script.fault(create, { fault: 'error', code: -32602, message: 'Not such an address.' })
    const { localId } = await house.api.send(agentId, { text: 'hold' })
    await reaches(localId, 'waiting')
    const { body } = await house.api.get(`/api/actors/push/${localId}`)
    expect(ActorAnswer.parse(body).actor.context).toMatchObject({
      failures: 1,
      reason: 'The agent refused: Not such an address.',
    })
    await reaches(localId, 'registered')
    expect(await registrationsOf(house, localId)).toEqual([toldTo(peer).id])
  })

  test('a task whose end was called in is read once as a whole, and the agent is told to stop', async () => {
    // An agent of its own: what others left held would end with it, and be told to stop as well.
    const own = await startRawPeer({ card: callsOnly })
    onTestFinished(() => own.close())
    own.script.fault('GetTask', down, Infinity)
    const { localId } = await house.api.send(await house.api.register(own.cardUrl), { text: 'hold' })
    await reaches(localId, 'registered')
    const { id, taskId } = toldTo(own)
    own.script.finish('What no call told.')
    own.script.heal()
    const end = { statusUpdate: { taskId, status: { state: 'TASK_STATE_COMPLETED' } } }
    expect((await deliver(house, id, end)).status).toBe(204)
    const { artifacts } = await house.task(localId, (view) => view.artifacts.length === 1)
    expect(artifacts[0]?.parts).toMatchObject([{ value: 'What no call told.' }])
    await reaches(localId, 'ended')
    expect(own.seen(remove)?.body).toMatchObject({ params: { taskId, id } })
  })
})

test('what began while push was on is ended once it is off, and nothing stays in a queue that nobody serves', async () => {
  const { db, close } = await freshDatabase('postgresql')
  const peer = await startRawPeer({ card: callsOnly })
  const push = { callbackOrigin: 'http://127.0.0.1:9', signingKey }
  const on = await startConsole({ database: db, system: { push }, uiDirectory: null })
  const agentId = await on.api.register(peer.cardUrl)
  const { localId } = await on.api.send(agentId, { text: 'hold' })
  await expect.poll(() => pushStateOf(on, localId)).toBe('registered')
  peer.script.fault(create, down, Infinity)
  const { localId: unheard } = await on.api.send(agentId, { text: 'hold' })
  await expect.poll(() => pushStateOf(on, unheard)).toBe('waiting')
  await on.close()
  const off = await startConsole({ database: db, uiDirectory: null })
  const reasonOf = async (): Promise<unknown> =>
    ActorAnswer.parse((await off.api.get(`/api/actors/push/${unheard}`)).body).actor.context['reason']
  await expect.poll(reasonOf).toBe('Push delivery is not configured.')
  peer.script.finish()
  await off.task(localId, isDone)
  for (const each of [localId, unheard]) await expect.poll(() => pushStateOf(off, each)).toBe('ended')
  expect(peer.callsOf(remove)).toBe(2)
  await off.close()
  await peer.close()
  await close()
})

test('a replica that leaves the work to others takes deliveries; the worker registers', async () => {
  const { db, close } = await freshDatabase('postgresql')
  const push = { callbackOrigin: 'http://127.0.0.1:9', signingKey }
  const web = await startConsole({ database: db, system: { push, works: false }, uiDirectory: null })
  const worker = await systemOn(db, { push })
  const peer = await startRawPeer({ card: callsOnly })
  const { localId } = await web.api.send(await web.api.register(peer.cardUrl), { text: 'hold' })
  await expect.poll(() => pushStateOf(web, localId)).toBe('registered')
  const { id, taskId } = toldTo(peer)
  const asks = { statusUpdate: { taskId, status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }
  expect((await deliver(web, id, asks)).status).toBe(204)
  expect((await web.api.task(localId)).state).toBe('TASK_STATE_INPUT_REQUIRED')
  await worker.close()
  await web.close()
  await peer.close()
  await close()
})

test('the process reads its variables and judges deliveries by them', async () => {
  const { profile, close } = await freshDatabase('postgresql')
  if (profile.kind !== 'postgresql') throw new Error('A fresh PostgreSQL has a URL.')
  const dataDirectory = mkdtempSync(join(tmpdir(), 'signalbox-push-'))
  const env = {
    A2A_PUSH_CALLBACK_ORIGIN: 'http://127.0.0.1:9',
    A2A_PUSH_ALLOW_LOOPBACK_HTTP: 'true',
    A2A_PUSH_SIGNING_KEY: signingKey,
  }
  const running = await spawnConsole({ dataDirectory, database: profile, env })
  try {
    expect((await deliver(running, '01a1ffc7-0025-771e-bdce-af9a2abcd50f', {})).status).toBe(401)
  } finally {
    await running.stop()
    rmSync(dataDirectory, { recursive: true, force: true })
    await close()
  }
})
