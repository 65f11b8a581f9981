/**
 * Event streams of tasks that hold much: everything comes, in order, a bounded part of it at a time; readers that take little or nothing
 * hold a bounded number of bytes between them, and not for ever.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fastify from 'fastify'
import { sql } from 'slonik'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TaskView } from '../../domain/task.ts'
import { sendEvents, type StreamLimit } from '../../http/event-stream.ts'
import { LargeRoom } from '../../http/large-room.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { eitherDatabase } from '../support/databases.ts'
import { heldBytes } from '../support/held-memory.ts'
import { startRawPeer, type RawPeer } from '../support/peers/raw.ts'
import { openTestLog } from '../support/test-log.ts'

const MiB = 1024 * 1024

interface Asked {
  readonly socket: Socket
  text: string
}

/** Reads until it heard so much of what it asked for, and then nothing. */
async function ask(url: string, request: string): Promise<Asked> {
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  const asked: Asked = { socket, text: '' }
  socket.on('error', () => undefined)
  socket.on('data', (piece: Buffer) => {
    asked.text += piece.toString('latin1')
    if (asked.text.includes('event: snapshot')) socket.pause()
  })
  socket.write(request)
  await once(socket, 'connect')
  return asked
}

interface Held {
  readonly localId: string
  readonly taskId: string
  readonly path: string
}

