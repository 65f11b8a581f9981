/** What asks a database: a pool, a connection, a transaction. Only shapes; the door that hands them out is database.ts. */
import type { CommonQueryMethods, QuerySqlToken } from 'slonik'

/** What runs inside one transaction: one of the pool's (transactions.ts), or a flight of the loop (drivers/flight.ts). */
export interface Transaction extends Pick<Connection, 'any' | 'maybeOne' | 'one'> {
  /** For a statement whose rows nobody reads. */
  readonly query: (statement: QuerySqlToken) => Promise<unknown>
}
/** A pool or a connection of Slonik's: whatever runs a query. */
export type Connection = Omit<CommonQueryMethods, 'transaction'>
export interface Pool extends Connection {
  readonly state: () => PoolState
  /** Commits what `work` did, and undoes it when it throws. `work` asks nobody but its connection, and begins no other. */
  readonly transaction: <T>(work: (tx: Connection) => Promise<T>) => Promise<T>
}
/** Connections of a pool, and how many callers wait for one. */
export interface PoolState {
  readonly acquiredConnections: number
  readonly idleConnections: number
  readonly waitingClients: number
}
