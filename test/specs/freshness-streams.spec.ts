/**
 * Many open event streams on one process: everybody who reads hears of a change, whoever does not read costs a bounded
 * number of bytes and is let go, and whoever leaves, politely or not, leaves nothing behind. 200 in the suite, and in the long
 * pass 2,000, of as many people as that takes by the product's own limits.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { sendEvents } from '../../http/event-stream.ts'
import { rateLimits } from '../../actors/rate-counter.ts'
import { startConsole, type TestConsole } from '../support/console.ts'
import { heldBytes } from '../support/held-memory.ts'
import { isLong, sized } from '../support/pass.ts'

const clientsCount = sized(200, 2_000)
/** Opening is a read: in the worst case a window of a minute sees half of all streams open twice. */
const peopleCount = Math.ceil(clientsCount / (rateLimits.read / 2))
/** A listening socket's backlog is 511. */
const connectsAtOnce = 100
/** A stream lives for 55 s, and its client has ten more to take what it was sent. */
const lifeMs = 70_000
/** What a process that has done much keeps; 2,000 streams of 20 KB are more. */
const keptBytes = 24 * 1024 * 1024
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

async function watch(url: string, does: Watcher['does'], person: number): Promise<Watcher> {
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
  socket.write(`GET /api/tasks/events HTTP/1.1\r\nHost: ${host}\r\nx-person: ${person}\r\n\r\n`)
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

/** Streams are of people who say who they are; what changes is changed by the administrator. */
const startHouse = (): Promise<TestConsole> =>
  startConsole({
    database: 'postgresql',
    system: { works: false },
    identify: (administrator, { headers: { 'x-person': person } }) =>
      person === undefined ? administrator : { ...administrator, userId: `person ${String(person)}` },
  })

async function watchAll(url: string): Promise<Watcher[]> {
  const random = seeded(seed)
  const pick = (): Watcher['does'] => (random() < 0.6 ? 'read' : random() < 0.5 ? 'stall' : 'reset')
  const watchers: Watcher[] = []
  while (watchers.length < clientsCount) {
    const left = Math.min(connectsAtOnce, clientsCount - watchers.length)
    watchers.push(...(await Promise.all(Array.from({ length: left }, (_, i) => watch(url, pick(), i % peopleCount)))))
  }
  return watchers
}

test(`${clientsCount} streams, some that do not read and some that break: readers hear of each change, nothing stays`, async () => {
  const house = await startHouse()
  const { changes } = house.system
  const before = changes.listeners
  const held = heldBytes()
  const watchers = await watchAll(house.url)
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

  for (const { socket } of readers) socket.destroy()
  const stalled = watchers.filter(({ does }) => does === 'stall')
  // Whoever neither reads nor leaves is dropped when a stream's time is up, which the suite does not wait for.
  if (!isLong) for (const { socket } of stalled) socket.destroy()
  await expect.poll(() => changes.listeners, { timeout: isLong ? lifeMs : 5_000 }).toBe(before)
  for (const { socket } of stalled) socket.destroy()
  watchers.length = readers.length = broken.length = stalled.length = 0
  await expect.poll(() => heldBytes() - held, { timeout: 20_000, interval: 250 }).toBeLessThan(keptBytes)
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
