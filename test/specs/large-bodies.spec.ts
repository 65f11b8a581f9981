/**
 * Large bodies of people have room for a few of the largest at once: who finds none is not asked for a byte until there is, or is told
 * to come again; what is small passes by.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fastify from 'fastify'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { bodyLimitBytes, readJsonBodies } from '../../http/bodies.ts'
import { admitLargeBodies } from '../../http/large-bodies.ts'
import { largeBytes } from '../../http/large-room.ts'
import { answerFailure } from '../../http/refusals.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { administratorOf } from '../support/viewers.ts'

let house: TestConsole
let path: string
beforeAll(async () => {
  house = await startConsole({ database: 'pglite', system: { works: false }, uiDirectory: null })
  path = `/api/agents/${await house.api.register('http://127.0.0.1:9/card.json')}/commands`
})
afterAll(() => house.close())

interface Sender {
  readonly socket: Socket
  /** All that came so far. */
  readonly heard: () => string
}
const invited = 'HTTP/1.1 100 Continue'
let keys = 0

/** Sends the head of a send, and asks whether its body is wanted. */
async function begun(url: string, to: string, framing: string): Promise<Sender> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  let heard = ''
  socket.setEncoding('utf8').on('data', (text: string) => (heard += text))
  const fields = ['Host: 127.0.0.1', `Idempotency-Key: large-${++keys}`, 'Expect: 100-continue', framing]
  socket.write(`POST ${to} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`)
  return { socket, heard: () => heard }
}
const isInvited = ({ heard }: Sender): boolean => heard().includes(invited)
const large = `Content-Length: ${bodyLimitBytes}`
const small = () => house.api.post(path, { text: 'Small.' }, { 'idempotency-key': `small-${++keys}` })

test('of one person two of the largest are invited, the next when one is accepted or gone, and small ones at once', async () => {
  const [first, second] = [await begun(house.url, path, large), await begun(house.url, path, large)]
  await expect.poll(() => isInvited(first) && isInvited(second)).toBe(true)
  // One that does not say how long it will be may be as long.
  const [third, fourth] = [
    await begun(house.url, path, large),
    await begun(house.url, path, 'Transfer-Encoding: chunked'),
  ]
  for (let n = 0; n < 3; n++) expect((await small()).status).toBe(202)
  expect([isInvited(third), isInvited(fourth)]).toEqual([false, false])

  const body = JSON.stringify({ text: 'x' })
  first.socket.write(body.padEnd(bodyLimitBytes))
  await expect.poll(first.heard, { timeout: 10_000 }).toContain('HTTP/1.1 202')
  await expect.poll(() => isInvited(third)).toBe(true)
  expect(isInvited(fourth)).toBe(false)
  second.socket.destroy()
  await expect.poll(() => isInvited(fourth)).toBe(true)
  fourth.socket.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
  await expect.poll(fourth.heard).toContain('HTTP/1.1 202')
  expect(house.log.errors()).toEqual([])
})

test('who waits in vain is answered 503, and when to come again', async () => {
  const app = fastify({ bodyLimit: bodyLimitBytes, forceCloseConnections: true })
  onTestFinished(() => app.close())
  app.setErrorHandler(answerFailure)
  app.decorateRequest('identity', null)
  app.addHook('onRequest', (request, _reply, next) => {
    request.identity = administratorOf(crypto.randomUUID())
    next()
  })
  admitLargeBodies(app, 0)
  readJsonBodies(app)
  app.post('/', () => 'read')
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  // One of each of four people: a fifth finds no room, and a small one asks for none.
  for (let n = 0; n < 4; n++) await begun(url, '/', large)
  const post = (bytes: number) => fetch(url, { method: 'POST', body: '{}'.padEnd(bytes) })
  await expect.poll(async () => (await post(largeBytes)).status).toBe(503)
  const refused = await post(largeBytes)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await refused.json()).toEqual({
    error: { name: 'Error', message: 'Too many large messages are on their way; nothing was accepted.' },
  })
  expect((await post(largeBytes - 1)).status).toBe(200)
})
