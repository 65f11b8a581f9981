/**
 * Large bodies of people have room for a few of the largest at once, by what has come of them: of who finds none the rest stays with the
 * network until there is, or they are told to come again; what is small, is never read or only drips keeps nobody out.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fastify, { type FastifyBaseLogger } from 'fastify'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { bodyLimitBytes, readJsonBodies } from '../../http/bodies.ts'
import { admitLargeBodies, type LargeBodiesOptions } from '../../http/large-bodies.ts'
import { largeBytes } from '../../http/large-room.ts'
import { answerFailure } from '../../http/refusals.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { openTestLog } from '../support/test-log.ts'
import { administratorOf } from '../support/viewers.ts'

let house: TestConsole
let peer: RawPeer
let agentId: string
let path: string
beforeAll(async () => {
  house = await startConsole({ database: 'pglite', uiDirectory: null })
  peer = await startRawPeer()
  agentId = await house.api.register(peer.cardUrl)
  path = `/api/agents/${agentId}/commands`
})
afterAll(async () => {
  await house.close()
  await peer.close()
})

interface Sender {
  readonly socket: Socket
  /** All that came so far. */
  readonly heard: () => string
}
const large = `Content-Length: ${bodyLimitBytes}`
const chunked = 'Transfer-Encoding: chunked'
const crowded = 'Too many large messages are on their way; nothing was accepted.'
let keys = 0

/** Sends the head of a request, and so much of what is JSON in the end. */
async function begun(url: string, line: string, framing: string, sent = ''): Promise<Sender> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.setEncoding('utf8').on('data', (text: string) => (heard += text))
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const fields = ['Host: 127.0.0.1', `Idempotency-Key: large-${++keys}`, framing]
  socket.write(`${line} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${sent}`)
  return { socket, heard: () => heard }
}
const isAnswered = ({ heard }: Sender): boolean => heard().includes('\r\n\r\n')
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const whole = (text: string): string => `${chunk(text)}0\r\n\r\n`
const body = JSON.stringify({ text: 'x' })
/** Of one of the largest, what asks for room. */
const plenty = body.padEnd(largeBytes + 1)
/** Of one of the largest, what lacks its last byte. */
const almost = body.padEnd(bodyLimitBytes - 1)
const post = (text: string) => house.api.post(path, text, { 'idempotency-key': `sent-${++keys}` })

test('of one person two of the largest are read, the next when one is accepted or gone, and small ones at once', async () => {
  const send = `POST ${path}`
  const [first, second] = [await begun(house.url, send, large, almost), await begun(house.url, send, large, almost)]
  // No network here holds so much: who has sent it is inside.
  await expect.poll(() => first.socket.writableLength + second.socket.writableLength).toBe(0)
  const [third, fourth] = [
    await begun(house.url, send, large, `${almost} `),
    await begun(house.url, send, chunked, whole(`${almost} `)),
  ]
  for (let n = 0; n < 3; n++) expect((await post(body)).status).toBe(202)
  const small = await begun(house.url, send, chunked, whole(body))
  await expect.poll(small.heard).toContain('HTTP/1.1 202')
  expect([isAnswered(third), isAnswered(fourth)]).toEqual([false, false])

  first.socket.write(' ')
  await expect.poll(first.heard).toContain('HTTP/1.1 202')
  await expect.poll(third.heard).toContain('HTTP/1.1 202')
  second.socket.destroy()
  await expect.poll(fourth.heard).toContain('HTTP/1.1 202')
  expect(house.log.errors()).toEqual([])
})

test('heads of which no byte comes, bodies that nobody reads and streams that look again keep nobody out', async () => {
  const { localId } = await house.api.send(agentId, { text: 'hold' })
  const { taskId } = await house.api.task(localId)
  const again = JSON.stringify({ resubscribe: true, taskId, tenant: '' })
  const looking = [
    await begun(house.url, `POST /api/agents/${agentId}/stream`, chunked, whole(again.padEnd(bodyLimitBytes))),
    await begun(house.url, `POST /api/agents/${agentId}/stream`, chunked, whole(again.padEnd(bodyLimitBytes))),
    await begun(house.url, 'GET /api/tasks/events', large),
    await begun(house.url, 'GET /api/tasks/events', large, plenty),
    await begun(house.url, 'GET /api/tasks/events', chunked, chunk(plenty)),
  ]
  for (let n = 0; n < 4; n++) await begun(house.url, `POST ${path}`, large)
  for (let n = 0; n < 4; n++) await begun(house.url, `POST ${path}`, chunked, chunk(body))
  for (const { heard } of looking) await expect.poll(heard).toContain('HTTP/1.1 200')
  expect((await post(plenty)).status).toBe(202)
  expect(looking.filter(({ socket }) => socket.readableEnded)).toEqual([])
})

