/** The codec against the published SDKs' servers, both versions over both bindings: judges that share no code with ours. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseCard, selectInterface } from '../../a2a/card.ts'
import type { Endpoint } from '../../a2a/operations.ts'
import { UnsupportedByVersion } from '../../a2a/client.ts'
import type { StreamResponse } from '../../a2a/messages.ts'
import type { Peer } from '../support/peers/peer.ts'
import { startSdkPeer } from '../support/peers/sdk.ts'
import { call, nextOf, refusalOf, say, stream, taskOf, valueOf } from './calls.ts'

const returnImmediately = { configuration: { returnImmediately: true } }

describe.each([
  { sdk: '1.x', version: '1.0', binding: 'JSONRPC' },
  { sdk: '1.x', version: '1.0', binding: 'HTTP+JSON' },
  { sdk: '0.3', version: '0.3', binding: 'JSONRPC' },
  { sdk: '0.3', version: '0.3', binding: 'HTTP+JSON' },
  { sdk: '1.x', version: '0.3', binding: 'JSONRPC' },
  { sdk: '1.x', version: '0.3', binding: 'HTTP+JSON' },
] as const)('A2A $version over $binding by the SDK $sdk', ({ sdk, version, binding }) => {
  let peer: Peer
  let endpoint: Endpoint

  beforeAll(async () => {
    const capabilities = { streaming: true, pushNotifications: true, extendedAgentCard: true }
    const card = version === '1.0' ? { capabilities } : { capabilities, supportsAuthenticatedExtendedCard: true }
    peer = await startSdkPeer({ version, binding, card, sdk })
    const response = await fetch(peer.cardUrl, { headers: { 'A2A-Version': '1.0' } })
    const parsed = parseCard(await response.json())
    if ('fault' in parsed) throw new Error(parsed.fault)
    const selected = selectInterface(parsed.card)
    if ('refused' in selected) throw new Error(selected.refused)
    endpoint = selected.endpoint
  })
  afterAll(() => peer.close())

  it('is found by its card', () => {
    expect(endpoint).toMatchObject({ version, binding })
  })

  it('answers a blocking send with a finished task', async () => {
    const task = taskOf(valueOf(await call(endpoint, 'send', say('hello'))))
    expect(task.status.state).toBe('TASK_STATE_COMPLETED')
    expect(task.artifacts?.map((artifact) => artifact.parts)).toMatchObject([[{ text: 'Hello.' }]])
    expect(task.contextId).toBeTruthy()
  })

  it('answers without a task', async () => {
    const event = valueOf(await call(endpoint, 'send', say('direct')))
    expect(event).toMatchObject({ message: { role: 'ROLE_AGENT', parts: [{ text: 'No task needed.' }] } })
  })

  it('carries every kind of part in both directions', async () => {
    const parts = [
      { text: 'files' },
      { data: { k: [1, null, 'x'] }, mediaType: 'application/json' },
      { raw: 'aGk=', filename: 'hi.txt', mediaType: 'text/plain' },
      { url: 'https://files.example/x', filename: 'x', mediaType: 'application/pdf' },
    ]
    const task = taskOf(valueOf(await call(endpoint, 'send', say('files', { parts }))))
    // The 0.3.14 server's FilePart over HTTP has no name.
    const named = (filename: string) => (version === '0.3' && binding === 'HTTP+JSON' ? {} : { filename })
    expect(task.artifacts?.map((artifact) => artifact.parts[0])).toMatchObject([
      { text: 'Some notes.' },
      { data: { rows: [1, 2, 3] } },
      { raw: btoa('a,b\n1,2\n'), mediaType: 'text/csv', ...named('sheet.csv') },
      { url: 'https://files.example/report.pdf', mediaType: 'application/pdf', ...named('report.pdf') },
    ])
    const said = task.history?.find((message) => message.role === 'ROLE_USER')?.parts ?? []
    expect(said).toMatchObject([
      { text: 'files' },
      { data: { k: [1, null, 'x'] } },
      { raw: 'aGk=', ...named('hi.txt') },
      { url: 'https://files.example/x' },
    ])
  })

  it('streams chunks in order and ends', async () => {
    const events: StreamResponse[] = []
    for await (const answer of stream(endpoint, 'stream', say('stream 20'))) events.push(valueOf(answer))
    const chunks = events.flatMap((event) => ('artifactUpdate' in event ? [event.artifactUpdate] : []))
    expect(chunks.map((chunk) => chunk.artifact.parts[0]?.text)).toEqual(
      Array.from({ length: 20 }, (_, index) => `chunk ${index + 1} `),
    )
    expect(chunks.map((chunk) => chunk.append ?? false)).toEqual([false, ...Array<boolean>(19).fill(true)])
    expect(chunks.at(-1)?.lastChunk).toBe(true)
    expect(events[0]).toHaveProperty('task')
    expect(events.at(-1)).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
  })

  it('asks, and goes on with the same task', async () => {
    const asked = taskOf(valueOf(await call(endpoint, 'send', say('ask'))))
    expect(asked.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: 'Which colour?' }] },
    })
    const place = { taskId: asked.id, ...(asked.contextId ? { contextId: asked.contextId } : {}) }
    const done = taskOf(valueOf(await call(endpoint, 'send', say('red', place))))
    expect(done).toMatchObject({ id: asked.id, status: { state: 'TASK_STATE_COMPLETED' } })
  })

  it('returns at once, is read, subscribed to, and cancelled', async () => {
    const started = valueOf(await call(endpoint, 'send', { ...say('hold'), ...returnImmediately }))
    const { id } = taskOf(started)
    expect(valueOf(await call(endpoint, 'get', { id, historyLength: 5 }))).toMatchObject({ id })
    const subscription = stream(endpoint, 'subscribe', { id })
    const first = valueOf(await nextOf(subscription))
    expect('task' in first ? first.task.id : id).toBe(id)
    expect(valueOf(await call(endpoint, 'cancel', { id }))).toMatchObject({
      id,
      status: { state: 'TASK_STATE_CANCELED' },
    })
    let last: StreamResponse = first
    for await (const answer of subscription) last = valueOf(answer)
    expect(JSON.stringify(last)).toContain('TASK_STATE_CANCELED')
  })

  it('refuses what it does not know in our words', async () => {
    for (const operation of ['get', 'cancel'] as const) {
      const error = refusalOf(await call(endpoint, operation, { id: 'nobody' }))
      expect(error).toMatchObject({ code: -32001, reason: 'TASK_NOT_FOUND' })
    }
    const refused = await nextOf(stream(endpoint, 'subscribe', { id: 'nobody' }))
    // The 0.3.14 server trips over its own refusal of a subscription over HTTP.
    const reason = sdk === '0.3' && binding === 'HTTP+JSON' ? 'INTERNAL_ERROR' : 'TASK_NOT_FOUND'
    expect(refusalOf(refused).reason).toBe(reason)
    const sent = await call(endpoint, 'send', say('hello', { taskId: 'nobody' }))
    expect(refusalOf(sent).reason).toBe('TASK_NOT_FOUND')
  })

  it('keeps push configurations', async () => {
    const { id: taskId } = taskOf(valueOf(await call(endpoint, 'send', { ...say('hold'), ...returnImmediately })))
    const config = {
      id: 'c-1',
      taskId,
      url: 'http://127.0.0.1:9/push',
      token: 'secret',
      authentication: { scheme: 'Bearer', credentials: 'secret' },
    }
    expect(valueOf(await call(endpoint, 'pushCreate', config))).toMatchObject({ id: 'c-1', taskId, url: config.url })
    expect(valueOf(await call(endpoint, 'pushGet', { taskId, id: 'c-1' }))).toMatchObject({
      id: 'c-1',
      token: 'secret',
      authentication: { scheme: 'Bearer' },
    })
    expect(valueOf(await call(endpoint, 'pushList', { taskId })).configs).toMatchObject([{ id: 'c-1', taskId }])
    expect(valueOf(await call(endpoint, 'pushDelete', { taskId, id: 'c-1' }))).toBeNull()
    expect(valueOf(await call(endpoint, 'pushList', { taskId })).configs).toEqual([])
    valueOf(await call(endpoint, 'cancel', { id: taskId }))
  })

  it('says that it has no extended card', async () => {
    const error = refusalOf(await call(endpoint, 'extendedCard', {}))
    expect(error).toMatchObject({ code: -32007, reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED' })
  })

  it.runIf(version === '0.3')('cannot list tasks', async () => {
    await expect(() => call(endpoint, 'list', {})).rejects.toThrow(UnsupportedByVersion)
  })

  it.runIf(version === '1.0')('lists tasks', async () => {
    const page = valueOf(await call(endpoint, 'list', { pageSize: 2, status: 'TASK_STATE_COMPLETED' }))
    expect(page).toMatchObject({ pageSize: 2 })
    expect(page.tasks.map((task) => task.status.state)).toEqual(['TASK_STATE_COMPLETED', 'TASK_STATE_COMPLETED'])
    const next = valueOf(await call(endpoint, 'list', { pageSize: 2, pageToken: page.nextPageToken }))
    expect(next.tasks.length).toBeGreaterThan(0)
  })

  it('sends its headers as the version wants them', async () => {
    valueOf(await call(endpoint, 'send', say('hello'), ['urn:one', 'urn:two', 'urn:one']))
    const headers = peer.seen('SendMessage')?.headers ?? {}
    expect(headers['a2a-version']).toBe(version === '1.0' ? '1.0' : undefined)
    expect(headers[version === '1.0' ? 'a2a-extensions' : 'x-a2a-extensions']).toBe('urn:one,urn:two')
  })
})
