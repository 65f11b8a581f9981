/**
 * The one door to a database: PostgreSQL, or the embedded one (PGlite). Owns what both share: the pool's settings, row
 * validation, the shape of a wake-up. Not the drivers (drivers/postgres.ts, drivers/pglite.ts), not the schema (migrate.ts).
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import {
  createPool,
  type ClientConfigurationInput,
  type DatabasePool,
  type Interceptor,
  type QuerySqlToken,
} from 'slonik'
import { Admission, admissionQueue, admissionWaitMs, admitted } from './admission.ts'
import type { Backend } from './drivers/backend.ts'
import type { Flight } from './drivers/flight.ts'
import type { Connection, Pool, PoolState } from './connection.ts'
import { openPglite } from './drivers/pglite.ts'
import type { PgliteServer } from './drivers/pglite-server.ts'
import { openPostgres } from './drivers/postgres.ts'
import { validRow } from './rows.ts'
import { transactionsOf } from './transactions.ts'

export type Profile =
  | { readonly kind: 'postgresql'; readonly url: string; readonly maxConnections?: number }
  | {
      readonly kind: 'pglite'
      /** Absent: in memory. The caller holds the directory's lock (bin/directory-lock.ts): PGlite takes none. */
      readonly dataDir?: string
      /** A dumped data directory (tar) to start from. */
      readonly template?: Uint8Array
    }
  | {
      readonly kind: 'pglite'
      /** One that was started before, and goes on after `close`. It has one session, and so one `Database` at a time. */
      readonly running: PgliteServer
    }

export interface Database extends Pick<
  Backend,
  'profile' | 'hearsOthers' | 'listen' | 'notify' | 'housekeep' | 'raw' | 'lost' | 'fly' | 'close'
> {
  readonly pool: Pool
  /**
   * Past Slonik, for the few statements that every request waits for, and for claims and renewals: each a transaction of its own, its text
   * independent of its values. A tenth of a millisecond less each than by the pool, and nobody waits for a connection; who asks sees to it
   * that few are under way (actors/gathering.ts; a claim of each kind, and one renewal).
   */
  readonly direct: Pick<Connection, 'any'>
}

const IDLE_CONNECTION_MS = 60_000
const CONNECT_TIMEOUT_MS = 5_000
const CLOSE_TIMEOUT_MS = 5_000
const CLOSE_LOOK_MS = 5

/** Rows are checked against their query's schema, and the checked row is what the caller gets (rows.ts). */
const validation: Interceptor = {
  name: 'row-validation',
  transformRow: ({ resultParser }, query, row) =>
    validRow({ sql: query.sql, ...(resultParser && { parser: resultParser }) }, row) as typeof row,
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

  /** What the backend has let in, it waits for by itself. */
  async fly<T>(backend: Backend, work: (flight: Flight) => Promise<T>): Promise<T> {
    if (this.#closed) throw new DatabaseClosed()
    return backend.fly(work)
  }

  async ask<S extends StandardSchemaV1>(backend: Backend, statement: QuerySqlToken<S>) {
    if (this.#closed) throw new DatabaseClosed()
    return backend.ask(statement)
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

/** Who waits does so at the door: as many are let in as there are connections, so that hardly anybody waits behind it. */
function stateOf(pool: DatabasePool, { waiting }: Admission): PoolState {
  const { acquiredConnections, idleConnections, waitingClients } = pool.state()
  return { acquiredConnections, idleConnections, waitingClients: waiting + waitingClients }
}

/** `via` stands between the pool and its driver: the fault suite loses acknowledgements there (test/chaos). */
export async function openDatabase(
  profile: Profile,
  via: (backend: Backend) => Backend = (backend) => backend,
): Promise<Database> {
  const backend = via(profile.kind === 'postgresql' ? await openPostgres(profile) : await openPglite(profile))
  const gate = new Gate()
  const pool = await createPool(profile.kind === 'postgresql' ? profile.url : 'postgres://', settingsFor(backend, gate))
  const admission = new Admission({
    places: backend.maxConnections,
    waitMs: admissionWaitMs,
    queue: admissionQueue,
  })
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
    hearsOthers: backend.hearsOthers,
    pool: admitted({ ...pool, transaction: transactionsOf(pool), state: () => stateOf(pool, admission) }, admission),
    listen: backend.listen,
    notify: backend.notify,
    housekeep: backend.housekeep,
    raw: backend.raw,
    lost: backend.lost,
    fly: (work) => gate.fly(backend, work),
    direct: { any: (statement) => gate.ask(backend, statement) },
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
    queryRetryLimit: 0,
    // Not `DISCARD ALL`: it costs a round trip per checkout and drops prepared statements. What a session
    // remembers of ours is one setting, read in the exchange that wrote it (presumptions.ts).
    resetConnection: () => Promise.resolve(),
    typeParsers: [],
    interceptors: [gate.interceptor, validation],
  }
}
