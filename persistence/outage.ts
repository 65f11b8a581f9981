/**
 * Which failures are outages: the database went away, is closing, or does not keep up. They say nothing about what was
 * asked; the lease holder tries again, a caller is told to. Everything else is a refusal or a defect.
 */
import { ConnectionError, IdleTransactionTimeoutError, StatementCancelledError, StatementTimeoutError } from 'slonik'
import { DatabaseClosed } from './database.ts'
import { EmbeddedDatabaseBusy } from './pglite-session.ts'
import { isConnectionFailure, isRetryable, isServerTrouble } from './sqlstate.ts'

const kinds = [
  ConnectionError,
  DatabaseClosed,
  EmbeddedDatabaseBusy,
  IdleTransactionTimeoutError,
  StatementCancelledError,
  StatementTimeoutError,
] as const

export const isOutage = (error: unknown): boolean =>
  kinds.some((kind) => error instanceof kind) ||
  isConnectionFailure(error) ||
  isServerTrouble(error) ||
  isRetryable(error)
