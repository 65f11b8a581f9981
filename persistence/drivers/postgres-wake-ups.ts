/**
 * Wake-ups between processes over PostgreSQL's LISTEN and NOTIFY: one connection of its own, opened by the first use
 * and reopened with growing pauses until closed. While it is away wake-ups are lost, which costs time, not truth. Behind a
 * pooler LISTEN would land on whichever server is free and stay there for nobody, so it is not asked; NOTIFY is.
 */
import pg from 'pg'
import type { Heard } from './backend.ts'
import { hangUp } from './hang-up.ts'
import type { Route } from './pooler.ts'
import { isConnectionFailure } from './sqlstate.ts'
import { WakeUps } from './wake-ups.ts'

const RECONNECT_FIRST_MS = 250
const RECONNECT_MAX_MS = 30_000
/** Nothing that is asked here takes longer than a round trip. */
const ANSWER_LIMIT_MS = 10_000

interface Line {
  readonly client: pg.Client
  /** Settles when the connection has ended, for whatever reason. */
  readonly gone: Promise<void>
}

export class PostgresWakeUps {
  readonly #newClient: (limits: pg.ClientConfig) => pg.Client
  readonly #route: Route
  readonly #local = new WakeUps((channel) => this.#send(channel))
  readonly #closed = new AbortController()
  #line: Line | undefined
  #opening: Promise<void> | undefined
  #asked: Promise<unknown> = Promise.resolve()
  /** Channels whose wake-up waits for its turn: whatever is committed meanwhile goes with it, so a slow line holds no queue. */
  readonly #waiting = new Set<string>()
  #kept: Promise<void> = Promise.resolve()

  constructor(newClient: (limits: pg.ClientConfig) => pg.Client, route: Route) {
    this.#newClient = newClient
    this.#route = route
  }

  async listen(channel: string, heard: Heard): Promise<() => Promise<void>> {
    const known = this.#local.has(channel)
    const remove = this.#local.add(channel, heard)
    if (this.#route.isPooled) return () => Promise.resolve(remove())
    try {
      await this.#opened()
      if (!known) await this.#ask(`listen ${pg.escapeIdentifier(channel)}`)
    } catch (error) {
      remove()
      throw error
    }
    return async () => {
      remove()
      if (!this.#local.has(channel)) await this.#ask(`unlisten ${pg.escapeIdentifier(channel)}`)
    }
  }

  notify(channel: string): Promise<void> {
    return this.#local.notify(channel)
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#opening?.catch(() => undefined)
    if (this.#line) await hangUp(this.#line.client)
    await this.#kept
  }

  async #send(channel: string): Promise<void> {
    if (this.#closed.signal.aborted || this.#waiting.has(channel)) return
    this.#waiting.add(channel)
    try {
      await this.#opened()
    } catch (error) {
      this.#waiting.delete(channel)
      throw error
    }
    // A wake-up holds nothing worth waiting for the disk: its commit need not, and a lost one costs a pause.
    const text = `set local synchronous_commit = off; select pg_notify(${pg.escapeLiteral(channel)}, '')`
    await this.#ask(text, () => this.#waiting.delete(channel))
  }

  /** Between two connections there is nobody to ask, and the next one listens to every channel anyway. */
  #ask(text: string, begun: () => void = () => undefined): Promise<void> {
    // One statement after the other: node-postgres will not queue them for us for ever.
    const asked = this.#asked.then(async () => {
      begun()
      const line = this.#line
      try {
        await line?.client.query(text)
      } catch (error) {
        if (error instanceof pg.DatabaseError && !isConnectionFailure(error)) throw error
        // A line that answers nothing is given up, so that the next one is heard.
        if (line) void hangUp(line.client)
      }
    })
    // Who asked learns of a failure; the next question only waits for its turn.
    this.#asked = asked.catch(() => undefined)
    return asked
  }

  #opened(): Promise<void> {
    this.#opening ??= this.#connect().then(
      (line) => {
        this.#line = line
        this.#kept = this.#keep(line)
      },
      (error: unknown) => {
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }

  async #connect(): Promise<Line> {
    const client = this.#newClient({ query_timeout: ANSWER_LIMIT_MS })
    const gone = new Promise<void>((resolve) => client.once('end', resolve))
    // The loss of the connection is seen by its 'end'; without a listener this event would end the process.
    client.on('error', () => {})
    await client.connect()
    try {
      await this.#hear(client)
    } catch (error) {
      // A server that is there and lets nobody listen, as before its promotion, would keep the connection of every attempt.
      await hangUp(client)
      throw error
    }
    return { client, gone }
  }

  async #hear(client: pg.Client): Promise<void> {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const own = rows[0]?.pid
    client.on('notification', ({ channel, processId }) => {
      // This process's listeners heard their own wake-up before it was sent.
      if (processId !== own) this.#local.ring(channel, 'elsewhere')
    })
    const heard = this.#route.isPooled ? [] : this.#local.channels()
    for (const channel of heard) await client.query(`listen ${pg.escapeIdentifier(channel)}`)
  }

  /** Ends only when closed: a console without wake-ups still works, by polling, so this never gives up; its pauses grow. */
  async #keep(first: Line): Promise<void> {
    let line: Line | undefined = first
    let pauseMs = RECONNECT_FIRST_MS
    while (!this.#closed.signal.aborted) {
      if (line) {
        await line.gone
        this.#line = undefined
      }
      if (!(await paused(pauseMs, this.#closed.signal))) return
      pauseMs = line ? RECONNECT_FIRST_MS : Math.min(pauseMs * 2, RECONNECT_MAX_MS)
      line = await this.#reconnect()
    }
    if (line) await hangUp(line.client)
  }

  async #reconnect(): Promise<Line | undefined> {
    try {
      const line = await this.#connect()
      this.#line = line
      // Whatever was said while nobody listened is lost: everybody looks again.
      for (const channel of this.#local.channels()) this.#local.ring(channel, 'elsewhere')
      return line
    } catch (error) {
      // An absent server, a server that is starting, a host that can't be resolved: the next round tries again.
      if (error instanceof Error) return undefined
      throw error
    }
  }
}

/** False when the signal ended the pause. Doesn't keep the process alive. */
function paused(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const stop = (): void => {
      clearTimeout(timer)
      resolve(false)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve(true)
    }, ms).unref()
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
