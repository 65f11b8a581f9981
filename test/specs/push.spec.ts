/**
 * The push receiver: which deliveries are taken, in which order they are judged, and what each answer says. The agent here
 * registers and never calls; whoever delivers is the test. That real agents reach it is test/actors/push-agents.test.ts.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request as ask, type IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TaskView } from '../../domain/task.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { bothDatabases } from '../support/databases.ts'
import { isLong } from '../support/pass.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import {
  calledTask,
  callingAgent,
  callsOnly,
  credentialFor,
  deliver,
  pathOf,
  pushConsole,
  pushStateOf,
  sourcesOf,
  toldTo,
  type Callback,
} from '../support/push.ts'

const unauthenticated = { error: 'Invalid push authentication.' }
const stranger = '01a1ffc7-0025-771e-bdce-af9a2abcd50f'

const unreadable: readonly (readonly ['envelope' | 'payload', unknown])[] = [
  ['envelope', ''],
  ['envelope', '{'],
  ['envelope', 'null'],
  ['envelope', '[]'],
  ['envelope', '"task"'],
  ['envelope', {}],
  ['envelope', { kind: 'tusk', id: 't' }],
  ['envelope', { task: { id: 't', status: {} }, statusUpdate: { taskId: 't', status: {} } }],
  ['envelope', { jsonrpc: '2.0', id: 1, result: {} }],
  ['payload', { task: { status: {} } }],
  ['payload', { task: [] }],
  ['payload', { statusUpdate: { taskId: 7, status: {} } }],
  ['payload', { statusUpdate: { taskId: 't' } }],
  ['payload', { artifactUpdate: { taskId: 't', artifact: { artifactId: 'a', parts: [{ text: 'x', url: 'y' }] } } }],
  ['payload', { message: { messageId: 'm', role: 'ROLE_KING', parts: [] } }],
  ['payload', { kind: 'task', id: 't', status: 'working' }],
]

describe.each(bothDatabases)('the push receiver on %s', (database) => {
  let house: TestConsole
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    house = await pushConsole(database)
    ;({ id: agentId, peer } = await callingAgent(house))
  })
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  const working = (more: object = {}): Promise<Callback> => calledTask(house, { id: agentId, peer }, more)
  const status = ({ taskId, contextId }: Callback, state: string, more: object = {}) => ({
    statusUpdate: { taskId, contextId, status: { state, timestamp: '2030-01-01T00:00:00Z' }, ...more },
  })
  const chunk = ({ taskId, contextId }: Callback, text: string) => ({
    artifactUpdate: { taskId, contextId, artifact: { artifactId: text, parts: [{ text }] }, lastChunk: true },
  })
  const view = (callback: Callback): Promise<TaskView> => house.api.task(callback.localId)
  /** Sets a count in a window that is not over while the test runs. */
  const taken = (bucket: string, count: number) =>
    house.db.pool.query(sql.unsafe`
      insert into rate_window (bucket, starts_at, taken) values (${bucket}, now() + interval '1 minute', ${count})
      on conflict (bucket) do update set starts_at = excluded.starts_at, taken = excluded.taken`)
  const untaken = (bucket: string) => house.db.pool.query(sql.unsafe`delete from rate_window where bucket = ${bucket}`)

  test('calls alone bring a task that nobody can read to its end; later ones change nothing', async () => {
    const callback = await working()
    expect(await deliver(house, callback.registrationId, chunk(callback, 'Half of it.'))).toMatchObject({
      status: 204,
      body: null,
    })
    expect((await view(callback)).artifacts).toHaveLength(1)
    const end = status(callback, 'TASK_STATE_COMPLETED')
    expect((await deliver(house, callback.registrationId, end)).status).toBe(204)
    const finished = await view(callback)
    expect(finished.state).toBe('TASK_STATE_COMPLETED')
    expect(await sourcesOf(house, callback.localId)).toEqual(['sent', 'reply', 'push', 'push'])
    const late = status(callback, 'TASK_STATE_WORKING')
    expect((await deliver(house, callback.registrationId, late)).status).toBe(204)
    expect(await view(callback)).toEqual(finished)
  })

  test('every form in which agents say an event is taken', async () => {
    const callback = await working()
    const { taskId, contextId, registrationId } = callback
    const part = [{ kind: 'text', text: 'Words.' }]
    const forms = [
      status(callback, 'TASK_STATE_WORKING'),
      chunk(callback, 'one'),
      { message: { messageId: 'm1', role: 'ROLE_AGENT', taskId, contextId, parts: [{ text: 'Words.' }] } },
      { task: { id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' } } },
      { id: taskId, contextId, status: { state: 'TASK_STATE_WORKING', timestamp: '2030-01-01T00:00:01Z' } },
      { kind: 'task', id: taskId, contextId, status: { state: 'working', timestamp: '2030-01-01T00:00:02Z' } },
      { kind: 'status-update', taskId, contextId, status: { state: 'working' }, final: false },
      { kind: 'artifact-update', taskId, contextId, artifact: { artifactId: 'two', parts: part }, lastChunk: true },
      { kind: 'message', messageId: 'm2', role: 'agent', taskId, contextId, parts: part },
      { kind: 'task', id: taskId, contextId: '', status: { state: 'input-required' } },
    ]
    for (const form of forms) {
      const answer = await deliver(house, registrationId, form, {
        'content-type': 'application/a2a+json; charset=utf-8',
      })
      expect([JSON.stringify(form), answer.status]).toEqual([JSON.stringify(form), 204])
    }
    const { messages, artifacts, state } = await view(callback)
    expect(state).toBe('TASK_STATE_INPUT_REQUIRED')
    expect(artifacts.map(({ artifactId }) => artifactId)).toEqual(['one', 'two'])
    expect(messages.map(({ id }) => id)).toEqual(expect.arrayContaining(['m1', 'm2']))
  })

  test('the credential stands in either header, and no secret is stored', async () => {
    const callback = await working()
    const { registrationId } = callback
    const credential = credentialFor(registrationId)
    expect(toldTo(peer)).toMatchObject({
      url: `http://127.0.0.1:9${pathOf(registrationId)}`,
      token: credential,
      authentication: { scheme: 'Bearer', credentials: credential },
    })
    const body = status(callback, 'TASK_STATE_WORKING')
    const none = { authorization: undefined }
    for (const headers of [
      { authorization: `bearer ${credential}` },
      { ...none, 'x-a2a-notification-token': credential },
    ])
      expect((await deliver(house, registrationId, body, headers)).status).toBe(204)
    for (const headers of [
      none,
      { authorization: credential },
      { authorization: 'Bearer wrong', 'x-a2a-notification-token': credential },
      { authorization: `Basic ${credential}` },
      { authorization: `Bearer ${credential}x` },
      { authorization: `Bearer ${credentialFor(registrationId.toUpperCase())}` },
      { ...none, 'x-a2a-notification-token': credentialFor(stranger) },
    ])
      expect(await deliver(house, registrationId, body, headers)).toMatchObject({ status: 401, body: unauthenticated })
    const rows = await house.db.pool.any(sql.unsafe`
      select to_jsonb(r)::text as row from push_registration r union all select snapshot::text from actor where kind = 'push'
      union all select event from actor_log where kind = 'push' union all select data::text from fact`)
    expect(JSON.stringify(rows)).not.toContain(credential)
  })

  test('a registration that nobody was told, another key and an agent that was removed are all the same 401', async () => {
    const callback = await working()
    const body = status(callback, 'TASK_STATE_WORKING')
    const known = await deliver(house, stranger, body)
    const wrong = await deliver(house, callback.registrationId, body, { authorization: 'Bearer x' })
    expect(known).toMatchObject({ status: 401, body: unauthenticated })
    expect(wrong).toMatchObject({ status: 401, body: unauthenticated })
    expect((await deliver(house, 'no-uuid', body)).status).toBe(401)
    expect((await deliver(house, `${'%F0%9F%9A%A6'.repeat(40)}`, body)).status).toBe(401)

    const rekeyed = await pushConsole(house.db, 'a0'.repeat(32))
    expect((await deliver(rekeyed, callback.registrationId, body)).status).toBe(401)
    const fresh = { authorization: `Bearer ${credentialFor(callback.registrationId, 'a0'.repeat(32))}` }
    expect((await deliver(rekeyed, callback.registrationId, body, fresh)).status).toBe(204)
    await rekeyed.close()

    const other = await startRawPeer({ card: callsOnly })
    const removed = await house.api.register(other.cardUrl)
    const { localId } = await house.api.send(removed, { text: 'hold' })
    await expect.poll(() => pushStateOf(house, localId)).toBe('registered')
    const { id, taskId } = toldTo(other)
    const told = { statusUpdate: { taskId, status: { state: 'TASK_STATE_WORKING' } } }
    expect((await deliver(house, id, told)).status).toBe(204)
    await house.api.delete(`/api/agents/${removed}`)
    expect(await deliver(house, id, told)).toMatchObject({ status: 401, body: unauthenticated })
    await other.close()
  })

  test('a console without push says so to everybody', async () => {
    const off = await startConsole({ database: house.db, uiDirectory: null })
    const answer = await deliver(off, stranger, {}, { 'content-type': 'text/plain', authorization: undefined })
    expect(answer).toMatchObject({ status: 503, body: { error: 'Push delivery is not configured.' } })
    await off.close()
  })

  test('who delivers is decided before the body is read: a body that never ends gets its 401', async () => {
    const endless = ask(house.url + pathOf(stranger), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    })
    endless.on('error', () => undefined)
    endless.write('{"task":')
    const [answer] = (await once(endless, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(401)
    expect(endless.writableEnded).toBe(false)
    let text = ''
    for await (const piece of answer) text += String(piece)
    expect(JSON.parse(text)).toEqual(unauthenticated)
    // And it is not read for ever: what is left is thrown away for a moment, then the line is cut.
    await once(endless, 'close')
  })

  test('no page has a say here, and no sign-in: whoever presents the credential may deliver', async () => {
    const callback = await working()
    const foreign = { origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site', cookie: 'session=x' }
    const answer = await deliver(house, callback.registrationId, status(callback, 'TASK_STATE_WORKING'), foreign)
    expect(answer.status).toBe(204)
  })

  test('the head is judged first: content type, then delivery id, then the body', async () => {
    const { registrationId } = await working()
    const media = { status: 415, body: { error: 'Push requires a JSON content type.' } }
    const id = { status: 400, body: { error: 'Invalid push delivery ID.' } }
    for (const type of ['text/plain', 'application/json-seq', 'multipart/form-data; boundary=x', ''])
      expect(
        await deliver(house, registrationId, '{', { 'content-type': type, 'x-a2a-delivery-id': '' }),
      ).toMatchObject(media)
    for (const bad of ['', 'é', 'x'.repeat(256), 'a\tb'])
      expect(await deliver(house, registrationId, '{', { 'x-a2a-delivery-id': bad })).toMatchObject(id)
  })

  test('400 for what is no event, and for an event that cannot be read', async () => {
    const { registrationId } = await working()
    for (const [what, body] of unreadable) {
      const answer = await deliver(house, registrationId, body)
      const { status: given, body: said } = answer
      expect([body, given, said]).toEqual([body, 400, { error: `Invalid push event ${what}.` }])
    }
  })

  test('409 for another task, context or tenant than the registration\u2019s', async () => {
    const callback = await working()
    const { registrationId, taskId } = callback
    const before = await view(callback)
    const identity = { status: 409, body: { error: 'Unexpected push task identity.' } }
    const scope = { status: 409, body: { error: 'Unexpected push scope.' } }
    const state = 'TASK_STATE_COMPLETED'
    const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'x' }] }
    for (const body of [
      status({ ...callback, taskId: 'other' }, state),
      { message },
      { task: { id: 'x', status: {} } },
    ])
      expect(await deliver(house, registrationId, body)).toMatchObject(identity)
    for (const body of [
      status({ ...callback, contextId: 'other' }, state),
      { message: { ...message, taskId, contextId: 'other' } },
      status(callback, state, { tenant: 'other' }),
      { ...status(callback, state), tenant: 'other' },
    ])
      expect(await deliver(house, registrationId, body)).toMatchObject(scope)
    expect(await view(callback)).toEqual(before)
    const leased = await working({ tenant: 'acme' })
    const inTenant = (tenant: string) => status(leased, 'TASK_STATE_WORKING', { tenant })
    expect((await deliver(house, leased.registrationId, inTenant('acme'))).status).toBe(204)
    expect(await deliver(house, leased.registrationId, inTenant('other'))).toMatchObject(scope)
  })

  test('a delivery is taken once: by its id, and by its content', async () => {
    const callback = await working()
    const { registrationId } = callback
    const once_ = { 'x-a2a-delivery-id': 'delivery 1 ~!' }
    const { taskId, contextId } = callback
    const says = async (state: string, id?: string) => {
      const body = { statusUpdate: { taskId, contextId, status: { state: `TASK_STATE_${state}` } } }
      expect((await deliver(house, registrationId, body, { 'x-a2a-delivery-id': id })).status).toBe(204)
      return (await view(callback)).state.replace('TASK_STATE_', '')
    }
    // Without instants, which would tell what is old: only who knows a delivery again takes nothing back.
    for (const [first, second] of [[], ['one', 'two']]) {
      expect(await says('WORKING', first)).toBe('WORKING')
      expect(await says('INPUT_REQUIRED', second)).toBe('INPUT_REQUIRED')
      expect(await says('WORKING', first)).toBe('INPUT_REQUIRED')
    }
    expect((await deliver(house, registrationId, chunk(callback, 'first'), once_)).status).toBe(204)
    // The id decides: what comes under the same one is taken for the same delivery.
    expect((await deliver(house, registrationId, chunk(callback, 'second'), once_)).status).toBe(204)
    const { artifacts, version } = await view(callback)
    expect(artifacts.map(({ artifactId }) => artifactId)).not.toContain('second')
    // An id is the sender's own: another task's deliveries may have the same.
    const other = await working()
    expect((await deliver(house, other.registrationId, chunk(other, 'first'), once_)).status).toBe(204)
    expect((await view(other)).artifacts).toHaveLength(1)
    expect((await view(callback)).version).toBe(version)
  })

  test('429 with Retry-After beyond 120 a minute for one registration, and the others go on', async () => {
    const callback = await working()
    const other = await working()
    const body = status(callback, 'TASK_STATE_WORKING')
    const bucket = `registration/${callback.registrationId}`
    await taken(bucket, 119)
    expect((await deliver(house, callback.registrationId, body)).status).toBe(204)
    const refused = await deliver(house, callback.registrationId, '{', { 'content-type': 'text/plain' })
    expect(refused).toMatchObject({ status: 429, body: { error: 'Push rate limit exceeded.' } })
    expect(refused.headers.get('retry-after')).toBe('60')
    // A stranger cannot use up what is the registration's.
    const wrong = await deliver(house, callback.registrationId, body, { authorization: 'Bearer x' })
    expect(wrong.status).toBe(401)
    expect((await deliver(house, other.registrationId, status(other, 'TASK_STATE_WORKING'))).status).toBe(204)
  })

  test('a fault of ours is 503 and "later", and what was not committed is taken when it comes again', async () => {
    const callback = await working()
    const body = chunk(callback, 'once')
    await house.db.pool.query(sql.unsafe`alter table task_event rename to task_event_away`)
    const failed = await deliver(house, callback.registrationId, body)
    await house.db.pool.query(sql.unsafe`alter table task_event_away rename to task_event`)
    expect(failed).toMatchObject({ status: 503, body: { error: 'Push receipt unavailable; retry later.' } })
    expect(failed.headers.get('retry-after')).toBe('1')
    expect((await view(callback)).artifacts).toEqual([])
    expect((await deliver(house, callback.registrationId, body)).status).toBe(204)
    expect((await view(callback)).artifacts).toHaveLength(1)
  })

  // Both are about threads and words, which come before any database: on the embedded one in the long pass.
  const isThorough = isLong || database === 'postgresql'
  test.runIf(isThorough)(
    'bytes of 11 MiB are read in a thread and kept; more than 16 MiB of body is refused',
    async () => {
      const callback = await working()
      const bytes = Buffer.alloc(11 * 1024 * 1024, 'signal')
      const parts = [{ raw: bytes.toString('base64'), mediaType: 'application/octet-stream' }]
      const place = { taskId: callback.taskId, contextId: callback.contextId }
      const large = { artifactUpdate: { ...place, artifact: { artifactId: 'large', parts }, lastChunk: true } }
      const inThreads = house.system.pool.stats.framesInThreads
      expect((await deliver(house, callback.registrationId, large)).status).toBe(204)
      expect(house.system.pool.stats.framesInThreads).toBe(inThreads + 1)
      const digest = createHash('sha256').update(bytes).digest('hex')
      const stored = await house.api.fetch(`/api/artifacts/${digest}`)
      expect(Buffer.from(await stored.arrayBuffer()).equals(bytes)).toBe(true)
      const tooLarge = await deliver(house, callback.registrationId, Buffer.alloc(16 * 1024 * 1024 + 1, 0x20))
      expect(tooLarge).toMatchObject({ status: 400, body: { error: 'Request body exceeds the 16 MiB limit.' } })
    },
  )

  test.runIf(isThorough)('no body is a fault of ours', async () => {
    const callback = await working()
    const { registrationId, taskId, contextId } = callback
    await taken(`registration/${registrationId}`, -10_000)
    await taken('push', -10_000)
    const names = ['task', 'message', 'statusUpdate', 'artifactUpdate', 'kind', 'id', 'taskId', 'contextId', 'status']
    const values = fc.oneof(fc.jsonValue(), fc.constantFrom<unknown>(taskId, contextId, 'task', '\0', '\ud800', 1e308))
    const near = fc.dictionary(
      fc.constantFrom(...names),
      fc.oneof(values, fc.dictionary(fc.constantFrom(...names), values)),
    )
    const parts = fc.array(fc.dictionary(fc.constantFrom('text', 'data', 'raw', 'url', 'metadata', 'kind'), values))
    const artifact = fc.record({ artifactId: fc.oneof(fc.string(), values), parts: fc.oneof(parts, values) })
    const update = fc.record({ artifactUpdate: fc.record({ taskId: fc.constant(taskId), artifact }) })
    const bodies = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.oneof(fc.string(), fc.json()).map((text) => Buffer.from(text)),
      fc.oneof(near, update).map((value) => Buffer.from(JSON.stringify(value))),
    )
    const words = fc.stringMatching(/^[ -~\xe9]{0,30}$/)
    const heads = fc.record(
      {
        'content-type': fc.oneof(words, fc.constantFrom('application/json', 'application/a2a+json;;=')),
        'x-a2a-delivery-id': words,
        'x-a2a-notification-token': words,
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(bodies, fc.option(heads, { freq: 3, nil: {} }), async (body, head) => {
        expect((await deliver(house, registrationId, body, head)).status).toBeLessThan(500)
      }),
      { numRuns: 150 },
    )
    expect(house.log.errors().filter((line) => line.includes('a request failed')).length).toBeLessThanOrEqual(1)
    await untaken('push')
  })
})

test('replicas on one database share the windows: all callers together, counted before anybody is known', async () => {
  const one = await pushConsole('postgresql')
  const two = await pushConsole(one.db)
  await one.db.pool.query(sql.unsafe`
    insert into rate_window (bucket, starts_at, taken) values ('push', now() + interval '1 minute', 1190)`)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => deliver(i % 2 === 0 ? one : two, stranger, {})),
  )
  const of = (wanted: number) => answers.filter(({ status }) => status === wanted)
  expect([of(401).length, of(429).length]).toEqual([10, 10])
  expect(of(429).every(({ headers }) => headers.get('retry-after') === '60')).toBe(true)
  expect(of(429)[0]?.body).toEqual({ error: 'Push rate limit exceeded.' })
  await two.close()
  await one.close()
})
