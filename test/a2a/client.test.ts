/** Requests and answers of all operations over both bindings and both versions, as tables. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UnsupportedByVersion, decodeEvent, decodeResponse, encodeRequest, otherForm } from '../../a2a/client.ts'
import type { Endpoint, Operation, Params } from '../../a2a/operations.ts'
import { parseProtoSendRequest } from '../../a2a/v0_3-rest.ts'
import { WireError, parseSendRequest } from '../../a2a/wire.ts'
import { anyPart, eventsWith, hostileJson, kindPart, protoPart, referenceTaskIds } from './arbitraries.ts'
import { refusalOf, valueOf } from './calls.ts'

const rpc: Endpoint = { url: 'https://h/a2a/jsonrpc', binding: 'JSONRPC', version: '1.0', tenant: 'acme' }
const rest: Endpoint = { url: 'https://h/a2a/rest/?key=1', binding: 'HTTP+JSON', version: '1.0', tenant: 'a/b' }
const rpc03: Endpoint = { url: 'https://h/a2a/jsonrpc', binding: 'JSONRPC', version: '0.3' }
const rest03: Endpoint = { url: 'https://h/a2a/rest', binding: 'HTTP+JSON', version: '0.3' }
const endpoints = [rpc, rest, rpc03, rest03]

const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] }
const push = { taskId: 't/1', id: 'c', url: 'https://me/push', authentication: { scheme: 'Bearer', credentials: 's' } }
const params: { [O in Operation]: Params[O] } = {
  send: { message, configuration: { returnImmediately: true, historyLength: 0 }, metadata: { a: 1 } },
  stream: { message },
  get: { id: 't/1', historyLength: 3 },
  list: { contextId: 'c', includeArtifacts: false, pageSize: 10 },
  cancel: { id: 't/1', metadata: { why: 'x' } },
  subscribe: { id: 't/1' },
  pushCreate: push,
  pushGet: { taskId: 't/1', id: 'c' },
  pushList: { taskId: 't/1', pageSize: 5 },
  pushDelete: { taskId: 't/1', id: 'c' },
  extendedCard: {},
}
const encode = <O extends Operation>(endpoint: Endpoint, operation: O, given: Params[O] = params[operation]) =>
  encodeRequest(endpoint, operation, given, { requestId: 'r', extensions: ['urn:x'] })
const bodyOf = (request: { body?: string }): unknown =>
  request.body === undefined ? undefined : JSON.parse(request.body)

describe('requests', () => {
  it.each<[Operation, string, unknown]>([
    ['send', 'SendMessage', { ...params.send, tenant: 'acme' }],
    ['stream', 'SendStreamingMessage', { message, tenant: 'acme' }],
    ['get', 'GetTask', { id: 't/1', historyLength: 3, tenant: 'acme' }],
    ['list', 'ListTasks', { ...params.list, tenant: 'acme' }],
    ['cancel', 'CancelTask', { ...params.cancel, tenant: 'acme' }],
    ['subscribe', 'SubscribeToTask', { id: 't/1', tenant: 'acme' }],
    ['pushCreate', 'CreateTaskPushNotificationConfig', { ...push, tenant: 'acme' }],
    ['pushGet', 'GetTaskPushNotificationConfig', { taskId: 't/1', id: 'c', tenant: 'acme' }],
    ['pushList', 'ListTaskPushNotificationConfigs', { taskId: 't/1', pageSize: 5, tenant: 'acme' }],
    ['pushDelete', 'DeleteTaskPushNotificationConfig', { taskId: 't/1', id: 'c', tenant: 'acme' }],
    ['extendedCard', 'GetExtendedAgentCard', { tenant: 'acme' }],
  ])('1.0 JSON-RPC %s', (operation, method, said) => {
    const request = encode(rpc, operation)
    expect(bodyOf(request)).toEqual({ jsonrpc: '2.0', id: 'r', method, params: said })
    expect(request).toMatchObject({ method: 'POST', url: rpc.url, requestId: 'r' })
    expect(request.headers).toMatchObject({ 'A2A-Version': '1.0', 'A2A-Extensions': 'urn:x' })
  })

  const base = 'https://h/a2a/rest/a%2Fb'
  it.each<[Operation, string, string, unknown]>([
    ['send', 'POST', `${base}/message:send?key=1`, params.send],
    ['stream', 'POST', `${base}/message:stream?key=1`, { message }],
    ['get', 'GET', `${base}/tasks/t%2F1?key=1&historyLength=3`, undefined],
    ['list', 'GET', `${base}/tasks?key=1&contextId=c&pageSize=10&includeArtifacts=false`, undefined],
    ['cancel', 'POST', `${base}/tasks/t%2F1:cancel?key=1`, { metadata: { why: 'x' } }],
    ['subscribe', 'POST', `${base}/tasks/t%2F1:subscribe?key=1`, undefined],
    ['pushCreate', 'POST', `${base}/tasks/t%2F1/pushNotificationConfigs?key=1`, push],
    ['pushGet', 'GET', `${base}/tasks/t%2F1/pushNotificationConfigs/c?key=1`, undefined],
    ['pushList', 'GET', `${base}/tasks/t%2F1/pushNotificationConfigs?key=1&pageSize=5`, undefined],
    ['pushDelete', 'DELETE', `${base}/tasks/t%2F1/pushNotificationConfigs/c?key=1`, undefined],
    ['extendedCard', 'GET', `${base}/extendedAgentCard?key=1`, undefined],
  ])('1.0 HTTP %s', (operation, method, url, body) => {
    const request = encode(rest, operation)
    expect(request).toMatchObject({ method, url })
    expect(bodyOf(request)).toEqual(body)
    expect(request.headers['A2A-Version']).toBe('1.0')
    // fastify answers 400 to a JSON content type without a body.
    expect('Content-Type' in request.headers).toBe(body !== undefined)
  })

  const nested = { url: push.url, id: 'c', authentication: { schemes: ['Bearer'], credentials: 's' } }
  it.each<[Operation, string, unknown]>([
    ['get', 'tasks/get', { id: 't/1', historyLength: 3 }],
    ['cancel', 'tasks/cancel', { id: 't/1', metadata: { why: 'x' } }],
    ['subscribe', 'tasks/resubscribe', { id: 't/1' }],
    ['pushCreate', 'tasks/pushNotificationConfig/set', { taskId: 't/1', pushNotificationConfig: nested }],
    ['pushGet', 'tasks/pushNotificationConfig/get', { id: 't/1', pushNotificationConfigId: 'c' }],
    ['pushList', 'tasks/pushNotificationConfig/list', { id: 't/1' }],
    ['pushDelete', 'tasks/pushNotificationConfig/delete', { id: 't/1', pushNotificationConfigId: 'c' }],
    ['extendedCard', 'agent/getAuthenticatedExtendedCard', undefined],
  ])('0.3 JSON-RPC %s', (operation, method, said) => {
    const request = encode(rpc03, operation)
    expect(bodyOf(request)).toEqual({
      jsonrpc: '2.0',
      id: 'r',
      method,
      ...(said === undefined ? {} : { params: said }),
    })
    expect(request.headers).toMatchObject({ 'X-A2A-Extensions': 'urn:x' })
    expect(request.headers).not.toHaveProperty('A2A-Version')
  })

  it('always says to a 0.3 agent whether to block', () => {
    const kindMessage = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
    expect(bodyOf(encode(rpc03, 'send'))).toMatchObject({
      params: { message: kindMessage, configuration: { blocking: false, historyLength: 0 }, metadata: { a: 1 } },
    })
    expect(bodyOf(encode(rpc03, 'stream'))).toMatchObject({ params: { configuration: { blocking: true } } })
    expect(bodyOf(encode(rest03, 'send'))).toEqual({
      message: { messageId: 'm', role: 'ROLE_USER', content: [{ text: 'hi' }] },
      configuration: { blocking: false, historyLength: 0 },
      metadata: { a: 1 },
    })
    expect(encode(rest03, 'send').url).toBe('https://h/a2a/rest/v1/message:send')
  })

  it('refuses what the version cannot do', () => {
    expect(() => encode(rpc03, 'list')).toThrow(UnsupportedByVersion)
    expect(() => encode(rest03, 'list')).toThrow(UnsupportedByVersion)
  })

  it('asks again with GET where POST is unknown', () => {
    const { fallback, ...request } = encode(rest, 'subscribe')
    expect(fallback).toEqual({ statuses: [404, 405], request: { ...request, method: 'GET' } })
    expect(encode(rest, 'get')).not.toHaveProperty('fallback')
  })

  it('tells a 0.3 agent over HTTP+JSON of a push configuration wrapped, and bare where that is a bad request', () => {
    const wrapped = encode(rest03, 'pushCreate')
    const bare = otherForm(wrapped, 400)
    expect(bodyOf(wrapped)).toMatchObject({ config: bare && bodyOf(bare) })
    expect(bare).toEqual({ ...wrapped, fallback: undefined, body: bare?.body })
    expect(otherForm(wrapped, 404)).toBeUndefined()
    for (const endpoint of [rpc, rest, rpc03]) expect(encode(endpoint, 'pushCreate')).not.toHaveProperty('fallback')
  })

  it.each(['.', '..', '', 'a\0b', '\uD800', 'x'.repeat(513)])('never lets the id %j choose the route', (id) => {
    expect(() => encode(rest, 'get', { id })).toThrow(WireError)
    expect(() => encode(rest03, 'cancel', { id })).toThrow(WireError)
  })

  it.each(['a,b', 'a b', 'a\r\nHost: x', '', 'ü'])('never lets the extension %j into a header', (uri) => {
    expect(() => encodeRequest(rpc, 'get', { id: 't' }, { requestId: 'r', extensions: [uri] })).toThrow(WireError)
  })

  it('sends nothing that the protocol does not know', () => {
    const foreign = { ...message, color: 'red', parts: [{ text: 'hi', stored: 1 }] }
    expect(bodyOf(encode(rest, 'send', { message: foreign }))).toEqual({ message })
  })

  it('says what was meant, in every version and binding', () => {
    const cases = [
      [rest, anyPart, parseSendRequest],
      [rpc03, kindPart, parseSendRequest],
      [rest03, protoPart, parseProtoSendRequest],
    ] as const
    for (const [endpoint, part, read] of cases) {
      const said = eventsWith(part, endpoint === rest03 ? {} : { referenceTaskIds }).message
      const holds = fc.property(said, fc.boolean(), (given, returnImmediately) => {
        const body = bodyOf(encode(endpoint, 'send', { message: given, configuration: { returnImmediately } }))
        const sent = endpoint.binding === 'JSONRPC' ? (body as { params: unknown }).params : body
        const meant = JSON.parse(JSON.stringify({ message: given, configuration: { returnImmediately } })) as unknown
        expect(read(sent)).toEqual(meant)
      })
      fc.assert(holds, { numRuns: 50 })
    }
  })
})

const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
const info = (reason: string) => [
  { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' },
]
const answer = (status: number, body: unknown, contentType = 'application/json') => ({
  status,
  contentType,
  body: typeof body === 'string' ? body : JSON.stringify(body),
})
const result = (value: unknown) => ({ jsonrpc: '2.0', id: 'r', result: value })
const failure = (error: unknown, id: unknown = 'r') => ({ jsonrpc: '2.0', id, error })

describe('answers', () => {
  it.each<[string, Endpoint, Operation, ReturnType<typeof answer>, unknown]>([
    ['a send’s task', rpc, 'send', answer(200, result({ task })), { task }],
    ['a bare task', rpc, 'get', answer(200, result(task)), task],
    ['an envelope without its version', rpc, 'get', answer(200, { id: 'r', result: task }), task],
    ['a 0.3 task', rpc03, 'get', answer(200, result({ kind: 'task', ...task, status: { state: 'working' } })), task],
    ['a 0.3 reply over HTTP, 201', rest03, 'send', answer(201, { task }), { task }],
    [
      'a page',
      rest,
      'list',
      answer(200, { tasks: [task], nextPageToken: 'n', pageSize: 1, totalSize: 9 }, 'application/a2a+json'),
      { tasks: [task], nextPageToken: 'n', pageSize: 1, totalSize: 9 },
    ],
    ['an empty page', rest, 'list', answer(200, {}), { tasks: [], nextPageToken: '', pageSize: 0, totalSize: 0 }],
    [
      'a page of which one task cannot be read',
      rest,
      'list',
      answer(200, { tasks: [{ ...task, id: '\0' }, task] }),
      {
        tasks: [task],
        nextPageToken: '',
        pageSize: 2,
        totalSize: 2,
        unread: { count: 1, reason: expect.stringContaining('NUL') },
      },
    ],
    ['an empty 204', rest, 'pushDelete', answer(204, '', ''), null],
    ['a null result', rpc, 'pushDelete', answer(200, result(null)), null],
    ['a JSON task instead of a stream', rpc, 'stream', answer(200, result({ task })), { task }],
    [
      '0.3’s array of configurations',
      rpc03,
      'pushList',
      answer(200, result([{ taskId: 't', pushNotificationConfig: { url: 'https://h' } }])),
      { configs: [{ taskId: 't', url: 'https://h' }], nextPageToken: '' },
    ],
    ['an extended card', rest, 'extendedCard', answer(200, { name: 'A' }), { name: 'A' }],
  ])('%s', (_, endpoint, operation, response, value) => {
    expect(valueOf(decodeResponse(endpoint, operation, response, 'r'))).toEqual(value)
  })

  it.each<[string, Endpoint, ReturnType<typeof answer>, number, string]>([
    [
      'a JSON-RPC error',
      rpc,
      answer(200, failure({ code: -32001, message: 'gone', data: info('TASK_NOT_FOUND') })),
      -32001,
      'TASK_NOT_FOUND',
    ],
    ['an error without data', rpc03, answer(200, failure({ code: -32602, message: 'bad' })), -32602, 'INVALID_PARAMS'],
    [
      'an error about an unread id',
      rpc,
      answer(400, failure({ code: -32700, message: 'bad' }, null)),
      -32700,
      'PARSE_ERROR',
    ],
    [
      'a known code with a reason of the agent’s own',
      rpc,
      answer(200, failure({ code: -32601, message: 'no', data: info('STREAMING_SWITCHED_OFF') })),
      -32601,
      'METHOD_NOT_FOUND',
    ],
    [
      'a reason of the agent’s own',
      rpc,
      answer(200, failure({ code: -32050, message: 'no', data: info('OUT_OF_PAPER') })),
      -32050,
      'OUT_OF_PAPER',
    ],
    ['an agent’s own code', rpc, answer(200, failure({ code: -32050, message: 'own' })), -32050, 'UNKNOWN_ERROR'],
    [
      'an HTTP error by its reason',
      rest,
      answer(400, {
        error: { code: 400, status: 'FAILED_PRECONDITION', message: 'x', details: info('UNSUPPORTED_OPERATION') },
      }),
      -32004,
      'UNSUPPORTED_OPERATION',
    ],
    [
      'an HTTP error without a reason',
      rest,
      answer(404, { error: { code: 404, status: 'NOT_FOUND', message: 'x' } }),
      -32001,
      'TASK_NOT_FOUND',
    ],
    [
      'an A2A error with a 500',
      rest,
      answer(500, { error: { code: 500, status: 'INTERNAL', message: 'x', details: info('INVALID_AGENT_RESPONSE') } }),
      -32006,
      'INVALID_AGENT_RESPONSE',
    ],
    ['0.3’s bare error', rest03, answer(404, { code: -32001, message: 'gone' }), -32001, 'TASK_NOT_FOUND'],
    [
      'a problem document',
      rest,
      answer(400, { type: 'https://a2a-protocol.org/errors/task-not-found', title: 'Gone', status: 404 }),
      -32001,
      'TASK_NOT_FOUND',
    ],
    [
      '401 in a JSON-RPC error',
      rpc,
      answer(401, failure({ code: -32000, message: 'token expired' }, 0)),
      -32000,
      'UNAUTHENTICATED',
    ],
    [
      '400 about an unread id',
      rpc,
      answer(400, failure({ code: -32600, message: 'bad' }, '')),
      -32600,
      'INVALID_REQUEST',
    ],
    ['401 with a page', rpc, answer(401, '<html>', 'text/html'), -32600, 'UNAUTHENTICATED'],
    ['403 without a body', rest, answer(403, '', ''), -32600, 'PERMISSION_DENIED'],
    ['403 with a framework’s words', rest, answer(403, { error: 'forbidden' }), -32600, 'PERMISSION_DENIED'],
    ['413 of a body parser', rpc, answer(413, '<html>', 'text/html'), -32600, 'HTTP_413'],
    ['an unknown route', rest, answer(404, 'Cannot POST'), -32601, 'HTTP_404'],
  ])('refused: %s', (_, endpoint, response, code, reason) => {
    const error = refusalOf(decodeResponse(endpoint, 'send', response, 'r'))
    expect(error).toMatchObject({ code, reason, httpStatus: response.status })
    expect(error.message).not.toBe('')
  })

  it.each<[string, Endpoint, Operation, ReturnType<typeof answer>]>([
    ['another request’s answer', rpc, 'send', answer(200, { jsonrpc: '2.0', id: 'other', result: { task } })],
    ['another request’s error', rpc, 'send', answer(200, failure({ code: -32001, message: 'x' }, 'other'))],
    ['an envelope of nothing', rpc, 'send', answer(200, { jsonrpc: '2.0', id: 'r' })],
    ['a page of HTML', rpc, 'send', answer(200, '<html>', 'text/html')],
    ['a proxy’s 502', rpc, 'send', answer(502, 'Bad gateway')],
    ['a 500 with a result', rpc, 'send', answer(500, result({ task }))],
    ['a redirect elsewhere', rest, 'send', answer(303, '')],
    ['a redirect that wants the request again', rpc, 'send', answer(307, '')],
    ['no body where one belongs', rest, 'get', answer(200, '')],
    [
      'a status update as a reply',
      rpc,
      'send',
      answer(200, result({ statusUpdate: { taskId: 't', status: task.status } })),
    ],
    ['a bare task where JSON-RPC is spoken', rpc, 'get', answer(200, task)],
    ['half an answer', rest, 'send', answer(200, '{"task":{"id"')],
  ])('proves nothing: %s', (_, endpoint, operation, response) => {
    expect(decodeResponse(endpoint, operation, response, 'r')).toMatchObject({ kind: 'invalid' })
  })
})

describe('events', () => {
  const event = (data: unknown, name = 'message') => ({ event: name, data: JSON.stringify(data) })
  it('reads each binding and version', () => {
    const statusUpdate = { taskId: 't', status: { state: 'TASK_STATE_CANCELED' } }
    expect(valueOf(decodeEvent(rpc, event(result({ statusUpdate })), 'r'))).toEqual({ statusUpdate })
    expect(valueOf(decodeEvent(rest, event({ statusUpdate }), 'r'))).toEqual({ statusUpdate })
    const kind = { kind: 'status-update', taskId: 't', status: { state: 'canceled' }, final: true }
    expect(valueOf(decodeEvent(rpc03, event(result(kind)), 'r'))).toEqual({ statusUpdate })
    const proto = { statusUpdate: { taskId: 't', status: { state: 'TASK_STATE_CANCELLED' }, final: true } }
    expect(valueOf(decodeEvent(rest03, event(proto), 'r'))).toEqual({ statusUpdate })
  })

  it.each([
    [rpc, event(failure({ code: -32001, message: 'gone' }), 'error')],
    [rpc, event(failure({ code: -32001, message: 'gone' }))],
    [rpc, event(failure({ code: -32001, message: 'gone' }, null), 'error')],
    [rest, event({ error: { code: 404, status: 'NOT_FOUND', message: 'gone' } }, 'error')],
    [rest03, event({ code: -32001, message: 'gone' }, 'error')],
  ])('an error inside a stream is a refusal', (endpoint, frame) => {
    expect(refusalOf(decodeEvent(endpoint, frame, 'r'))).toMatchObject({ code: -32001, message: 'gone' })
  })

  it('an error in plain words is one as well', () => {
    expect(refusalOf(decodeEvent(rest, { event: 'error', data: 'boom' }, 'r')).message).toBe('boom')
  })

  it('refuses the event of another request', () => {
    expect(decodeEvent(rpc, event({ ...result({ task }), id: 'other' }), 'r')).toMatchObject({ kind: 'invalid' })
  })
})

describe('whatever comes', () => {
  const operations = Object.keys(params) as Operation[]
  it('is an answer, never an exception', () => {
    const body = fc.oneof(
      hostileJson.map((value) => JSON.stringify(value)),
      hostileJson.map((value) => JSON.stringify({ jsonrpc: '2.0', id: 'r', result: value })),
      hostileJson.map((value) => JSON.stringify({ jsonrpc: '2.0', id: 'r', error: value })),
      fc.string(),
    )
    const kinds = ['ok', 'refused', 'invalid']
    const holds = fc.property(
      fc.constantFrom(...endpoints),
      fc.constantFrom(...operations),
      fc.constantFrom(200, 201, 204, 303, 400, 401, 404, 500, 502),
      body,
      (endpoint, operation, status, text) => {
        const response = { status, contentType: 'application/json', body: text }
        expect(kinds).toContain(decodeResponse(endpoint, operation, response, 'r').kind)
        for (const event of ['message', 'error'])
          expect(kinds).toContain(decodeEvent(endpoint, { event, data: text }, 'r').kind)
      },
    )
    fc.assert(holds, { numRuns: 1_000 })
  })
})
