/**
 * Connections for flights on PostgreSQL: kept apart from Slonik's pool, so that commits never queue behind reads. A line
 * that met anything but a server's report is not used again. Does not know what flies (flight.ts).
 */
import pg from 'pg'
import { fly, type Flight } from './flight.ts'
import { namedError } from './sqlstate.ts'
import { Prepared, StatementGroup, type GroupedStatement } from './statement-group.ts'

/** Idle lines beyond these are closed: the loop has two flights under way at most (actors/runtime.ts). */
const keptLimit = 2
/** A line that is this old is replaced: what a server keeps for a session grows with it. */
const ageLimitMs = 30 * 60_000

interface FlightOptions {
  readonly types: pg.CustomTypesConfig
  /** Whether a name prepared on a line is there in the next transaction: not behind every pooler. */
  readonly carriesNames: boolean
  /** Settings of each transaction, where a line cannot carry them. */
  readonly prologue: readonly string[]
}

interface Line {
  readonly client: pg.Client
  readonly prepared: Prepared
  readonly bornAt: number
  broken: boolean
}

function send(line: Line, statements: readonly GroupedStatement[]): void {
  const group = new StatementGroup(statements, line.prepared)
  // A server's report ends a group; anything else leaves the line in nobody knows what state. Hung up, it keeps nobody who
  // would undo on it waiting for a second time limit.
  group.callback = (error) => {
    if (!error || error instanceof pg.DatabaseError) return
    line.broken = true
    void line.client.end()
  }
  line.client.query(group)
}

export class PostgresFlights {
  readonly #newClient: () => pg.Client
  readonly #options: FlightOptions
  readonly #idle: Line[] = []
  readonly #flying = new Set<Promise<unknown>>()
  #closed = false

  constructor(newClient: () => pg.Client, options: FlightOptions) {
    this.#newClient = newClient
    this.#options = options
  }

  async fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
    const flying = this.#fly(work)
    this.#flying.add(flying)
    try {
      return await flying
    } finally {
      this.#flying.delete(flying)
    }
  }

  async #fly<T>(work: (flight: Flight) => Promise<T>): Promise<T> {
    const line = this.#take() ?? (await this.#connect())
    const { prologue } = this.#options
    try {
      return await fly({ send: (statements) => send(line, statements), prologue }, work)
    } finally {
      this.#give(line)
    }
  }

  #take(): Line | undefined {
    for (let line = this.#idle.pop(); line; line = this.#idle.pop()) {
      if (!line.broken && performance.now() - line.bornAt < ageLimitMs) return line
      void line.client.end()
    }
    return undefined
  }

  async #connect(): Promise<Line> {
    const client = this.#newClient()
    const { types, carriesNames } = this.#options
    const line: Line = { client, prepared: new Prepared(types, carriesNames), bornAt: performance.now(), broken: false }
    const broken = (): void => {
      line.broken = true
    }
    client.on('error', broken)
    client.on('end', broken)
    try {
      await client.connect()
    } catch (error) {
      throw namedError(error, undefined)
    }
    return line
  }

  #give(line: Line): void {
    const reusable = !this.#closed && !line.broken && this.#idle.length < keptLimit
    if (reusable && line.client.getTransactionStatus() === 'I') this.#idle.push(line)
    else void line.client.end()
  }

  /** Waits for flights under way, then hangs up. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#flying)
    await Promise.all(this.#idle.splice(0).map(({ client }) => client.end()))
  }
}
