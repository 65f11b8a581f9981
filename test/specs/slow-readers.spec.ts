/**
 * Readers that take little or nothing of what they asked for: this process holds a little for each of them, whatever they do, and
 * ends those that take nothing. Whoever reads slowly gets all of it, and whoever only waits is left alone.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import fastify, { type FastifyInstance } from 'fastify'
import { sql } from 'slonik'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Viewer } from '../../domain/access.ts'
import { Downloads } from '../../http/downloads.ts'
import { buildServer } from '../../http/server.ts'
import { heldBuffers, heldBytes } from '../support/held-memory.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { freshSystem, type RunningSystem } from '../support/system.ts'
import { openTestLog } from '../support/test-log.ts'

const MiB = 1024 * 1024
/** As large as an event of an agent may bring it. More than a kernel takes over for a connection that nobody reads. */
const bytes = randomBytes(15 * MiB)
const digestOf = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')
const digest = digestOf(bytes)
const artifact = `/api/artifacts/${digest}`

/** A connection that has sent what it was given and reads what its test reads; a hundred bytes of it are there. */
async function tell(url: string, text: string): Promise<Socket> {
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  // Being cut off is what half of them are here for.
  socket.on('error', () => undefined)
  socket.write(text)
  await once(socket, 'readable')
  return socket
}
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
const getLast = (path: string): string => get(path).replace('Host', 'Connection: close\r\nHost')

/** All that comes until the other side closes. */
async function heardOn(socket: Socket): Promise<Buffer> {
  const heard: Buffer[] = []
  socket.on('data', (piece: Buffer) => heard.push(piece))
  if (!socket.closed) await once(socket, 'close')
  return Buffer.concat(heard)
}
const bodyOf = (heard: Buffer): Buffer => heard.subarray(heard.indexOf('\r\n\r\n') + 4)

/** Takes so many bytes evenly in so much time, and the rest at once. */
async function readSlowly(socket: Socket, size: number, withinMs: number): Promise<Buffer> {
  const heard: Buffer[] = []
  let taken = 0
  const began = performance.now()
  const { promise, resolve } = Promise.withResolvers<void>()
  const pace = setInterval(() => {
    const due = Math.min(size, (size * (performance.now() - began)) / withinMs)
    for (let piece: Buffer | null; taken < due && (piece = socket.read() as Buffer | null);) {
      heard.push(piece)
      taken += piece.length
    }
    if (taken >= size || socket.closed) resolve()
  }, 10)
  await promise
  clearInterval(pace)
  return Buffer.concat([...heard, await heardOn(socket)])
}

let folder: string
const stored = (): string => join(folder, digest.slice(0, 2), digest)
let running: RunningSystem
let peer: RawPeer
let agentId: string
let taskId: string
/** Who asks, as their session tells. */
let asking: Viewer | null
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-slow-'))
  running = await freshSystem('postgresql', { artifactDirectory: folder })
  asking = running.viewer
  peer = await startRawPeer()
  ;({ id: agentId } = await running.system.agents.register(running.viewer, peer.cardUrl))
  const { result } = await running.finished((await running.send(agentId, { text: 'hold' })).id)
  taskId = result?.localId ?? ''
  const remoteId = result?.taskId ?? ''
  await vi.waitFor(() => expect(peer.callsOf('SubscribeToTask')).toBe(1), 10_000)
  const parts = [{ raw: bytes.toString('base64') }]
  peer.script.emit(remoteId, { artifactUpdate: { taskId: remoteId, artifact: { artifactId: 'bytes', parts } } })
  await running.task(taskId, ({ artifacts }) => artifacts.length === 1)
  // Words, too, so that its view is as long; made in the database, for a stream of the agent's has brought as much as it may.
  await running.db.pool.query(sql.unsafe`
    with a as (
      insert into task_artifact (task_id, artifact_id, position, extensions, complete, update_count, part_count, parts_digest)
      values (${taskId}, 'words', 5000, '[]', false, 1, 1, ''))
    insert into task_artifact_part (task_id, artifact_id, position, part)
    values (${taskId}, 'words', 0, '{"kind":"text","value":"' || repeat('x', ${bytes.length}) || '","mediaType":"text/plain"}')`)
})
afterAll(async () => {
  await running.close()
  await peer.close()
  rmSync(folder, { recursive: true })
})

interface Served {
  readonly url: string
  readonly log: ReturnType<typeof openTestLog>
  /** Files of the artifact that this process has open. */
  open(): number
  close(): Promise<unknown>
}