describe.each(eitherDatabase)('a stream of a heavy task on %s', (database) => {
  let house: TestConsole
  let peer: RawPeer
  let agentId: string
  beforeAll(async () => {
    house = await startConsole({ database, uiDirectory: null })
    peer = await startRawPeer()
    agentId = await house.api.register(peer.cardUrl)
  }, 60_000)
  afterAll(async () => {
    await house.close()
    await peer.close()
  })

  const task = async (text: string): Promise<Held> => {
    const { result } = await house.finished((await house.send(agentId, { text })).id)
    return { localId: result?.localId ?? '', taskId: result?.taskId ?? '', path: `/api/agents/${agentId}/stream` }
  }
  const resubscribe = ({ taskId }: Held) => ({ resubscribe: true, taskId, tenant: '' })

  test('tells all of its events in order, also those that are a page by themselves', async () => {
    const held = await task('hello')
    await house.task(held.localId, ({ state }) => state === 'TASK_STATE_COMPLETED')
    // Behind whatever its agent said.
    const first = 100
    const sizes = Array.from({ length: 60 }, (_, n) => (n % 25 === 7 ? 3 * MiB : n % 2 === 0 ? 300 * 1024 : 700 * 1024))
    for (const [n, bytes] of sizes.entries())
      // Characters of two code units, for none may be cut where a frame is.
      await house.db.pool.query(sql.unsafe`
        insert into task_event (task_id, position, source, event, received_at)
        values (${held.localId}, ${first + n}, 'stream',
          '{"artifactUpdate":{"taskId":"x","contextId":"x","artifact":{"artifactId":"' || ${n}::int
            || '","parts":[{"text":"' || repeat('😀', ${bytes}::int / 4) || '"}]}}}', now())`)
    await house.db.pool.query(sql.unsafe`update task set events = ${first + sizes.length} where id = ${held.localId}`)

    const told = await (await house.api.stream(held.path, resubscribe(held))).rest()
    const updates = told.flatMap(({ event, data }) => (event === 'a2a' ? [data] : [])).slice(-sizes.length)
    const artifact = (data: unknown) =>
      (data as { artifactUpdate: { artifact: { artifactId: string; parts: { text: string }[] } } }).artifactUpdate
        .artifact
    expect(updates.map((data) => artifact(data).artifactId)).toEqual(sizes.map((_, n) => String(n)))
    updates.forEach((data, n) => {
      const text = artifact(data).parts[0]?.text ?? ''
      expect(text === '😀'.repeat(Math.floor((sizes[n] ?? 0) / 4))).toBe(true)
    })
    const metas = told.flatMap(({ event, data }) => (event === 'meta' ? [data as { position: number }] : []))
    expect(metas.slice(-sizes.length).map(({ position }) => position)).toEqual(sizes.map((_, n) => first + n))
    expect(told.at(-1)?.event).toBe('end')
  }, 120_000)

  test('that nobody reads holds its snapshot in its turn; who waited is told all when others are gone', async () => {
    const held = await task('hold')
    const bytes = 16 * MiB
    await house.db.pool.query(sql.unsafe`
      with a as (
        insert into task_artifact (task_id, artifact_id, position, extensions, complete, update_count, part_count, parts_digest)
        values (${held.localId}, 'words', 5000, '[]', false, 1, 1, ''))
      insert into task_artifact_part (task_id, artifact_id, position, part)
      values (${held.localId}, 'words', 0, '{"kind":"text","value":"' || repeat('x', ${bytes}) || '","mediaType":"text/plain"}')`)
    const body = JSON.stringify(resubscribe(held))
    const head = `POST ${held.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    const before = heldBytes()
    const silent = await Promise.all(Array.from({ length: 20 }, () => ask(house.url, head + body)))
    const waiting = () => silent.filter(({ text }) => text.includes(': ping'))
    const begun = () => silent.filter(({ text }) => text.includes('event: snapshot'))
    await expect.poll(() => new Set([...waiting(), ...begun()]).size, { timeout: 90_000 }).toBe(silent.length)
    expect(begun().length).toBeGreaterThan(1)
    expect(heldBytes() - before).toBeLessThan(silent.length * (bytes / 2))

    const reader = await house.api.stream(held.path, resubscribe(held))
    for (const { socket } of silent) socket.destroy()
    const view = TaskView.parse((await reader.until('snapshot')).data)
    const words = view.artifacts.find(({ artifactId }) => artifactId === 'words')?.parts[0]?.value
    expect(String(words).length).toBe(bytes)
    peer.script.finish()
    const views = (await reader.rest()).filter(({ event }) => event === 'snapshot')
    expect(views.at(-1)?.data).toMatchObject({ state: 'TASK_STATE_COMPLETED' })
  }, 240_000)
})

describe('a large frame', () => {
  const frame = `data: ${'x'.repeat(24 * MiB)}\n\n`
  const serve = async (limit: StreamLimit) => {
    const log = openTestLog()
    const app = fastify({ loggerInstance: log.logger })
    app.get('/', (request, reply) =>
      sendEvents(request, reply, limit, async function* () {
        yield await Promise.resolve(frame)
        yield 'data: last\n\n'
      }),
    )
    return { app, log, url: await app.listen({ host: '127.0.0.1', port: 0 }) }
  }
  /** Takes so many bytes a millisecond until the other side closes. */
  const heardBy = async (url: string, bytesPerMs: number): Promise<string> => {
    const { port, hostname } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    socket.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
    const began = performance.now()
    const heard: Buffer[] = []
    let taken = 0
    const pace = setInterval(() => {
      const due = bytesPerMs * (performance.now() - began)
      for (let piece: Buffer | null; taken < due && (piece = socket.read() as Buffer | null);) {
        heard.push(piece)
        taken += piece.length
      }
    }, 10)
    await once(socket, 'close')
    clearInterval(pace)
    return Buffer.concat(heard).toString('latin1')
  }

  test('is taken whole by who reads slowly, also when that takes longer than the stream', async () => {
    const { app, url } = await serve({ windowMs: 100, until: [] })
    // Twelve seconds of it, and the stream's last moment is after ten.
    expect(await heardBy(url, frame.length / 12_500)).toContain('data: last')
    await app.close()
  }, 40_000)

  test('is not held for who takes a little of it now and then', async () => {
    const { app, url, log } = await serve({
      windowMs: 60_000,
      until: [],
      stallMs: 2_000,
      leastBytesPerMs: frame.length / 500,
    })
    const heard = await heardBy(url, frame.length / 12_500)
    expect(heard.length).toBeLessThan(frame.length)
    expect(log.lines().join('')).toContain('an event stream was not read to its end')
    await app.close()
  }, 40_000)
})

describe('room for large frames', () => {
  const now = AbortSignal.abort()
  const who = async (places: Readonly<Record<string, ReturnType<LargeRoom['place']>>>): Promise<string[]> => {
    const inside: string[] = []
    for (const [name, place] of Object.entries(places)) if (await place.enter(0, now)) inside.push(name)
    return inside
  }

  test('is for so many bytes, half of them one person’s, and who came least goes first', async () => {
    const room = new LargeRoom()
    const places = {
      a1: room.place('a', 40 * MiB),
      a2: room.place('a', 40 * MiB),
      a3: room.place('a', 40 * MiB),
      b1: room.place('b', 60 * MiB),
      c1: room.place('c', 2 * MiB),
    }
    expect(await who(places)).toEqual(['a1', 'a2', 'b1'])
    expect(room.counts).toEqual({ bytes: 140 * MiB, waiting: 2 })
    const waits = places.c1.enter(60_000, new AbortController().signal)
    places.a1.leave()
    expect(await waits).toBe(true)
    expect(await who(places)).toEqual(['a2', 'a3', 'b1', 'c1'])
    for (const place of Object.values(places)) place.leave()
    expect(room.counts).toEqual({ bytes: 0, waiting: 0 })
  })

  test('has one that is larger than all of it', async () => {
    const room = new LargeRoom()
    const places = { first: room.place('a', 160 * MiB), second: room.place('b', MiB) }
    expect(await who(places)).toEqual(['first'])
    places.first.leave()
    expect(await who(places)).toEqual(['second'])
  })
})
