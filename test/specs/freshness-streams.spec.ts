/**
 * Many open event streams on one process: everybody who reads hears of a change, whoever does not read costs a bounded
 * number of bytes and is let go, and whoever leaves, politely or not, leaves nothing behind.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { sendEvents } from '../../http/event-stream.ts'
import { startConsole, type TestConsole } from '../support/console.ts'

const clientsCount = 200
const seed = 20_261_121

/** A small seeded generator (mulberry32), so that a failing run can be run again. */
function seeded(state: number): () => number {
  let a = state
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface Watcher {
  readonly socket: Socket
  readonly does: 'read' | 'stall' | 'reset'
  text: string
}

const signalsIn = (text: string): number => text.split('event: freshness').length - 1

async function watch(url: string, does: Watcher['does']): Promise<Watcher> {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  const watcher: Watcher = { socket, does, text: '' }
  const ready = new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('data', (chunk: Buffer) => {
      watcher.text += chunk.toString('latin1')
      if (watcher.text.includes('event: ready')) resolve()
    })
  })
  await once(socket, 'connect')
  socket.write(`GET /api/tasks/events HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await ready
  if (does === 'stall') socket.pause()
  return watcher
}

async function change(house: TestConsole, n: number): Promise<void> {
  await house.api.register(`http://127.0.0.1:9/${n}/card.json`)
}

async function everybodyHears(readers: readonly Watcher[], happen: () => Promise<void>): Promise<void> {
  const before = new Map(readers.map((reader) => [reader, signalsIn(reader.text)]))
  await happen()
  const unheard = () => readers.filter((reader) => signalsIn(reader.text) === before.get(reader)).length
  await expect.poll(unheard, { timeout: 20_000 }).toBe(0)
}

test(`${clientsCount} streams, some that do not read and some that break: readers hear of each change, nothing stays`, async () => {
  const house = await startConsole({ database: 'postgresql', system: { works: false } })
  const { changes } = house.system
  const before = changes.listeners
  const random = seeded(seed)
  const pick = (): Watcher['does'] => (random() < 0.6 ? 'read' : random() < 0.5 ? 'stall' : 'reset')
  const watchers = await Promise.all(Array.from({ length: clientsCount }, () => watch(house.url, pick())))
  expect(changes.listeners).toBe(before + clientsCount)
  const opening = watchers[0]?.text ?? ''
  expect(opening.slice(opening.indexOf('retry'))).toMatch(/^retry: 1000\nevent: ready\ndata: \{\}\n\n/)

  const readers = watchers.filter(({ does }) => does === 'read')
  await everybodyHears(readers, () => change(house, 1))

  const broken = watchers.filter(({ does }) => does === 'reset')
  for (const { socket } of broken) socket.resetAndDestroy()
  await expect.poll(() => changes.listeners, { timeout: 5_000 }).toBe(before + clientsCount - broken.length)
  await everybodyHears(readers, () => change(house, 2))
  // A look that overtakes an acknowledgement tells it twice, and the first look tells everybody (actors/freshness.ts).
  for (const { text } of readers) expect(signalsIn(text)).toBeLessThanOrEqual(5)

  for (const { socket, does } of watchers) if (does !== 'reset') socket.destroy()
  await expect.poll(() => changes.listeners, { timeout: 5_000 }).toBe(before)
  expect(house.log.errors()).toEqual([])
  await house.close()
})

test('a client that does not read is sent a bounded number of bytes and let go; one that reads gets everything', async () => {
  const app = fastify()
  const frame = `data: ${'x'.repeat(1024 * 1024)}\n\n`
  const framesCount = 64
  /** What each stream has pulled, and whether it was ended. */
  const pulled = { stalls: 0, reads: 0 }
  const ended = new Set<string>()
  app.get<{ Params: { who: 'stalls' | 'reads' } }>('/:who', (request, reply) => {
    const { who } = request.params
    return sendEvents(request, reply, { windowMs: 20_000, until: [], stallMs: 500 }, async function* () {
      try {
        while (pulled[who] < framesCount) {
          pulled[who] += 1
          yield await Promise.resolve(frame)
        }
      } finally {
        ended.add(who)
      }
    })
  })
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const open = (who: string): Socket => {
    const socket = connect(Number(url.port), url.hostname)
    socket.write(`GET /${who} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`)
    return socket
  }
  const stalled = open('stalls').pause()
  const reader = open('reads')
  let bytes = 0
  reader.on('data', (chunk: Buffer) => (bytes += chunk.length))
  await once(reader, 'close')
  expect(bytes).toBeGreaterThan(framesCount * frame.length)
  await expect.poll(() => ended.has('stalls'), { timeout: 10_000 }).toBe(true)
  // The kernel's buffers on both ends hold some megabytes; this process two frames.
  expect(pulled.stalls).toBeLessThan(framesCount / 2)
  expect(ended).toEqual(new Set(['reads', 'stalls']))
  stalled.destroy()
  await app.close()
})
