/** Answers that decline and show what was done all the same: they prove neither, so nobody may say that nothing was done. */
import { describe, expect, it } from 'vitest'
import { decodeResponse } from '../../a2a/client.ts'
import type { Endpoint, Operation } from '../../a2a/operations.ts'

const url = 'https://agent.example/a2a'
const rpc: Endpoint = { binding: 'JSONRPC', version: '1.0', url, tenant: '' }
const rest: Endpoint = { ...rpc, binding: 'HTTP+JSON' }
const rpc03: Endpoint = { ...rpc, version: '0.3' }
const rest03: Endpoint = { ...rest, version: '0.3' }

const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
const said = { messageId: 'a1', role: 'ROLE_AGENT', parts: [{ text: 'done' }] }
const asked = { ...said, role: 'ROLE_USER', parts: [{ text: 'do it' }] }
const refusal = { code: -32602, message: 'no' }
const failed = (others: object, id: string | null = 'r') => ({ jsonrpc: '2.0', id, error: refusal, ...others })

const decoded = (endpoint: Endpoint, operation: Operation, status: number, body: unknown) =>
  decodeResponse(endpoint, operation, { status, contentType: 'application/json', body: JSON.stringify(body) }, 'r')

it('of a 401 with an echo of the request means what it says', () => {
  const answer = decoded(rest, 'send', 401, { error: 'Who are you?', message: asked })
  expect(answer).toMatchObject({ kind: 'refused', error: { reason: 'UNAUTHENTICATED' } })
})

describe('a refusal that shows work', () => {
  it.each<[string, Endpoint, Operation, number, unknown]>([
    ['an error with a result', rpc, 'send', 200, failed({ result: { task } })],
    ['an error with a result, about an unread id', rpc, 'send', 400, failed({ result: { task } }, null)],
    ['0.3’s error with a task', rpc03, 'stream', 200, failed({ result: { kind: 'task', ...task } })],
    ['an error with a task', rest, 'send', 400, { error: refusal, task }],
    ['an error with a message', rest, 'send', 200, { error: refusal, message: said }],
    ['0.3’s error with a message as JSON-RPC writes it', rpc03, 'send', 400, { message: { ...said, role: 'agent' } }],
    ['0.3’s error with a message', rest03, 'send', 400, { ...refusal, msg: said }],
    ['a 4xx with a reply', rest, 'send', 409, { task }],
    ['a 4xx with a bare task', rest, 'send', 422, task],
    ['a 4xx with a task where JSON-RPC is spoken', rpc, 'send', 400, { task }],
    ['a 403 with a reply', rest, 'send', 403, { message: said }],
    ['a cancel declined with the task', rest, 'cancel', 409, task],
  ])('proves nothing: %s', (_, endpoint, operation, status, body) => {
    expect(decoded(endpoint, operation, status, body)).toMatchObject({ kind: 'invalid' })
  })

  it.each<[string, Endpoint, Operation, number, unknown]>([
    ['an error beside no result', rpc, 'send', 200, failed({ result: null })],
    ['an error beside an empty result', rpc, 'send', 200, failed({ result: {} })],
    ['a 4xx in words', rest, 'send', 400, { message: 'no', status: 400, id: 'x' }],
    ['a 400 with an echo of the request', rest, 'send', 400, { error: 'Unknown field: foo', message: asked }],
    ['a 401 with an echo of the request', rest, 'stream', 401, { error: 'Who are you?', message: asked }],
    ['a 422 that is an echo of the message', rest, 'send', 422, asked],
    ['0.3’s error with an echo', rest03, 'send', 400, { ...refusal, msg: { ...asked, role: 'user' } }],
    ['a question’s error with a task', rpc, 'get', 200, failed({ result: task })],
  ])('is one where nothing is shown, or nothing was to be done: %s', (_, endpoint, operation, status, body) => {
    expect(decoded(endpoint, operation, status, body)).toMatchObject({ kind: 'refused' })
  })
})
