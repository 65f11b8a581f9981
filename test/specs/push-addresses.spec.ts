/** What is sent beside the push receiver, by another method or to an address that it does not have: senders read one shape of an error. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startConsole, type TestConsole } from '../support/console.ts'
import { pathOf } from '../support/push.ts'

let house: TestConsole
beforeAll(async () => {
  house = await startConsole({ database: 'postgresql', uiDirectory: null, system: { works: false } })
})
afterAll(() => house.close())

const path = pathOf('01a1ffc7-0025-771e-bdce-af9a2abcd50f')

test.each([
  ['GET', path, 405, 'POST'],
  ['HEAD', path, 405, 'POST'],
  ['PUT', path, 405, 'POST'],
  ['DELETE', path, 405, 'POST'],
  ['POST', `${path}/`, 404, null],
  ['POST', `${path}/more?and=more`, 404, null],
  ['POST', `${pathOf('%zz')}`, 404, null],
  ['GET', pathOf(''), 404, null],
  ['POST', path, 503, null],
])('%s %s is answered %i by a bare sentence', async (method, address, status, allowed) => {
  const body = method === 'PUT' ? '{' : null
  const reply = await house.api.fetch(address, { method, body })
  expect([reply.status, reply.headers.get('allow')]).toEqual([status, allowed])
  expect(reply.headers.get('x-content-type-options')).toBe('nosniff')
  if (method !== 'HEAD') expect(await reply.json()).toEqual({ error: expect.any(String) })
})

test('everything else keeps its shape', async () => {
  expect((await house.api.get('/api/webhooks')).body).toEqual({ error: { message: expect.any(String) } })
  expect(house.log.errors()).toEqual([])
})
