/**
 * The one door to a database: PostgreSQL, or the embedded one (PGlite). Owns what both share: the pool's settings, row
 * validation, the shape of a wake-up. Not the drivers (postgres.ts, pglite.ts), not the schema (migrate.ts).
 */
import { setTimeout as delay } from 'node:timers/promises'
import {
  createPool,
  SchemaValidationError,
  sql,
  type ClientConfigurationInput,
  type CommonQueryMethods,
  type DatabasePool,
  type DatabaseTransactionConnection,
  type Interceptor,
} from 'slonik'
import type { Backend } from './backend.ts'
import { openPglite } from './pglite.ts'
import { openPostgres } from './postgres.ts'

export type Profile =
  | { readonly kind: 'postgresql'; readonly url: string; readonly maxConnections?: number }
  | {
      readonly kind: 'pglite'
      /** Absent: in memory. The caller holds the directory's lock (bin/directory-lock.ts): PGlite takes none. */
      readonly dataDir?: string
      /** A dumped data directory (tar) to start from. */
      readonly template?: Uint8Array
    }

export type Transaction = DatabaseTransactionConnection
/** A pool, a connection or a transaction: whatever runs a query. */
export type Connection = CommonQueryMethods
export interface Database extends Pick<
  Backend,
  'profile' | 'listen' | 'notify' | 'housekeep' | 'raw' | 'lost' | 'close'
> {
  readonly pool: DatabasePool
}

const IDLE_CONNECTION_MS = 60_000
const CONNECT_TIMEOUT_MS = 5_000
const CLOSE_TIMEOUT_MS = 5_000
const CLOSE_LOOK_MS = 5

/** The parser that Slonik gives to every `sql.unsafe`: one object, so that recognising it costs a comparison. */
const unvalidated = sql.unsafe`select 1`.parser

/**
 * Rows are checked against their query's schema, and the checked row is what the caller gets. A query whose rows need
 * no check (hot, ours, and covered by a test) is written with `sql.unsafe`, which skips this at no cost.
 */
const validation: Interceptor = {
  name: 'row-validation',
  transformRow: (context, query, row) => {
    const schema = context.resultParser
    if (!schema || schema === unvalidated) return row
    const result = schema['~standard'].validate(row)
    if (result instanceof Promise) throw new TypeError('A row schema must be synchronous.')
    // Slonik's error would carry the row and the values, which may be secrets, into the log; the issues name the columns.
    if (result.issues) throw new SchemaValidationError({ sql: query.sql, values: [] }, {}, result.issues)
    return result.value as typeof row
  },
}

export class DatabaseClosed extends Error {
  override readonly name = 'DatabaseClosed'
  constructor() {
    super('The database is closed.')
  }
}

/**
 * Slonik ends a connection between two statements of a transaction. So closing first lets in nothing new and waits for
 * what runs, up to CLOSE_TIMEOUT_MS; only then are connections ended.
 */
class Gate {
  #closed = false
  readonly interceptor: Interceptor = {
    name: 'gate',
    beforePoolConnection: () => {
      if (this.#closed) throw new DatabaseClosed()
      return null
    },
  }

  async close(pool: DatabasePool): Promise<void> {
    this.#closed = true
    const deadline = performance.now() + CLOSE_TIMEOUT_MS
    while (isBusy(pool) && performance.now() < deadline) await delay(CLOSE_LOOK_MS)
  }
}

function isBusy(pool: DatabasePool): boolean {
  const { acquiredConnections, pendingConnections, waitingClients } = pool.state()
  return acquiredConnections + pendingConnections + waitingClients > 0
}

export async function openDatabase(profile: Profile): Promise<Database> {
  const backend: Backend = profile.kind === 'postgresql' ? await openPostgres(profile) : await openPglite(profile)
  const gate = new Gate()
  const pool = await createPool(profile.kind === 'postgresql' ? profile.url : 'postgres://', settingsFor(backend, gate))
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    try {
      await gate.close(pool)
      await pool.end()
    } finally {
      await backend.close()
    }
  }
  return {
    profile: backend.profile,
    pool,
    listen: backend.listen,
    notify: backend.notify,
    housekeep: backend.housekeep,
    raw: backend.raw,
    lost: backend.lost,
    close: () => (closing ??= close()),
  }
}

function settingsFor(backend: Backend, gate: Gate): ClientConfigurationInput {
  return {
    driverFactory: backend.driverFactory,
    maxPoolSize: backend.maxConnections,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    gracefulTerminationTimeout: CLOSE_TIMEOUT_MS,
    idleTimeout: IDLE_CONNECTION_MS,
    // The runtime retries its own steps; a caller that wants Slonik's retry on 40001 and 40P01 passes a limit per transaction.
    transactionRetryLimit: 0,
    queryRetryLimit: 0,
    // Not `DISCARD ALL`: it costs a round trip per checkout and drops prepared statements. No query of ours leaves session state.
    resetConnection: () => Promise.resolve(),
    typeParsers: [],
    interceptors: [gate.interceptor, validation],
  }
}
