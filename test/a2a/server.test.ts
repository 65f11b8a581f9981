/**
 * The server codec in every dialect: what is asked arrives, what is answered reads back, and errors are the bytes that
 * A2A says. What is declined stands in server-requests.test.ts; the published SDK clients judge the codec in
 * test/bin/demo-agent.test.ts.
 */
import { describe, expect, it } from 'vitest'
import { decodeEvent, decodeResponse, encodeRequest } from '../../a2a/client.ts'
import type { Results } from '../../a2a/client.ts'
import type { Endpoint, Operation, Params } from '../../a2a/operations.ts'
import { a2aErrors } from '../../a2a/errors.ts'
import { cardFor } from '../../a2a/server-card.ts'
import { Declined } from '../../a2a/server-errors.ts'
import type { Reason } from '../../a2a/server-errors.ts'
import {
  decodeRest,
  decodeRpc,
  encodeError,
  encodeEvent,
  encodeResult,
  encodeStreamError,
  streamHeaders,
} from '../../a2a/server.ts'
import type { Decoded, Dialect, ServerRequest } from '../../a2a/server.ts'
import { parseFrame } from '../../a2a/sse.ts'
import type { Message, PushConfig, StreamResponse, Task } from '../../a2a/messages.ts'

const mount = 'https://agent.example/base'
const endpoints: readonly Endpoint[] = (['JSONRPC', 'HTTP+JSON'] as const).flatMap((binding) => [
  { url: mount, binding, version: '1.0' as const },
  { url: mount, binding, version: '0.3' as const },
])

const message: Message = {
  messageId: 'm1',
  contextId: 'c1',
  role: 'ROLE_USER',
  parts: [
    { text: 'hi' },
    { data: [1, null] },
    { raw: 'aGk=', filename: 'x.bin', mediaType: 'application/x' },
    { url: 'https://h.example/x' },
  ],
  metadata: { a: 1 },
  extensions: ['urn:x'],
}
const push: PushConfig & { taskId: string } = {
  taskId: 't:3',
  id: 'p1',
  url: 'https://h.example/push',
  token: 'secret',
  authentication: { scheme: 'Bearer', credentials: 'c' },
}
const task: Task = {
  id: 't/1:2',
  contextId: 'c1',
  status: { state: 'TASK_STATE_CANCELED', timestamp: '2026-11-21T00:00:00.000Z' },
  artifacts: [{ artifactId: 'a1', name: 'A', parts: [{ text: 'x' }] }],
  history: [message],
}
const configuration = { historyLength: 3, returnImmediately: true, acceptedOutputModes: ['text/plain'] }

const asked: { readonly [O in Operation]: Params[O] } = {
  send: { message, configuration, metadata: { b: 2 } },
  stream: { message, configuration },
  get: { id: 't/1:2', historyLength: 2 },
  list: { contextId: 'c1', status: 'TASK_STATE_WORKING', pageSize: 7, pageToken: 'next', includeArtifacts: true },
  cancel: { id: 't/1:2' },
  subscribe: { id: 't/1:2' },
  pushCreate: push,
  pushGet: { taskId: 't:3', id: 'p1' },
  pushList: { taskId: 't:3' },
  pushDelete: { taskId: 't:3', id: 'p1' },
  extendedCard: {},
}
const answered: { readonly [O in Operation]: Results[O] } = {
  send: { task },
  stream: { task },
  get: task,
  list: { tasks: [task], nextPageToken: '', pageSize: 50, totalSize: 1 },
  cancel: task,
  subscribe: { task },
  pushCreate: push,
  pushGet: push,
  pushList: { configs: [push], nextPageToken: '' },
  pushDelete: null,
  extendedCard: { name: 'Extended' },
}
const operations = Object.keys(asked) as Operation[]

/** A request as a server sees it, from one that our client made. */
function arriving(
  endpoint: Endpoint,
  operation: Operation,
  params: Params[Operation] = asked[operation],
): ServerRequest {
  const request = encodeRequest(endpoint, operation, params, { requestId: 'r1', extensions: ['urn:x', 'urn:y'] })
  const url = new URL(request.url)
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  return {
    method: request.method,
    path: url.pathname.slice('/base'.length),
    query: url.searchParams,
    headers,
    body: request.body ?? '',
  }
}

