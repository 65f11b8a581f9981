/**
 * Requests as they reach a server: the version they are spoken in, the routes they take, and which are declined and
 * why.
 */
import { describe, expect, it } from 'vitest'
import { decodeRest, decodeRpc } from '../../a2a/server.ts'
import type { Decoded } from '../../a2a/server.ts'

function callIn(decoded: Decoded): Extract<Decoded, { kind: 'call' }> {
  if (decoded.kind === 'declined') throw decoded.error
  return decoded
}

function reasonIn(decoded: Decoded): string {
  if (decoded.kind === 'call') throw new Error(`expected a refusal, got ${decoded.call.operation}`)
  return decoded.error.error.reason
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
    const body = { url: 'https://h.example', taskId: 'another', task_id: 'another', tenant: 'another' }
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
