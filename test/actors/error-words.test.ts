/** What people are told of an agent's error: that it refused, where it said no; that it failed, where something went wrong with it. */
import { expect, it } from 'vitest'
import { errorWords } from '../../actors/agent-words.ts'
import { decodeResponse } from '../../a2a/client.ts'

const rpc = { url: 'https://agent.test/rpc', binding: 'JSONRPC', version: '1.0', tenant: '' } as const
const rest = { url: 'https://agent.test/v1', binding: 'HTTP+JSON', version: '1.0', tenant: '' } as const

function wordsOf(endpoint: typeof rpc | typeof rest, status: number, body: unknown): string {
  const answer = { status, contentType: 'application/json', body: JSON.stringify(body) }
  const { kind, ...read } = decodeResponse(endpoint, 'get', answer, 'r1')
  if ('error' in read) return errorWords(read.error)
  return 'message' in read ? read.message : kind
}
const envelope = (code: number, message?: string) => ({ jsonrpc: '2.0', id: 'r1', error: { code, message } })
const problem = (code: number, message?: string) => ({ error: { code, message } })

it.each([
  ['The agent refused: No such name.', 200, rpc, envelope(-32602, 'No such name.')],
  ['The agent refused: Not today.', 400, rpc, envelope(-32603, 'Not today.')],
  ['The agent refused: Overloaded.', 200, rpc, envelope(-32050, 'Overloaded.')],
  ['The agent refused with INVALID_PARAMS.', 200, rpc, envelope(-32602, ' ')],
  ['The agent failed: Boom.', 200, rpc, envelope(-32603, 'Boom.')],
  ['The agent failed: Boom.', 200, rpc, envelope(-32006, 'Boom.')],
  ['The agent failed with INTERNAL_ERROR.', 200, rpc, envelope(-32603, ' ')],
  ['The agent failed with HTTP status 500: Boom.', 500, rpc, envelope(-32603, 'Boom.')],
  ['The agent failed with HTTP status 503: Later.', 503, rpc, envelope(-32602, 'Later.')],
  ['The agent refused: Not such a task.', 400, rest, problem(400, 'Not such a task.')],
  ['The agent refused: HTTP 429 Too Many Requests', 429, rest, {}],
  ['The agent failed with HTTP status 500: Boom.', 500, rest, problem(500, 'Boom.')],
  ['The agent failed with HTTP status 502.', 502, rest, problem(502, ' ')],
  ['The agent answered HTTP 500.', 500, rest, {}],
] as const)('%s (HTTP status %i)', (words, status, endpoint, body) => {
  expect(wordsOf(endpoint, status, body)).toBe(words)
})