const decode = (endpoint: Endpoint, request: ServerRequest): Decoded =>
  endpoint.binding === 'JSONRPC' ? decodeRpc(request) : decodeRest(request)

function callIn(decoded: Decoded): Extract<Decoded, { kind: 'call' }> {
  if (decoded.kind === 'declined') throw decoded.error
  return decoded
}

/** 0.3 has no names for these, in both bindings or over JSON-RPC. */
const lost = (endpoint: Endpoint, operation: Operation): boolean => endpoint.version === '0.3' && operation === 'list'

describe.each(endpoints)('A2A $version over $binding', (endpoint) => {
  it.each(operations.filter((operation) => !lost(endpoint, operation)))('%s arrives as it was asked', (operation) => {
    const { call, extensions, dialect } = callIn(decode(endpoint, arriving(endpoint, operation)))
    expect(call.operation).toBe(operation)
    expect(call.params).toMatchObject(carried(endpoint, asked[operation]))
    expect(extensions).toEqual(['urn:x', 'urn:y'])
    expect(dialect).toMatchObject({ binding: endpoint.binding, version: endpoint.version })
  })

  it.each(operations.filter((operation) => !lost(endpoint, operation)))(
    '%s is answered as it was meant',
    (operation) => {
      const { dialect } = callIn(decode(endpoint, arriving(endpoint, operation)))
      const { status, headers, body } = encodeResult(dialect, operation, answered[operation], ['urn:x'])
      const contentType = headers['Content-Type'] ?? ''
      const answer = decodeResponse(endpoint, operation, { status, contentType, body }, 'r1')
      expect(answer).toMatchObject({ kind: 'ok', value: carried(endpoint, answered[operation]) })
      expect(headers['A2A-Version']).toBe(endpoint.version)
      expect(headers[endpoint.version === '1.0' ? 'A2A-Extensions' : 'X-A2A-Extensions']).toBe('urn:x')
    },
  )

  it.each(a2aErrors)('error $reason reads as itself', ({ reason, code }) => {
    const { dialect } = callIn(decode(endpoint, arriving(endpoint, 'get')))
    const { status, headers, body } = encodeError(dialect, new Declined(reason as Reason, 'Not today.'))
    const contentType = headers['Content-Type'] ?? ''
    const answer = decodeResponse(endpoint, 'get', { status, contentType, body }, 'r1')
    expect(answer).toMatchObject({ kind: 'refused', error: { code, message: 'Not today.' } })
  })

  it('streams all four events, and an error in their midst', () => {
    const { dialect } = callIn(decode(endpoint, arriving(endpoint, 'stream')))
    const events: StreamResponse[] = [
      { task },
      { message: { ...message, role: 'ROLE_AGENT' } },
      { statusUpdate: { taskId: 't1', contextId: 'c1', status: { state: 'TASK_STATE_WORKING' } } },
      {
        artifactUpdate: {
          taskId: 't1',
          contextId: 'c1',
          artifact: { artifactId: 'a', parts: [{ text: 'x' }] },
          append: true,
        },
      },
    ]
    for (const event of events) {
      const frame = parseFrame(encodeEvent(dialect, event))
      expect(frame && decodeEvent(endpoint, frame, 'r1')).toMatchObject({
        kind: 'ok',
        value: carried(endpoint, event),
      })
    }
    const failed = parseFrame(encodeStreamError(dialect, new Declined('INTERNAL_ERROR', 'Broken.')))
    expect(failed?.event).toBe('error')
    expect(failed && decodeEvent(endpoint, failed, 'r1')).toMatchObject({
      kind: 'refused',
      error: { message: 'Broken.' },
    })
    expect(streamHeaders(dialect)).toMatchObject({
      'Content-Type': 'text/event-stream',
      'A2A-Version': endpoint.version,
    })
  })
})

/** What of a value survives the way: the proto of 0.3 has no name for a file, and its data is always an object. */
function carried(endpoint: Endpoint, value: unknown): object {
  if (endpoint.version === '1.0' || endpoint.binding === 'JSONRPC') return Object(value) as object
  const lose = (key: string, inner: unknown): unknown =>
    key === 'filename' ? undefined : key === 'data' && Array.isArray(inner) ? { value: inner as unknown } : inner
  return Object(JSON.parse(JSON.stringify(value), lose)) as object
}

