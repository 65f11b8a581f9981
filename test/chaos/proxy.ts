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
  const network = new Network(target)
  const server = createServer({ allowHalfOpen: true }, (near) => network.join(near))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get open() {
      return network.pairs.size
    },
    get commitsLost() {
      return network.losses.done
    },
    turn: (weather) => network.turn(weather),
    reset: () => network.reset(),
    halfOpen: () => network.halfOpen(),
    loseCommits(count, delivered = true) {
      network.losses = { ...network.losses, left: count, delivered }
    },
    async close() {
      server.close()
      network.close()
      await once(server, 'close')
    },
  }
}

class Network {
  readonly pairs = new Set<Pair>()
  losses = { left: 0, delivered: true, done: 0 }
  weather = fair
  readonly #target: { readonly host: string; readonly port: number }
  readonly #nears = new Set<Socket>()
  #changed = Promise.withResolvers<void>()

  constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target
  }

  join(near: Socket): void {
    near.on('error', () => near.destroy())
    this.#nears.add(near)
    near.on('close', () => this.#nears.delete(near))
    if (this.weather.refusing) return void near.resetAndDestroy()
    const far = connect({ ...this.#target, allowHalfOpen: true })
    const pair: Pair = { near, far, commits: new CommitWatch(), losing: false, swallowing: false }
    this.pairs.add(pair)
    const end = (): void => {
      this.pairs.delete(pair)
      if (!pair.swallowing) near.destroy()
      far.destroy()
    }
    far.on('error', end)
    near.on('close', end)
    far.on('close', end)
    void this.#pump(near, far, (chunk) => this.#said(pair, chunk)).catch(end)
    void this.#pump(far, near, () => this.#answered(pair)).catch(end)
  }

  #said(pair: Pair, chunk: Buffer): 'pass' | 'drop' {
    if (pair.swallowing) return 'drop'
    if (!pair.commits.hears(chunk) || this.losses.left === 0) return 'pass'
    const { left, done, delivered } = this.losses
    this.losses = { left: left - 1, done: done + 1, delivered }
    if (delivered) pair.losing = true
    else sever(pair)
    return delivered ? 'pass' : 'drop'
  }

  #answered(pair: Pair): 'pass' | 'drop' {
    if (pair.losing) sever(pair)
    return pair.losing || pair.swallowing ? 'drop' : 'pass'
  }

  turn(next: Partial<Weather>): void {
    this.weather = { ...this.weather, ...next }
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  reset(): number {
    const { size } = this.pairs
    for (const pair of this.pairs) sever(pair)
    return size
  }

  halfOpen(): void {
    for (const pair of this.pairs) {
      pair.swallowing = true
      pair.far.destroy()
    }
  }

  close(): void {
    for (const near of this.#nears) near.destroy()
    for (const { far } of this.pairs) far.destroy()
    // Whoever still waits in a black hole goes on, and finds its sockets closed.
    this.turn(fair)
  }

  /** One direction, in order and with back-pressure. Rejects when either side breaks. */
  async #pump(from: Socket, to: Socket, judge: (chunk: Buffer) => 'pass' | 'drop'): Promise<void> {
    // Reading to the end must not close what is still to be written the other way.
    for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      await this.#passTime(chunk.length)
      if (judge(chunk) === 'drop') continue
      const { sliceBytes } = this.weather
      for (let at = 0; at < chunk.length; at += sliceBytes) {
        const slice = sliceBytes === Infinity ? chunk : chunk.subarray(at, at + sliceBytes)
        if (!to.write(slice)) await Promise.race([once(to, 'drain'), once(to, 'close')])
        // A turn of the event loop keeps the kernel from joining the slices.
        if (slice !== chunk) await new Promise((resolve) => setImmediate(resolve))
      }
    }
    to.end()
  }

  async #passTime(bytes: number): Promise<void> {
    const { latencyMs, bytesPerSecond } = this.weather
    const ms = latencyMs + (bytes / bytesPerSecond) * 1000
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
    while (this.weather.stalled) await this.#changed.promise
  }
}

function sever({ near, far }: Pair): void {
  near.resetAndDestroy()
  far.resetAndDestroy()
}
