/** Requests of somebody who is only presumed: none is answered before somebody has asked, and only some of one person are at once. */
import { once } from 'node:events'
import { connect } from 'node:net'
import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { Refusal } from '../../domain/refusal.ts'
import { answerProven, proven } from '../../http/accepting.ts'
import { guardRoutes } from '../../http/guard.ts'

const viewer = {
  organizationId: 'o',
  userId: 'ada',
  membershipId: 'm',
  role: 'admin',
  displayName: 'Ada',
} as const
const config = { permission: 'operate', proves: 'with its commit' } as const

/** A door whose person is presumed, and is asked for by `arrive`, which is counted here. */
async function door() {
  const asked = { times: 0 }
  const app = fastify()
  app.setErrorHandler(answerProven)
  guardRoutes(app, {
    identify: () => Promise.resolve(viewer),
    arrive: () => {
      asked.times += 1
      return Promise.resolve({ viewer, hasPlace: true })
    },
    presume: () => Promise.resolve({ viewer, session: null, bucket: 'operate/ada', limit: 120 }),
    origins: { mode: 'development' },
    loopbackOnly: false,
  })
  const held = Promise.withResolvers<void>()
  let waiting = 0
  app.post('/answers', { config }, () => ({ told: 'anybody' }))
  app.post('/says-no', { config }, (_request, reply) => reply.code(404).send({ told: 'anybody' }))
  app.post('/refuses', { config }, () => {
    throw new Refusal('task.unknown')
  })
  app.post('/asks', { config }, async (request, reply) => ({ told: (await proven(request, reply)).displayName }))
  app.post('/waits', { config }, async (request, reply) => {
    waiting += 1
    await held.promise
    return { told: (await proven(request, reply)).displayName }
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => app.close())
  const post = async (path: string) => {
    const answer = await fetch(url + path, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    return { status: answer.status, body: (await answer.json()) as unknown, person: answer.headers.get('x-viewer-id') }
  }
  return { asked, post, url, release: held.resolve, waiting: () => waiting }
}

test('a route that answers before anybody has asked is a defect, whatever it says', async () => {
  const { asked, post } = await door()
  for (const path of ['/answers', '/says-no']) {
    const { status, body } = await post(path)
    expect([status, JSON.stringify(body)]).toEqual([500, expect.not.stringContaining('anybody')])
  }
  // Whoever it was is known by then, and counted.
  expect(asked.times).toBe(2)
})

test('a refusal is for who was asked for, and so is an answer', async () => {
  const { asked, post } = await door()
  expect(await post('/refuses')).toMatchObject({ status: 404, person: 'ada' })
  expect(await post('/asks')).toMatchObject({ status: 200, body: { told: 'Ada' }, person: 'ada' })
  expect(asked.times).toBe(2)
})

test('of one person 64 are presumed at once; who comes beyond is asked for at the door', async () => {
  const { asked, post, release, waiting } = await door()
  const answers = Array.from({ length: 70 }, () => post('/waits'))
  await expect.poll(waiting).toBe(70)
  expect(asked.times).toBe(6)
  release()
  expect((await Promise.all(answers)).every(({ status }) => status === 200)).toBe(true)
  expect(asked.times).toBe(70)
})

test('who hangs up in the middle of a body takes nobody’s place for ever, and is counted', async () => {
  const { asked, post, release, url, waiting } = await door()
  const { hostname, port } = new URL(url)
  for (let n = 1; n <= 64; n++) {
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    socket.write('POST /asks HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{')
    socket.destroySoon()
    await expect.poll(() => asked.times).toBe(n)
  }
  const answers = Array.from({ length: 64 }, () => post('/waits'))
  await expect.poll(waiting).toBe(64)
  expect(asked.times).toBe(64)
  release()
  await Promise.all(answers)
})
