/**
 * A TCP proxy that behaves like a bad network, switchable while it runs: latency, bandwidth, slicing, black hole, half-open
 * connections, resets, refusals, and one fault that only a database knows: the connection that ends between a commit and its
 * acknowledgement. Owns its sockets. Does not know who talks through it, but for that one fault (pg-wire.ts).
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { CommitWatch } from './pg-wire.ts'

export interface Weather {
  /** Before each chunk, in each direction. */
  readonly latencyMs: number
  readonly bytesPerSecond: number
  /** The most bytes that are written at once. */
  readonly sliceBytes: number
  /** A black hole: nothing passes and nothing is closed. What was said waits until the weather changes. */
  readonly stalled: boolean
  /** New connections are reset. */
  readonly refusing: boolean
}

export const fair: Weather = {
  latencyMs: 0,
  bytesPerSecond: Infinity,
  sliceBytes: Infinity,
  stalled: false,
  refusing: false,
}

export interface Proxy {
  readonly port: number
  /** Connections that stand. */
  readonly open: number
  /** Takes effect at once, for connections that stand, too. */
  turn(weather: Partial<Weather>): void
  /** Resets (RST) every connection that stands; returns how many. */
  reset(): number
  /** The far side is gone and the near side is never told: what it says from now on is swallowed. */
  halfOpen(): void
  /**
   * The server executes the next `count` COMMITs of PostgreSQL clients, and their connections are reset when it answers. With
   * `delivered` false the COMMIT itself is lost.
   */
  loseCommits(count: number, delivered?: boolean): void
  /** How many commits were lost so far. */
  readonly commitsLost: number
  close(): Promise<void>
}

interface Pair {
  readonly near: Socket
  readonly far: Socket
  readonly commits: CommitWatch
  /** The next bytes of the server are the acknowledgement that nobody shall see. */
  losing: boolean
  swallowing: boolean
}

export async function startProxy(target: { readonly host: string; readonly port: number }): Promise<Proxy> {
  const pairs = new Set<Pair>()
  const nears = new Set<Socket>()
  let weather = fair
  let changed = Promise.withResolvers<void>()
  let losses = { left: 0, delivered: true, done: 0 }

  const sky = {
    get now(): Weather {
      return weather
    },
    change: (): Promise<void> => changed.promise,
  }
  const server = createServer({ allowHalfOpen: true }, (near) => {
    near.on('error', () => near.destroy())
    nears.add(near)
    near.on('close', () => nears.delete(near))
    if (weather.refusing) return void near.resetAndDestroy()
    const far = connect({ ...target, allowHalfOpen: true })
    const pair: Pair = { near, far, commits: new CommitWatch(), losing: false, swallowing: false }
    pairs.add(pair)
    const end = (): void => {
      pairs.delete(pair)
      if (!pair.swallowing) near.destroy()
      far.destroy()
    }
    far.on('error', end)
    near.on('close', end)
    far.on('close', end)
    const say = (chunk: Buffer): 'pass' | 'drop' => {
      if (pair.swallowing) return 'drop'
      if (!pair.commits.hears(chunk) || losses.left === 0) return 'pass'
      losses = { ...losses, left: losses.left - 1, done: losses.done + 1 }
      if (losses.delivered) pair.losing = true
      else sever(pair)
      return losses.delivered ? 'pass' : 'drop'
    }
    const answer = (): 'pass' | 'drop' => {
      if (pair.losing) sever(pair)
      return pair.losing || pair.swallowing ? 'drop' : 'pass'
    }
    void Promise.all([pump(near, far, sky, say).catch(end), pump(far, near, sky, answer).catch(end)])
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get open() {
      return pairs.size
    },
    get commitsLost() {
      return losses.done
    },
    turn(next) {
      weather = { ...weather, ...next }
      changed.resolve()
      changed = Promise.withResolvers()
    },
    reset() {
      const { size } = pairs
      for (const pair of pairs) sever(pair)
      return size
    },
    halfOpen() {
      for (const pair of pairs) {
        pair.swallowing = true
        pair.far.destroy()
      }
    },
    loseCommits(count, delivered = true) {
      losses = { ...losses, left: count, delivered }
    },
    async close() {
      server.close()
      for (const near of nears) near.destroy()
      for (const { far } of pairs) far.destroy()
      changed.resolve()
      await once(server, 'close')
    },
  }
}

function sever({ near, far }: Pair): void {
  near.resetAndDestroy()
  far.resetAndDestroy()
}

interface Sky {
  readonly now: Weather
  change(): Promise<void>
}

/** One direction, in order and with back-pressure. Rejects when either side breaks. */
async function pump(from: Socket, to: Socket, sky: Sky, judge: (chunk: Buffer) => 'pass' | 'drop'): Promise<void> {
  // Reading to the end must not close what is still to be written the other way.
  for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    await passTime(sky, chunk.length)
    if (judge(chunk) === 'drop') continue
    for (let at = 0; at < chunk.length; at += sky.now.sliceBytes) {
      const slice = sky.now.sliceBytes === Infinity ? chunk : chunk.subarray(at, at + sky.now.sliceBytes)
      if (!to.write(slice)) await Promise.race([once(to, 'drain'), once(to, 'close')])
      // A turn of the event loop keeps the kernel from joining the slices.
      if (slice !== chunk) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  to.end()
}

async function passTime(sky: Sky, bytes: number): Promise<void> {
  const { latencyMs, bytesPerSecond } = sky.now
  const ms = latencyMs + (bytes / bytesPerSecond) * 1000
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
  while (sky.now.stalled) await sky.change()
}