test('who waits while the process stops is answered at once, and no outage is logged', async () => {
  const stopping = await startConsole({ database: 'pglite', system: { works: false }, uiDirectory: null })
  onTestFinished(() => stopping.close())
  const send = `POST /api/agents/${await stopping.api.register('http://127.0.0.1:9/card.json')}/commands`
  const senders = [
    await begun(stopping.url, send, large, plenty),
    await begun(stopping.url, send, large, plenty),
    await begun(stopping.url, send, large, plenty),
  ]
  stopping.drain()
  const refused = () => senders.filter(isAnswered)
  await expect.poll(() => refused().length, { timeout: 5_000 }).toBe(1)
  const heard = refused()[0]?.heard() ?? ''
  expect(heard).toMatch(/^HTTP\/1\.1 503 /)
  expect(heard.toLowerCase()).toContain('retry-after: 1\r\n')
  expect(heard.toLowerCase()).toContain('connection: close\r\n')
  expect(heard).toContain(crowded)
  const said = stopping.log.lines().map((line) => (JSON.parse(line) as { msg: string }).msg)
  expect(said).toContain('a large body found no room')
  expect(said).not.toContain('a dependency is unavailable')
})

/** With other patience than the product's, and somebody else with each request. */
async function hall(options: Partial<LargeBodiesOptions>) {
  const log = openTestLog()
  const loggerInstance: FastifyBaseLogger = log.logger
  const app = fastify({ bodyLimit: bodyLimitBytes, forceCloseConnections: true, loggerInstance })
  onTestFinished(() => app.close())
  app.setErrorHandler(answerFailure)
  app.decorateRequest('identity', null)
  app.addHook('onRequest', (request, _reply, next) => {
    request.identity = administratorOf(crypto.randomUUID())
    next()
  })
  admitLargeBodies(app, { drain: new AbortController().signal, ...options })
  readJsonBodies(app)
  app.post('/', () => 'read')
  let atWork = 0
  app.post('/work', () => {
    atWork += 1
    return new Promise(() => undefined)
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return {
    url,
    log,
    atWork: () => atWork,
    post: (bytes: number) => fetch(url, { method: 'POST', body: '{}'.padEnd(bytes) }),
  }
}

test('who waits in vain is answered 503, and when to come again', async () => {
  const { url, post: send } = await hall({ waitMs: 0 })
  // One of each of four people: a fifth finds no room, and a small one asks for none.
  for (let n = 0; n < 4; n++) await begun(url, 'POST /', large, plenty)
  await expect.poll(async () => (await send(largeBytes + 1)).status).toBe(503)
  const refused = await send(largeBytes + 1)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await refused.json()).toEqual({ error: { name: 'Error', message: crowded } })
  expect((await send(largeBytes)).status).toBe(200)
  const unsaid = await begun(url, 'POST /', chunked, whole('{}'.padEnd(largeBytes)))
  await expect.poll(unsaid.heard).toContain('HTTP/1.1 200')
})

test('where nothing is accepted, what was read keeps nobody out', async () => {
  const { url, atWork, post: send } = await hall({ waitMs: 0 })
  for (let n = 1; n <= 5; n++) {
    await begun(url, 'POST /work', chunked, whole(plenty))
    await expect.poll(atWork).toBe(n)
  }
  expect((await send(2 * largeBytes)).status).toBe(200)
})

test('what only drips gives way to who waits, and to nobody else', async () => {
  const { url, log, post: send } = await hall({ judgedMs: 50 })
  const dripping: Sender[] = []
  for (let n = 0; n < 4; n++) dripping.push(await begun(url, 'POST /', large, plenty))
  const drop = setInterval(() => dripping.forEach(({ socket }) => socket.write(' ')), 20)
  onTestFinished(() => clearInterval(drop))
  for (let n = 0; n < 200; n++) expect((await send(2)).status).toBe(200)
  expect(dripping.filter(isAnswered)).toEqual([])

  expect((await send(2 * largeBytes)).status).toBe(200)
  await expect.poll(() => dripping.filter(isAnswered).length).toBeGreaterThan(0)
  const heard = dripping.find(isAnswered)?.heard() ?? ''
  expect(heard).toMatch(/^HTTP\/1\.1 503 /)
  expect(heard).toContain(crowded)
  expect(log.lines().join('')).toContain('a large body that only dripped gave way')
})

test('a connection is kept after a large body, and one who asks first is invited', async () => {
  const { url } = await hall({})
  const sender = await begun(url, 'POST /', large, '{}'.padEnd(bodyLimitBytes))
  await expect.poll(() => sender.heard().match(/HTTP\/1\.1 200 /g)?.length).toBe(1)
  sender.socket.write(`POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n${chunked}\r\n\r\n${whole('{}'.padEnd(bodyLimitBytes))}`)
  await expect.poll(() => sender.heard().match(/HTTP\/1\.1 200 /g)?.length).toBe(2)

  const asking = await begun(house.url, `POST ${path}`, `${large}\r\nExpect: 100-continue`)
  await expect.poll(asking.heard).toContain('HTTP/1.1 100 Continue')
  asking.socket.write(body.padEnd(bodyLimitBytes))
  await expect.poll(asking.heard).toContain('HTTP/1.1 202')
})
