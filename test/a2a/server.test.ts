/**
 * The server codec as a table: what every dialect may ask, how it is answered, and what is declined. The published SDK clients judge
 * the same codec over real sockets in test/bin/demo-agent.test.ts.
 */
import { describe, expect, it } from 'vitest'
import { decodeEvent, decodeResponse, encodeRequest } from '../../a2a/client.ts'
import type { Endpoint, Operation, Params, Results } from '../../a2a/client.ts'
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
import type { Message, PushConfig, StreamResponse, Task } from '../../a2a/wire.ts'

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

function reasonIn(decoded: Decoded): string {
  if (decoded.kind === 'call') throw new Error(`expected a refusal, got ${decoded.call.operation}`)
  return decoded.error.error.reason
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

const rpc = (body: unknown, headers: Record<string, string> = {}, query = ''): Decoded =>
  decodeRpc({
    method: 'POST',
    path: '',
    query: new URLSearchParams(query),
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const rest = (method: string, target: string, body: unknown = '', headers: Record<string, string> = {}): Decoded => {
  const [path = '', query = ''] = target.split('?')
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return decodeRest({ method, path, query: new URLSearchParams(query), headers, body: text })
}
const get = (method: string) => ({ jsonrpc: '2.0', id: 1, method, params: { id: 't1' } })

describe('the version', () => {
  it.each([
    ['GetTask', '1.0', '1.0'],
    ['GetTask', '1.0.3', '1.0'],
    ['GetTask', ' 1.0 ', '1.0'],
    ['GetTask', '', '1.0'],
    ['tasks/get', '', '0.3'],
    ['tasks/get', '0.3', '0.3'],
    ['tasks/get', '0.3.0', '0.3'],
    ['tasks/get', '1.0', '0.3'],
  ])('%s with "%s" is spoken as %s', (method, asked, spoken) => {
    const decoded = callIn(rpc(get(method), { 'a2a-version': asked }))
    expect([decoded.call.operation, decoded.dialect.version]).toEqual(['get', spoken])
  })

  it.each([
    ['GetTask', '0.3'],
    ['GetTask', '2.0'],
    ['GetTask', '1.1'],
    ['GetTask', 'latest'],
    ['tasks/get', '2.0'],
  ])('%s with "%s" is not supported', (method, asked) => {
    expect(reasonIn(rpc(get(method), { 'a2a-version': asked }))).toBe('VERSION_NOT_SUPPORTED')
  })

  it('may stand in the query, where the header wins', () => {
    expect(reasonIn(rpc(get('GetTask'), {}, 'A2A-Version=2.0'))).toBe('VERSION_NOT_SUPPORTED')
    expect(callIn(rpc(get('GetTask'), { 'a2a-version': '1.0' }, 'A2A-Version=2.0')).call.operation).toBe('get')
  })

  it('of HTTP+JSON is told by the path', () => {
    expect(callIn(rest('GET', '/v1/tasks/t1')).dialect.version).toBe('0.3')
    expect(callIn(rest('GET', '/tasks/t1')).dialect.version).toBe('1.0')
    expect(reasonIn(rest('GET', '/tasks/t1', '', { 'a2a-version': '0.3' }))).toBe('VERSION_NOT_SUPPORTED')
    expect(reasonIn(rest('GET', '/v1/tasks'))).toBe('METHOD_NOT_FOUND')
  })
})

describe('the routes of HTTP+JSON', () => {
  it.each([
    ['POST', '/tasks/t1:subscribe', { operation: 'subscribe', params: { id: 't1' } }],
    ['GET', '/tasks/t1:subscribe', { operation: 'subscribe', params: { id: 't1' } }],
    ['GET', '/tasks/t1/', { operation: 'get', params: { id: 't1' } }],
    ['GET', '/tasks/a%2Fb%3Acancel', { operation: 'get', params: { id: 'a/b:cancel' } }],
    ['POST', '/acme/tasks/t1:cancel', { operation: 'cancel', params: { id: 't1' }, tenant: 'acme' }],
    ['GET', '/a%20b/extendedAgentCard', { operation: 'extendedCard', tenant: 'a b' }],
    [
      'GET',
      '/tasks?page_size=5&includeArtifacts=true',
      { operation: 'list', params: { pageSize: 5, includeArtifacts: true } },
    ],
    ['GET', '/tasks/t1?historyLength=0', { operation: 'get', params: { historyLength: 0 } }],
    ['GET', '/tasks?tenant=acme', { operation: 'list', tenant: 'acme' }],
    ['DELETE', '/tasks/t1/pushNotificationConfigs/p1', { operation: 'pushDelete', params: { taskId: 't1', id: 'p1' } }],
  ])('%s %s', (method, target, call) => {
    expect(callIn(rest(method, target)).call).toMatchObject(call)
  })

  it('let the path win over the body', () => {
    const body = { ...push, taskId: 'another', task_id: 'another', tenant: 'another' }
    const { call } = callIn(rest('POST', '/acme/tasks/t1/pushNotificationConfigs', body))
    expect(call).toMatchObject({ tenant: 'acme', params: { taskId: 't1' } })
  })

  it.each([
    ['PUT', '/tasks/t1', 'METHOD_NOT_FOUND'],
    ['POST', '/message:sent', 'METHOD_NOT_FOUND'],
    ['POST', '/tasks/:cancel', 'METHOD_NOT_FOUND'],
    ['GET', '/', 'METHOD_NOT_FOUND'],
    ['GET', '/a/b/c/d/e', 'METHOD_NOT_FOUND'],
    ['GET', '/tasks/%ff', 'INVALID_PARAMS'],
    ['GET', '/tasks?pageSize=0x5', 'INVALID_PARAMS'],
    ['GET', '/tasks?pageSize=101', 'INVALID_PARAMS'],
    ['GET', '/tasks?status=working', 'INVALID_PARAMS'],
    ['GET', '/tasks?statusTimestampAfter=yesterday', 'INVALID_PARAMS'],
    ['GET', '/tasks/t1?historyLength=-1', 'INVALID_PARAMS'],
  ])('decline %s %s', (method, target, reason) => {
    expect(reasonIn(rest(method, target))).toBe(reason)
  })

  it('answer in the media type that was asked for', () => {
    const { dialect } = callIn(rest('GET', '/tasks/t1', '', { accept: 'application/a2a+json, application/json' }))
    expect(dialect.mediaType).toBe('application/a2a+json')
    expect(callIn(rest('GET', '/tasks/t1')).dialect.mediaType).toBe('application/json')
  })
})

describe('requests that are none', () => {
  const send = (changed: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], ...changed } },
  })
  it.each([
    ['{', 'PARSE_ERROR'],
    ['[]', 'INVALID_REQUEST'],
    [{ ...get('GetTask'), jsonrpc: '1.0' }, 'INVALID_REQUEST'],
    [{ jsonrpc: '2.0', method: 'GetTask', params: { id: 't' } }, 'INVALID_REQUEST'],
    [get('NoSuchThing'), 'METHOD_NOT_FOUND'],
    [get('toString'), 'METHOD_NOT_FOUND'],
    [{ ...get('GetTask'), params: [1] }, 'INVALID_PARAMS'],
    [{ ...get('GetTask'), params: {} }, 'INVALID_PARAMS'],
    [send({ parts: [] }), 'INVALID_PARAMS'],
    [send({ parts: [{ mediaType: 'text/plain' }] }), 'INVALID_PARAMS'],
    [send({ parts: [{ text: 'a', url: 'b' }] }), 'INVALID_PARAMS'],
    [send({ messageId: '' }), 'INVALID_PARAMS'],
    [send({ role: 'ROLE_UNSPECIFIED' }), 'INVALID_PARAMS'],
  ])('%j is declined as %s', (body, reason) => {
    expect(reasonIn(rpc(body))).toBe(reason)
  })

  it('snake_case is one of the two spellings', () => {
    const { call } = callIn(rpc(send({ message_id: 'snake', messageId: undefined, context_id: 'c9' })))
    expect(call).toMatchObject({ params: { message: { messageId: 'snake', contextId: 'c9' } } })
  })
})

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
    const decoded = rpc('{')
    if (decoded.kind === 'call') throw new Error('read a request that is none')
    expect(JSON.parse(encodeError(decoded.dialect, decoded.error).body)).toMatchObject({
      id: null,
      error: { code: -32700 },
    })
  })
})