async function serve(stallMs?: number): Promise<Served> {
  const log = openTestLog()
  const server = buildServer({
    system: running.system,
    db: running.db,
    log: log.logger,
    sidebandUris: [],
    auth: { mode: 'development' },
    identify: () => Promise.resolve(asking),
    loopbackOnly: true,
    drain: new AbortController().signal,
    uiDirectory: null,
    version: '0.0.0-test',
    ...(stallMs === undefined ? {} : { stallMs }),
  })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  const mine = '/proc/self/fd'
  const nameOf = (fd: string): string => (existsSync(join(mine, fd)) ? readlinkSync(join(mine, fd)) : '')
  return {
    url,
    log,
    open: () => readdirSync(mine).filter((fd) => nameOf(fd).endsWith(digest)).length,
    close() {
      server.server.closeAllConnections()
      return server.close()
    },
  }
}

describe('a download', () => {
  let served: Served
  const sockets: Socket[] = []
  const ask = async (text: string): Promise<Socket> => {
    const socket = await tell(served.url, text)
    sockets.push(socket)
    return socket
  }
  beforeEach(async () => {
    served = await serve()
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    // One of them damages it.
    writeFileSync(stored(), bytes)
    await served.close()
  })

  test('that nobody reads holds a piece of its file, and each connection one file, however many it asks for', async () => {
    const before = heldBuffers()
    await Promise.all(Array.from({ length: 12 }, () => ask(get(artifact).repeat(3))))
    await expect.poll(() => heldBuffers() - before).toBeLessThan(bytes.length / 2)
    expect(served.open()).toBe(12)
    for (const socket of sockets) socket.destroy()
    await expect.poll(served.open).toBe(0)
    expect(served.log.errors()).toEqual([])
  })

  test('is whole, one behind the other on one connection; a HEAD says how long it is and leaves no file open', async () => {
    const head = await fetch(served.url + artifact, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(bytes.length)])
    await expect.poll(served.open).toBe(0)
    const socket = await ask(get(artifact) + getLast(artifact))
    const first = bodyOf(await heardOn(socket))
    expect(digestOf(first.subarray(0, bytes.length))).toBe(digest)
    expect(digestOf(bodyOf(first.subarray(bytes.length)))).toBe(digest)
    await expect.poll(served.open).toBe(0)
  })

  test('of a file that is damaged is not found, and one that is damaged on its way is cut off, not ended', async () => {
    const socket = await ask(get(artifact))
    truncateSync(stored(), MiB)
    const cut = await heardOn(socket)
    expect(cut.toString('latin1', 0, 15)).toBe('HTTP/1.1 200 OK')
    expect(bodyOf(cut).length).toBeLessThan(bytes.length)
    const answer = await fetch(served.url + artifact)
    expect([answer.status, await answer.text()]).toEqual([404, 'Not found'])
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-security-policy': "default-src 'none'; sandbox",
    })
    expect(served.log.errors().join('')).toContain('stored bytes are missing or damaged')
    await expect.poll(served.open).toBe(0)
  })
})

describe('downloads of one person', () => {
  let app: FastifyInstance
  let url: string
  beforeAll(async () => {
    app = fastify()
    const downloads = new Downloads(2)
    app.setErrorHandler((error: Error, _request, reply) => reply.code(429).send(error.message))
    app.get<{ Params: { who: string } }>('/:who', async (request, reply) => {
      await downloads.begin(request.params.who, reply.raw)
      const endless = new PassThrough()
      endless.write('begun')
      return reply.send(endless)
    })
    url = await app.listen({ host: '127.0.0.1', port: 0 })
  })
  afterAll(() => app.close())

  test('are so many at once; another person is let in, and who is no longer busy with one', async () => {
    const ask = async (who: string): Promise<[Socket, string]> => {
      const socket = await tell(url, get(`/${who}`))
      return [socket, (socket.read() as Buffer).toString('latin1', 9, 12)]
    }
    const asked = [await ask('one'), await ask('one'), await ask('one'), await ask('another')]
    expect(asked.map(([, status]) => status)).toEqual(['200', '200', '429', '200'])
    asked[0]?.[0].destroy()
    const again = async () => {
      asked.push(await ask('one'))
      return asked.at(-1)?.[1]
    }
    await expect.poll(again).toBe('200')
    for (const [socket] of asked) socket.destroy()
  })
})

