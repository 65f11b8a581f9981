/** `Expect: 100-continue`: a body is invited after every check that needs none, and by nobody before. */
import { once } from 'node:events'
import { request as ask, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startConsole, type TestConsole } from '../support/console.ts'

let house: TestConsole
beforeAll(async () => {
  house = await startConsole({ database: 'pglite' })
})
afterAll(() => house.close())

function asking(path: string, headers: Record<string, string>) {
  const options = {
    method: 'POST',
    headers: { 'content-type': 'application/json', expect: '100-continue', ...headers },
  }
  const request = ask(house.url + path, options)
  request.on('error', () => undefined)
  let invited = false
  request.once('continue', () => (invited = true))
  request.flushHeaders()
  return { request, isInvited: () => invited }
}

test.each([
  ['a page from elsewhere', '/api/agents', { 'sec-fetch-site': 'cross-site' }, 403],
  ['a delivery where push is off', '/api/webhooks/a2a/01a1ffc9-922b-73aa-92a4-50924d695b00', {}, 503],
])('%s is answered without its body', async (_who, path, headers, status) => {
  const { request, isInvited } = asking(path, headers)
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  expect([answer.statusCode, isInvited()]).toEqual([status, false])
  request.destroy()
})

test('whoever may go on is invited, and its body is read', async () => {
  const { request } = asking('/api/agents', {})
  await once(request, 'continue')
  request.end(JSON.stringify({ cardUrl: 'http://127.0.0.1:9/card.json' }))
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  expect(answer.statusCode).toBe(201)
})
