/**
 * The PostgreSQL driver: connections for Slonik's pool, notifications to other processes, and plain clients for
 * the migrator. Statement and idle-in-transaction limits are set per connection, so no server setting is needed; behind a
 * pooler, which has no connection of ours to remember them, they are set with each transaction.
 */
import pg from 'pg'
import { createDriverFactory, type DriverFactory } from 'slonik'
import { IDLE_TRANSACTION_TIMEOUT_MS, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS, type Backend } from './backend.ts'
import { hangUp } from './hang-up.ts'
import { columnTypes, runStatement, runTogether, StatementNames, streamRows } from './node-postgres.ts'
import { routeOf, type Route } from './pooler.ts'
import { PostgresFlights } from './postgres-flights.ts'
import { PostgresWakeUps } from './postgres-wake-ups.ts'
import {
  asOptions,
  asStatements,
  beginReadCommitted,
  sessionSettings,
  startupParameters,
  transactionSettings,
  type Setting,
} from './session-settings.ts'
import { isOfReader, isStalePlan, namedError } from './sqlstate.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** A process that starts loads its modules meanwhile, on a busy machine for seconds in which it hears nothing. */
const FIRST_CONNECT_TIMEOUT_MS = 20_000
const DEFAULT_CONNECTIONS = 10
/** Slonik retires connections by age (30 minutes) by destroying them; a kept one must not outlive that. */
const CONNECTION_AGE_MS = 30 * 60_000
/** How long a healthy connection waits for its next use after Slonik let go of it. */
const KEEP_MS = 1_000

/** How connections are reached, and what a session of ours is told. */
interface Sessions {
  readonly url: string
  readonly route: Route
  readonly settings: readonly Setting[]
}

function connectionConfig(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'signalbox',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types: columnTypes,
  }
}

/** What node-postgres says of itself when a connection begins; it takes no other words for it. */
interface Starting {
  getStartupConf: () => Readonly<Record<string, string>>
}

/**
 * A pooler refuses a connection that begins with settings, a few excepted; there they go with each transaction. Elsewhere they go behind
 * whatever an operator says as `options` (a search_path), as node-postgres has read it.
 */
function newClient({ url, route, settings }: Sessions, limits: pg.ClientConfig = {}): pg.Client {
  const client = new pg.Client({ ...connectionConfig(url), ...limits })
  const starting = client as pg.Client & Starting
  const said = starting.getStartupConf.bind(client)
  starting.getStartupConf = () => {
    const theirs = said()
    if (route.isPooled) return { ...theirs, ...startupParameters }
    return { ...theirs, options: [theirs['options'] ?? '', asOptions(settings)].join(' ').trim() }
  }
  return client
}

function limitedClient(sessions: Sessions): pg.Client {
  return newClient(sessions, {
    // The server's own limit needs a server that answers: a line that went dead in silence is given up a little later.
    query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
    ...(!sessions.route.isPooled && {
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    }),
  })
}

/**
 * A server may acknowledge commits that a crash of it takes back (`synchronous_commit = off`): what was accepted would be lost, and
 * what was delivered be delivered again. For us it does not; what a server does beyond `on` stays as it is.
 */
async function settingsFor(client: pg.Client, route: Route): Promise<readonly Setting[]> {
  const told = route.isPooled ? transactionSettings : sessionSettings
  const { rows } = await client.query<{ mode: string }>(`select current_setting('synchronous_commit') as mode`)
  return rows[0]?.mode === 'off' ? [...told, { name: 'synchronous_commit', value: 'on' }] : told
}

/** Behind a pooler they go with each transaction. */
const localLimits = ({ settings }: Sessions): readonly string[] => {
  const limits = [
    { name: 'statement_timeout', value: String(STATEMENT_TIMEOUT_MS) },
    { name: 'idle_in_transaction_session_timeout', value: String(IDLE_TRANSACTION_TIMEOUT_MS) },
  ]
  return asStatements([...limits, ...settings], 'local')
}
/** As Slonik says it. */
const begin = 'START TRANSACTION'

/** One server connection, and what decides whether it may be used again. */
class Wire {
  readonly client: pg.Client
  readonly bornAt = performance.now()
  running = 0
  broken = false
  onError: (error: Error) => void = () => {}

  constructor(sessions: Sessions) {
    this.client = limitedClient(sessions)
    this.client.on('error', (error) => {
      this.broken = true
      this.onError(error)
    })
    this.client.on('end', () => {
      this.broken = true
    })
  }

  /** Idle, outside a transaction, young, and the socket stands. */
  get reusable(): boolean {
    const young = performance.now() - this.bornAt < CONNECTION_AGE_MS
    return !this.broken && this.running === 0 && young && this.client.getTransactionStatus() === 'I'
  }

  async run<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    this.running += 1
    try {
      return await work(this.client)
    } catch (error) {
      // A server's report ends a statement; anything else leaves the line in nobody knows what state.
      if (isStalePlan(error) || isOfReader(error) || !(error instanceof pg.DatabaseError)) this.broken = true
      throw error
    } finally {
      this.running -= 1
    }
  }
}