describe('results as bytes', () => {
  const dialect = (binding: Dialect['binding'], version: Dialect['version']): Dialect => ({
    binding,
    version,
    mediaType: 'application/json',
    ...(binding === 'JSONRPC' ? { rpcId: 'r' } : {}),
  })
  it('a deleted push configuration is null, or no content', () => {
    expect(encodeResult(dialect('JSONRPC', '1.0'), 'pushDelete', null)).toMatchObject({
      status: 200,
      body: '{"jsonrpc":"2.0","id":"r","result":null}',
    })
    expect(encodeResult(dialect('HTTP+JSON', '1.0'), 'pushDelete', null)).toMatchObject({ status: 204, body: '' })
  })

  it('a 1.0 task stands bare or under its name', () => {
    const bare = { id: 't1', status: { state: 'TASK_STATE_WORKING' } }
    expect(encodeResult(dialect('HTTP+JSON', '1.0'), 'get', bare).body).toBe(JSON.stringify(bare))
    expect(encodeResult(dialect('HTTP+JSON', '1.0'), 'send', { task: bare }).body).toBe(JSON.stringify({ task: bare }))
  })

  it('a 0.3 send is a bare object over JSON-RPC, and a creation over HTTP+JSON', () => {
    const bare = { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_INPUT_REQUIRED' } }
    const old = encodeResult(dialect('JSONRPC', '0.3'), 'send', { task: bare })
    expect(JSON.parse(old.body)).toMatchObject({ result: { kind: 'task', status: { state: 'input-required' } } })
    expect(encodeResult(dialect('HTTP+JSON', '0.3'), 'send', { task: bare }).status).toBe(201)
  })
})

describe('the card', () => {
  const card = {
    name: 'A',
    supportedInterfaces: [
      { url: 'https://h/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: 'https://h/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    ],
    capabilities: { streaming: true },
  }
  it('is native for 1.0, and speaks 0.3 besides for everybody else', () => {
    expect(cardFor(card, '1.0')).toEqual(card)
    for (const asked of ['0.3', null])
      expect(cardFor(card, asked)).toMatchObject({
        ...card,
        protocolVersion: '0.3.0',
        url: 'https://h/rpc',
        preferredTransport: 'JSONRPC',
        additionalInterfaces: [{ transport: 'JSONRPC' }, { url: 'https://h/rest', transport: 'HTTP+JSON' }],
      })
  })
})

describe('errors as bytes', () => {
  const error = new Declined('TASK_NOT_FOUND', 'No such task.', { taskId: 't1' })
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: 'TASK_NOT_FOUND',
    domain: 'a2a-protocol.org',
    metadata: { taskId: 't1' },
  }
  it.each<[Dialect['binding'], Dialect['version'], number, unknown]>([
    ['JSONRPC', '1.0', 200, { jsonrpc: '2.0', id: 7, error: { code: -32001, message: 'No such task.', data: [info] } }],
    ['JSONRPC', '0.3', 200, { jsonrpc: '2.0', id: 7, error: { code: -32001, message: 'No such task.' } }],
    ['HTTP+JSON', '1.0', 404, { error: { code: 404, status: 'NOT_FOUND', message: 'No such task.', details: [info] } }],
    ['HTTP+JSON', '0.3', 404, { code: -32001, message: 'No such task.' }],
  ])('%s %s', (binding, version, status, body) => {
    const rpcId = binding === 'JSONRPC' ? { rpcId: 7 } : {}
    const answer = encodeError({ binding, version, mediaType: 'application/json', ...rpcId }, error)
    expect([answer.status, JSON.parse(answer.body)]).toEqual([status, body])
  })

  it('a request whose id cannot be read is answered with a null id', () => {
    const decoded = decodeRpc({ method: 'POST', path: '', query: new URLSearchParams(), headers: {}, body: '{' })
    if (decoded.kind === 'call') throw new Error('read a request that is none')
    expect(JSON.parse(encodeError(decoded.dialect, decoded.error).body)).toMatchObject({
      id: null,
      error: { code: -32700 },
    })
  })
})
