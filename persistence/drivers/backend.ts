/** What a driver must offer: the part of a database that PostgreSQL and the embedded one do differently. And their limits. */
import type pg from 'pg'
import type { DriverFactory } from 'slonik'
import type { Connection } from '../connection.ts'
import type { Flight } from './flight.ts'

/** Enough of a node-postgres client for the migrator: several statements in one text, no Slonik. */
export type RawClient = Pick<pg.ClientBase, 'query'>

/** Where a wake-up came from: whoever said it here knows already what it is about. */
export type Heard = (from: 'here' | 'elsewhere') => void

export interface Backend {
  readonly profile: 'postgresql' | 'pglite'
  readonly driverFactory: DriverFactory
  readonly maxConnections: number
  /** Whether wake-ups of other processes arrive; behind a pooler they do not, and are found by looking. */
  readonly hearsOthers: boolean
  /**
   * Hears wake-ups on a channel: from this process at once, from other processes on PostgreSQL. They carry nothing and
   * may be lost or repeated: polling stays the truth. Resolves to the way to stop hearing.
   */
  readonly listen: (channel: string, heard: Heard) => Promise<() => Promise<void>>
  /** Call after the commit. At most one wake-up per channel and 20 ms leaves this process. */
  readonly notify: (channel: string) => Promise<void>
  /** Embedded only: CHECKPOINT by volume and time, VACUUM and ANALYZE of what is due. Call it every minute; nothing on PostgreSQL. */
  readonly housekeep: () => Promise<void>
  /** One transaction of the loop, on a connection that waits for nobody else (flight.ts). Not to be nested. */
  readonly fly: <T>(work: (flight: Flight) => Promise<T>) => Promise<T>
  /** The rows of one statement that is a transaction of its own, on a connection like a flight's. */
  readonly ask: Connection['any']
  /**
   * A plain client of one's own: a fresh connection on PostgreSQL, the whole database on the embedded one. `broken` aborts when
   * the connection ends by itself, also while nothing is asked.
   */
  readonly raw: <T>(work: (client: RawClient, broken: AbortSignal) => Promise<T>) => Promise<T>
  /** Aborts when this database can't come back in this process (the embedded one's thread died): exit then. */
  readonly lost: AbortSignal
  /** For a `Database`: waits for running queries, then frees everything. Repeatable. */
  readonly close: () => Promise<void>
}

/** A statement that runs this long is stuck, not slow: the longest legitimate one (a page of history) takes tens of ms. */
export const STATEMENT_TIMEOUT_MS = 30_000
/** No transaction of ours waits for the network or a person, so one that idles has lost its process. */
export const IDLE_TRANSACTION_TIMEOUT_MS = 30_000
/**
 * What a flight waits for a row that somebody else has: a commit of ours has one for tens of ms, or a second where it is large. Who
 * has it longer does not move (a session of an operator's, a process that stands still), and others wait in the same flight.
 */
export const LOCK_TIMEOUT_MS = 3_000
/** Wake-ups that fall into one window are one; the first of a burst goes at once. Each costs a statement here and a look elsewhere. */
export const WAKE_UP_WINDOW_MS = 20