/**
 * Slonik destroys a connection whenever the work on it throws, also when a refusal merely rolled a transaction back.
 * A new connection costs a fork and a handshake (several ms), so a healthy one is kept a moment for the next use.
 */
class KeptWires {
  readonly #kept = new Map<Wire, NodeJS.Timeout>()
  readonly #max: number
  #closed = false
  constructor(max: number) {
    this.#max = max
  }

  take(): Wire | undefined {
    for (const [wire, timer] of this.#kept) {
      clearTimeout(timer)
      this.#kept.delete(wire)
      if (wire.reusable) return wire
      void hangUp(wire.client)
    }
    return undefined
  }

  async give(wire: Wire): Promise<void> {
    if (this.#closed || !wire.reusable || this.#kept.size >= this.#max) return hangUp(wire.client)
    const timer = setTimeout(() => {
      this.#kept.delete(wire)
      void hangUp(wire.client)
    }, KEEP_MS).unref()
    this.#kept.set(wire, timer)
    return undefined
  }

  async close(): Promise<void> {
    this.#closed = true
    const wires = [...this.#kept]
    this.#kept.clear()
    for (const [, timer] of wires) clearTimeout(timer)
    await Promise.all(wires.map(([wire]) => hangUp(wire.client)))
  }
}

function postgresDriver(sessions: Sessions, kept: KeptWires): DriverFactory {
  const { route } = sessions
  const names = new StatementNames()
  const limitedBegin = [beginReadCommitted, ...localLimits(sessions)].join('; ')
  const run = (client: pg.Client, sql: string, values: readonly unknown[]) =>
    route.isPooled && sql === begin
      ? runTogether(client, limitedBegin)
      : runStatement(client, sql, values, route.carriesNames ? names.nameOf(sql) : undefined)
  return createDriverFactory(() =>
    Promise.resolve({
      createPoolClient: ({ clientEventEmitter }) => {
        const known = kept.take()
        const wire = known ?? new Wire(sessions)
        wire.onError = (error) => void clientEventEmitter.emit('error', namedError(error, undefined))
        return Promise.resolve({
          connect: async () => {
            if (!known) await wire.client.connect()
          },
          end: () => {
            wire.onError = () => {}
            return kept.give(wire)
          },
          query: (sql, values) => wire.run((client) => run(client, sql, values ?? [])),
          stream: (sql, values) => {
            wire.running += 1
            const done = (): Promise<void> => {
              wire.running -= 1
              return Promise.resolve()
            }
            return streamRows(() => Promise.resolve({ client: wire.client, done }), sql, values ?? [])
          },
        })
      },
    }),
  )
}

/** Connects once before it resolves, so that a wrong URL or an absent server is known at the start. */
export async function openPostgres(profile: {
  readonly url: string
  readonly maxConnections?: number
}): Promise<Backend> {
  const maxConnections = profile.maxConnections ?? DEFAULT_CONNECTIONS
  const { url } = profile
  const first = new pg.Client({ ...connectionConfig(url), connectionTimeoutMillis: FIRST_CONNECT_TIMEOUT_MS })
  const sessions: Sessions = await withClient(first, async (client) => {
    const route = await routeOf(client)
    return { url, route, settings: await settingsFor(client, route) }
  })
  const { route } = sessions
  const kept = new KeptWires(maxConnections)
  const wakeUps = new PostgresWakeUps((limits) => newClient(sessions, limits), route)
  const waits = { name: 'lock_timeout', value: String(LOCK_TIMEOUT_MS) }
  const flying: Sessions = { ...sessions, settings: [...sessions.settings, waits] }
  const flights = new PostgresFlights(() => limitedClient(flying), {
    types: columnTypes,
    carriesNames: route.carriesNames,
    prologue: route.isPooled ? localLimits(flying) : [],
  })
  return {
    profile: 'postgresql',
    driverFactory: postgresDriver(sessions, kept),
    maxConnections,
    hearsOthers: !route.isPooled,
    listen: (channel, heard) => wakeUps.listen(channel, heard),
    notify: (channel) => wakeUps.notify(channel),
    housekeep: () => Promise.resolve(),
    fly: (work) => flights.fly(work),
    ask: (statement) => flights.ask(statement),
    raw: (work) => withClient(newClient(sessions), work),
    lost: new AbortController().signal,
    close: async () => {
      await wakeUps.close()
      await flights.close()
      await kept.close()
    },
  }
}

async function withClient<T>(
  client: pg.Client,
  work: (client: pg.Client, broken: AbortSignal) => Promise<T>,
): Promise<T> {
  const broken = new AbortController()
  // Unheard, it would end the process: a line that breaks while it waits for nothing has nobody else to tell.
  client.on('error', (error) => broken.abort(namedError(error, undefined)))
  try {
    await client.connect()
  } catch (error) {
    throw namedError(error, undefined)
  }
  try {
    return await work(client, broken.signal)
  } catch (error) {
    throw error instanceof Error ? namedError(error, undefined) : error
  } finally {
    await hangUp(client)
  }
}
