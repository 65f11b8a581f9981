/**
 * Requests that are answered while their body is still on its way: whoever sends it to its end before they look finds the answer whole,
 * and whoever sends without an end, or nothing more, is let go.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bodyLimitBytes } from '../../http/bodies.ts'
import { cookieNames } from '../../http/cookies.ts'
import { pageOrigin, startOrganization, type Organization, type Person } from '../support/people.ts'

const MiB = 1024 * 1024
const tooLarge = 'Request body exceeds the 16 MiB limit.'
const piece = Buffer.alloc(MiB, 0x20)
const piecesOver = bodyLimitBytes / MiB + 8
const framings = ['content-length', 'transfer-encoding'] as const
type Framing = (typeof framings)[number]

let house: Organization
let person: Person
beforeAll(async () => {
  house = await startOrganization({ database: 'pglite', system: { works: false }, uiDirectory: null })
  person = await house.person('admin')
})
afterAll(() => house.close())

/** Connected, with the head of a request sent; it stays half open as long as the other side lets it. */
async function begun(
  path: string,
  framing: Framing,
  cookie = `${cookieNames.session}=${person.token}`,
): Promise<Socket> {
  const { port, hostname } = new URL(house.url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  const length = framing === 'content-length' ? `Content-Length: ${piecesOver * MiB}` : 'Transfer-Encoding: chunked'
  const fields = [`Origin: ${pageOrigin}`, `Cookie: ${cookie}`, 'Content-Type: application/json', length]
  socket.write(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields.join('\r\n')}\r\n\r\n`)
  return socket
}

const framed = (framing: Framing): Buffer =>
  framing === 'content-length'
    ? piece
    : Buffer.concat([Buffer.from(`${MiB.toString(16)}\r\n`), piece, Buffer.from('\r\n')])

/** Rejects where the other side takes no more of it. */
const write = (socket: Socket, bytes: Uint8Array | string): Promise<void> =>
  new Promise((resolve, reject) => socket.write(bytes, (error) => (error ? reject(error) : resolve())))

/** What came until the other side said that it was all. */
async function answerOn(socket: Socket): Promise<{ status: number; head: string; body: unknown }> {
  const heard: Buffer[] = []
  socket.on('data', (bytes: Buffer) => heard.push(bytes))
  await once(socket, 'end')
  const [head = '', body = ''] = Buffer.concat(heard).toString().split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body: JSON.parse(body) as unknown }
}

describe.each(framings)('a body of 24 MiB by %s, sent to its end before its sender looks', (framing) => {
  const cases: [string, string, string | undefined, number, unknown][] = [
    ['is too large', '/api/agents', undefined, 400, { error: { message: tooLarge } }],
    ['is too large for a send', '/api/agents/none/messages', undefined, 400, { error: { message: tooLarge } }],
    ['is nobody’s', '/api/agents', 'none=1', 401, { error: { message: 'Sign in to continue.' } }],
    ['is for no route', '/api/none', undefined, 404, { error: { message: expect.any(String) as string } }],
    ['is a delivery where push is off', '/api/webhooks/a2a/x', undefined, 503, { error: expect.any(String) as string }],
  ]
  test.each(cases)(
    '%s: the answer is whole, and its connection is closed',
    async (_what, path, cookie, status, body) => {
      const socket = await begun(path, framing, cookie)
      for (let i = 0; i < piecesOver; i++) await write(socket, framed(framing))
      if (framing === 'transfer-encoding') await write(socket, '0\r\n\r\n')
      const answer = await answerOn(socket)
      expect(answer).toMatchObject({ status, body })
      expect(answer.head).toContain('connection: close')
      socket.destroy()
    },
  )
})

test('a body without an end is read for some time and no longer: its sender has the answer, and is cut off', async () => {
  const socket = await begun('/api/agents', 'transfer-encoding')
  const heard = answerOn(socket)
  let sent = 0
  // Ends with the first piece that is not taken; without an end of its own this would be a test that never ends.
  const sending = async (): Promise<void> => {
    for (; sent < 1024; sent++) await write(socket, framed('transfer-encoding'))
  }
  socket.on('error', () => undefined)
  await expect(sending()).rejects.toThrow(/^write E|destroyed/)
  expect(await heard).toMatchObject({ status: 400, body: { error: { message: tooLarge } } })
  expect(sent).toBeGreaterThan(bodyLimitBytes / MiB + 32)
  expect(sent).toBeLessThan(bodyLimitBytes / MiB + 128)
})

test(
  'who only drips has the answer and its end at once, and is cut off after ten seconds',
  { timeout: 30_000 },
  async () => {
    const socket = await begun('/api/agents', 'content-length')
    socket.on('error', () => undefined)
    const begunAt = performance.now()
    expect(await answerOn(socket)).toMatchObject({ status: 400, body: { error: { message: tooLarge } } })
    expect(performance.now() - begunAt).toBeLessThan(5_000)
    const isCutOff = (): boolean => {
      if (socket.writable) socket.write(' ')
      return socket.destroyed
    }
    await expect.poll(isCutOff, { timeout: 20_000 }).toBe(true)
    expect(performance.now() - begunAt).toBeGreaterThan(9_000)
  },
)

test('a small body that is refused costs nobody the connection', async () => {
  const { port, hostname } = new URL(house.url)
  const socket = connect({ port: Number(port), host: hostname })
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.setEncoding('utf8').on('data', (text: string) => (heard += text))
  for (let answers = 1; answers <= 2; answers++) {
    socket.write('POST /api/none HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}')
    await expect.poll(() => heard.match(/HTTP\/1\.1 404 /g)?.length).toBe(answers)
  }
  expect(heard.toLowerCase()).not.toContain('connection: close')
})

test('the log has no word of it', () => {
  expect(house.log.errors()).toEqual([])
})
