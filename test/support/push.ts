/**
 * Delivering to a push callback by hand, as an agent would or as nobody should. Owns the key that the tests' consoles derive
 * credentials with, and deriving one independently of the product.
 */
import { createHmac } from 'node:crypto'
import { sql } from 'slonik'
import { expect } from 'vitest'
import { z } from 'zod'
import { startConsole, type TestConsole } from './console.ts'
import { startRawPeer, type RawPeer } from './peers/raw.ts'

export const signingKey = '0f'.repeat(32)

/** HMAC-SHA256 of the registration's id, base64url. */
export const credentialFor = (registrationId: string, key: string = signingKey): string =>
  createHmac('sha256', Buffer.from(key, 'hex')).update(registrationId).digest('base64url')

/** A card's capabilities: the agent calls, and that is the only way to follow its tasks besides asking. */
export const callsOnly = { capabilities: { streaming: false, pushNotifications: true } }

export const pathOf = (registrationId: string): string => `/api/webhooks/a2a/${registrationId}`

const Told = z.object({
  taskId: z.string(),
  id: z.string(),
  url: z.string(),
  token: z.string(),
  authentication: z.object({ scheme: z.literal('Bearer'), credentials: z.string() }),
})
/** What an agent of 1.0 was told in its newest registration, over either binding. */
export const toldTo = (peer: Pick<RawPeer, 'seen'>): z.infer<typeof Told> =>
  z
    .union([z.object({ params: Told }).transform(({ params }) => params), Told])
    .parse(peer.seen('CreateTaskPushNotificationConfig')?.body)

/** A task whose agent was told where to call. */
export interface Callback {
  readonly localId: string
  readonly agentId: string
  readonly taskId: string
  readonly contextId: string
  readonly registrationId: string
}

export interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

/** Sends a delivery; by default as JSON, with the registration's own credential. An undefined header is left out. */
export async function deliver(
  house: Pick<TestConsole, 'url'>,
  registrationId: string,
  body: unknown,
  headers: Readonly<Record<string, string | undefined>> = {},
): Promise<Answer> {
  const given = {
    'content-type': 'application/json',
    authorization: `Bearer ${credentialFor(registrationId)}`,
    ...headers,
  }
  const sent = Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const response = await fetch(house.url + pathOf(registrationId), {
    method: 'POST',
    headers: sent,
    body: body instanceof Uint8Array ? Buffer.from(body) : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers }
}

/** State of one of a task's actors, wherever it lies; null where there is none. */
export const taskActorState = async (
  { db }: Pick<TestConsole, 'db'>,
  kind: 'push' | 'subscription',
  localId: string,
): Promise<unknown> =>
  db.pool.maybeOneFirst(sql.type(z.object({ value: z.unknown() }))`
    select snapshot->'value' as value from actor where kind = ${kind} and id = ${localId}
    union all select snapshot->'value' from actor_archive where kind = ${kind} and id = ${localId}`)

export const pushStateOf = (house: Pick<TestConsole, 'db'>, localId: string): Promise<unknown> =>
  taskActorState(house, 'push', localId)

/** Which ways told what is known of a task, in order. */
export const sourcesOf = async ({ db }: Pick<TestConsole, 'db'>, localId: string): Promise<readonly string[]> =>
  db.pool.anyFirst(sql.type(z.object({ source: z.string() }))`
    select source from task_event where task_id = ${localId} order by position`)

/** A console whose agents are told to call at `callbackOrigin`. */
export const pushConsole = (database: Parameters<typeof startConsole>[0]['database'], key = signingKey) =>
  startConsole({
    database,
    system: { push: { callbackOrigin: 'http://127.0.0.1:9', signingKey: key } },
    uiDirectory: null,
  })

export interface CallingAgent {
  readonly id: string
  readonly peer: RawPeer
}

/** An agent that calls, and that nothing can be learned from by asking: what is known of its tasks came by a call. */
export async function callingAgent({ api }: Pick<TestConsole, 'api'>): Promise<CallingAgent> {
  const peer = await startRawPeer({ card: callsOnly })
  peer.script.fault('GetTask', { fault: 'status', status: 503 }, Infinity)
  peer.script.fault('ListTasks', { fault: 'status', status: 503 }, Infinity)
  return { id: await api.register(peer.cardUrl), peer }
}

/** A task at work whose agent was told where to call. */
export async function calledTask(house: TestConsole, { id, peer }: CallingAgent, more: object = {}): Promise<Callback> {
  const { localId } = await house.api.send(id, { text: 'hold', ...more })
  await expect.poll(() => pushStateOf(house, localId)).toBe('registered')
  const { taskId, contextId } = await house.api.task(localId)
  if (taskId === null || contextId === null) throw new Error('The agent named no task.')
  return { localId, agentId: id, taskId, contextId, registrationId: toldTo(peer).id }
}
