/**
 * Many browsers in one process of their own: event streams held open on raw sockets, and when each heard of a change. A
 * child process, so that reading does not cost the console's time.
 */
import { connect, type Socket } from 'node:net'
import { answerParent } from './child.ts'
import { sharedClock } from './figures.ts'

const request = (host: string): string =>
  `GET /api/tasks/events HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`

interface Watcher {
  readonly socket: Socket
  readonly ready: Promise<void>
  /** When it first heard of a change since `forget`; null: not yet. */
  heardMs: number | null
}

let watchers: Watcher[] = []
/** So many connect at once: a listening socket's backlog is 511. */
const connectsAtOnce = 100

function open(origin: string): Watcher {
  const { hostname, port, host } = new URL(origin)
  const socket = connect(Number(port), hostname)
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
  const watcher: Watcher = { socket, ready, heardMs: null }
  socket.setEncoding('latin1')
  socket.once('connect', () => socket.write(request(host)))
  // A line that breaks before it is ready fails the bench; one that breaks later is missing among those who heard.
  socket.on('error', reject)
  socket.on('data', (text: string) => {
    if (text.includes('event: ready')) resolve()
    if (text.includes('event: freshness')) watcher.heardMs ??= sharedClock()
  })
  return watcher
}

const methods = {
  open: async ({ origin, count }: { origin: string; count: number }) => {
    for (let made = 0; made < count; made += connectsAtOnce) {
      const some = Array.from({ length: Math.min(connectsAtOnce, count - made) }, () => open(origin))
      watchers.push(...some)
      await Promise.all(some.map(({ ready }) => ready))
    }
  },
  forget: (_: null) => {
    for (const watcher of watchers) watcher.heardMs = null
  },
  /** Of those who heard. */
  heard: (_: null) => watchers.flatMap(({ heardMs }) => (heardMs === null ? [] : [heardMs])),
  close: (_: null) => {
    for (const { socket } of watchers) socket.destroy()
    watchers = []
  },
}
export type WatcherMethods = typeof methods

answerParent(methods, () => undefined)