describe('large views', () => {
  let served: Served
  let view: string
  const sockets: Socket[] = []
  const silent = async (count: number): Promise<void> => {
    sockets.push(...(await Promise.all(Array.from({ length: count }, () => tell(served.url, get(view))))))
  }
  /** 64 MiB a person, and the last goes beyond. */
  const all = 4
  beforeEach(async () => {
    served = await serve()
    view = `/api/tasks/${taskId}`
  })
  afterEach(async () => {
    asking = running.viewer
    for (const socket of sockets.splice(0)) socket.destroy()
    await served.close()
  })

  test('are made for so many readers; the next has one when another leaves, or is told to come again', async () => {
    const before = heldBytes()
    await silent(all)
    const late = await Promise.all([view, '/api/task-views'].map((path) => fetch(served.url + path)))
    for (const answer of late) {
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '60'])
      expect(await answer.json()).toEqual({
        error: { message: 'Other large tasks are being read now; try again in a moment.' },
      })
    }
    expect(heldBytes() - before).toBeLessThan(2.5 * all * bytes.length)
    const left = await tell(served.url, get('/api/auth/session') + get(view))
    left.destroy()
    const next = fetch(served.url + view)
    expect((await fetch(`${served.url}/api/task-views?limit=1&after=${taskId}`)).status).toBe(200)
    sockets[0]?.destroy()
    expect((await (await next).text()).length).toBeGreaterThan(bytes.length)
  })

  test('keep no place of a request that waits behind another of its connection when that is cut', async () => {
    for (let n = 0; n < all; n++) {
      const socket = await tell(served.url, get('/api/tasks/events') + get(view))
      const gone = once(socket, 'close')
      socket.destroy()
      await gone
    }
    const answers = await Promise.all(Array.from({ length: all }, () => fetch(served.url + view)))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: all }, () => 200))
    for (const answer of answers) await answer.body?.cancel()
  })

  test('are not for whoever is signed out while there is no room', async () => {
    await silent(all)
    const next = fetch(served.url + view)
    // It is asked for once it was found to be large; the look before is over when another answer is.
    await fetch(`${served.url}/api/tasks?limit=1`)
    asking = null
    sockets[0]?.destroy()
    expect((await next).status).toBe(401)
  })
})

test('whoever takes nothing is let go; whoever reads slowly gets all, and whoever waits is left alone', async () => {
  const stallMs = 1_500
  const served = await serve(stallMs)
  const { url } = served
  const events = await fetch(`${url}/api/tasks/events`)
  const idle = await tell(url, get('/api/auth/session'))
  idle.read()
  peer.script.holdReplies()
  const json = { 'content-type': 'application/json' }
  const waiting = fetch(`${url}/api/agents/${agentId}/messages`, {
    method: 'POST',
    headers: { ...json, 'idempotency-key': 'waits' },
    body: JSON.stringify({ text: 'hello' }),
  })
  const body = JSON.stringify({ cardUrl: peer.cardUrl })
  const head = `POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  // The answer to what it asked for is a wish for the body, which then takes its time.
  const sending = await tell(url, `${head}Expect: 100-continue\r\n\r\n`)
  sending.read()
  const silent = await Promise.all([artifact, artifact, `/api/tasks/${taskId}`].map((path) => tell(url, get(path))))
  const slow = await readSlowly(await tell(url, getLast(artifact)), bytes.length, 2 * stallMs)
  expect(digestOf(bodyOf(slow))).toBe(digest)

  const letGo = () => served.log.lines().filter((line) => line.includes('a client took nothing of its answer')).length
  await expect.poll(letGo).toBe(silent.length)
  for (const socket of silent) expect((await heardOn(socket)).length).toBeLessThan(bytes.length)
  await expect.poll(served.open).toBe(0)

  peer.script.release()
  expect((await waiting).status).toBe(200)
  idle.write(getLast('/api/auth/session'))
  expect((await heardOn(idle)).toString()).toContain('HTTP/1.1 200 OK')
  sending.write(body)
  await once(sending, 'readable')
  expect((sending.read() as Buffer).toString()).toContain('HTTP/1.1 201 Created')
  sending.destroy()
  const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader()
  let said = ''
  for (let n = 0; n < 10 && !said.includes('freshness'); n++) said += (await reader?.read())?.value ?? ''
  expect(said).toContain('event: freshness')
  await reader?.cancel()
  await served.close()
})
