/**
 * Connections for flights on PostgreSQL: kept apart from Slonik's pool, so that commits, claims and renewals never queue behind
 * reads. A line that met anything but a server's report, or found that its server only reads, is not used again. Does not know what flies (flight.ts).
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type pg from 'pg'
import type { QuerySqlToken } from 'slonik'
import { ask, fly, type Flight, type FlightLine } from './flight.ts'
import { GroupLine } from './group-line.ts'
import { hangUp } from './hang-up.ts'
import { connectionError, isOfReader } from './sqlstate.ts'
import { Prepared } from './statement-group.ts'

/**
 * Idle lines beyond these are closed: the loop has four flights under way at most (actors/loop/runtime.ts), each of the two questions that
 * every request asks two statements (actors/gathering.ts), and claims and renewals are short.
 */
const keptLimit = 10
/** A line that is this old is replaced: what a server keeps for a session grows with it. */
const ageLimitMs = 30 * 60_000
/** How long closing waits for flights: whoever drained has none, and one that hangs must not keep a process. */
const landingMs = 5_000

interface FlightOptions {
  readonly types: pg.CustomTypesConfig
  /** Whether a name prepared on a line is there in the next transaction: not behind every pooler. */
  readonly carriesNames: boolean
  /** Settings of each transaction, where a line cannot carry them. */
  readonly prologue: readonly string[]
}

interface Line {
  readonly client: pg.Client
  readonly groups: GroupLine
  readonly bornAt: number
  broken: boolean
}

export class PostgresFlights {
  readonly #newClient: () => pg.Client
  readonly #options: FlightOptions
  readonly #idle: Line[] = []
  /** Every line that was opened and did not end yet. */
  readonly #lines = new Set<Line>()
  readonly #flying = new Set<Promise<unknown>>()
  #closed = false

  constructor(newClient: () => pg.Client, options: FlightOptions) {
    this.#newClient = newClient
    this.#options = options
  }

  fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
    return this.#aboard((line) => fly(line, work))
  }

  ask<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    return this.#aboard((line) => ask(line, statement))
  }

  async #aboard<T>(work: (line: FlightLine) => Promise<T>): Promise<T> {
    const flying = this.#onLine(work)
    this.#flying.add(flying)
    try {
      return await flying
    } finally {
      this.#flying.delete(flying)
    }
  }

  async #onLine<T>(work: (line: FlightLine) => Promise<T>): Promise<T> {
    const line = this.#take() ?? (await this.#connect())
    const { prologue } = this.#options
    try {
      return await work({ send: (statements) => line.groups.send(statements), prologue })
    } catch (error) {
      // Nor is any other of that server, as far as anybody knows.
      if (isOfReader(error)) for (const each of this.#lines) each.broken = true
      throw error
    } finally {
      // The last answer is the flight's end; the server's word that it is ready may come a packet later.
      if (line.groups.isIdle) this.#give(line)
      else void this.#landed(line)
    }
  }

  async #landed(line: Line): Promise<void> {
    const landing = line.groups.idle()
    this.#flying.add(landing)
    await landing
    this.#flying.delete(landing)
    this.#give(line)
  }

  #take(): Line | undefined {
    for (let line = this.#idle.pop(); line; line = this.#idle.pop()) {
      if (!line.broken && performance.now() - line.bornAt < ageLimitMs) return line
      void hangUp(line.client)
    }
    return undefined
  }

  async #connect(): Promise<Line> {
    const client = this.#newClient()
    const { types, carriesNames } = this.#options
    const broken = (): void => {
      line.broken = true
    }
    // Hung up, it keeps nobody who would undo on it waiting for a second time limit.
    const groups = new GroupLine(client, new Prepared(types, carriesNames), () => {
      broken()
      void hangUp(client)
    })
    const line: Line = { client, groups, bornAt: performance.now(), broken: false }
    client.on('error', broken)
    client.on('end', () => {
      broken()
      this.#lines.delete(line)
    })
    try {
      await client.connect()
    } catch (error) {
      throw connectionError(error)
    }
    this.#lines.add(line)
    return line
  }

  #give(line: Line): void {
    const reusable = !this.#closed && !line.broken && this.#idle.length < keptLimit
    if (reusable && line.client.getTransactionStatus() === 'I') this.#idle.push(line)
    else void hangUp(line.client)
  }

  /** Waits for flights under way, but not for ever, then hangs up. */
  async close(): Promise<void> {
    this.#closed = true
    const { promise: late, resolve: giveUp } = Promise.withResolvers<void>()
    const timer = setTimeout(giveUp, landingMs)
    await Promise.race([Promise.allSettled(this.#flying), late])
    clearTimeout(timer)
    await Promise.all([...this.#lines].map(({ client }) => hangUp(client)))
  }
}
