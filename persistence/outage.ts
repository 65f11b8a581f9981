/**
 * Which failures are outages: the database went away, is closing, or does not keep up, or the artifact directory fails.
 * They say nothing about what was asked; the lease holder tries again, a caller is told to. Everything else is a refusal or
 * a defect.
 */
import { ConnectionError, IdleTransactionTimeoutError, StatementCancelledError, StatementTimeoutError } from 'slonik'
import type { OutageCause } from '../domain/queue.ts'
import { DatabaseBusy } from './admission.ts'
import { ArtifactsUnavailable } from './artifacts.ts'
import { DatabaseClosed } from './database.ts'
import { EmbeddedDatabaseBusy } from './drivers/pglite-session.ts'
import {
  isConnectionFailure,
  isConnectionRefused,
  isLockTimeout,
  isOfReader,
  isRetryable,
  isServerTrouble,
} from './drivers/sqlstate.ts'

/** What the floors above call an outage: it says of itself that it is one. */
export class Outage extends Error {}

const kinds = [
  ArtifactsUnavailable,
  ConnectionError,
  DatabaseBusy,
  DatabaseClosed,
  EmbeddedDatabaseBusy,
  IdleTransactionTimeoutError,
  Outage,
  StatementCancelledError,
  StatementTimeoutError,
] as const

/** Of an outage: what to mend is on the one side or on the other. */
export const outageCause = (error: unknown): OutageCause =>
  error instanceof ArtifactsUnavailable ? 'artifacts' : 'database'

/** The database's own: nobody can note anything of it meanwhile, and everybody waits alike. A directory fails one process, which says so. */
export const isDatabaseOutage = (error: unknown): boolean => isOutage(error) && outageCause(error) === 'database'

/**
 * Of the database as a whole: it cannot be reached, takes nobody in, has no place left or only reads, and says nothing of what was asked of it. A lock,
 * a time limit and a server's own trouble may be those of one row or statement, and so may a connection that broke under it, whoever ended
 * it: where the database is away, the next try finds none.
 */
export const isDatabaseAway = (error: unknown): boolean =>
  [DatabaseBusy, DatabaseClosed, EmbeddedDatabaseBusy].some((kind) => error instanceof kind) ||
  isConnectionRefused(error) ||
  isOfReader(error)

export const isOutage = (error: unknown): boolean =>
  kinds.some((kind) => error instanceof kind) ||
  isConnectionFailure(error) ||
  isServerTrouble(error) ||
  isLockTimeout(error) ||
  isRetryable(error)
