/**
 * SQLSTATE to Slonik's error classes, for both databases. Slonik keeps this table inside its own driver and does not
 * export it. Anything without a class here is passed on as it came, with its `code`.
 */
import { DatabaseError } from 'pg'
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  CheckExclusionConstraintViolationError,
  CheckIntegrityConstraintViolationError,
  ConnectionError,
  ForeignKeyIntegrityConstraintViolationError,
  IdleTransactionTimeoutError,
  InputSyntaxError,
  InvalidInputError,
  NotNullIntegrityConstraintViolationError,
  StatementCancelledError,
  StatementTimeoutError,
  UniqueIntegrityConstraintViolationError,
} from 'slonik'

/** What a failed statement is known by in its error: never its values, which may be secrets. */
export interface Statement {
  readonly sql: string
}

const connectionLost = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'])

/** True when the failure says nothing about the statement: the connection, the server or the pool went away. */
export function isConnectionFailure(error: unknown): boolean {
  if (error instanceof BackendTerminatedError || error instanceof BackendTerminatedUnexpectedlyError) return true
  // Slonik's word for a connection that could not be had; a socket closed in the handshake has no code below it.
  if (error instanceof ConnectionError) return true
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  // Class 08: connection exceptions; 57P0x: the server is shutting down, crashed, or not yet accepting connections.
  return code !== undefined && (connectionLost.has(code) || code.startsWith('08') || code.startsWith('57P0'))
}

/** 57P02: it crashed, and takes everybody's connection; 57P03: it is not yet accepting any; 53300: it has none left. */
const noneLetIn = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', '08001', '08004', '53300', '57P02', '57P03'])

/**
 * True when the failure says that nobody gets a connection. Not so where one broke that was there: whoever stands before the server, or
 * watches it, ends that of a statement that takes too long with the same codes (08P01, 57P01).
 */
export const isConnectionRefused = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof Error && noneLetIn.has(codeOf(error) ?? ''))

/**
 * 25006: a server that only reads, as a standby before its promotion, and a primary that another has taken over from. Whoever asks for
 * a new connection may come to one that writes, so one to this is worth nothing.
 */
export const isOfReader = (error: unknown): boolean => error instanceof Error && codeOf(error) === '25006'

/**
 * 25006: a server that only reads. Class 53: no memory, disk or connection left; 58: its system failed.
 * A quota or a limit of file sizes has no code of its own (XX000), and is no less the end of what may be written.
 */
export function isServerTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  if (code === 'XX000') return /: (?:Disk quota exceeded|File too large)$/.test(error.message)
  return code !== undefined && (isOfReader(error) || isExhausted(error) || code.startsWith('58'))
}

/** Class 53: the server had no memory, disk or connection left. */
const isExhausted = (error: Error): boolean => codeOf(error)?.startsWith('53') === true

/**
 * It says so of a transaction that did nothing. Not so where it stops by it, which has the same code: then what it was about to commit may
 * be found committed by its recovery. Severity is a word in the server's language; one that is not known is no proof.
 */
export const isUndoneByExhaustion = (error: unknown): boolean =>
  error instanceof Error && isExhausted(error) && reported(error, 'severity') === 'ERROR'

/** Serialization failure or deadlock: the transaction did nothing and may be run again as it is. */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return code === '40001' || code === '40P01'
}

/**
 * A prepared statement that no longer fits: its columns changed under it (0A000), or the server doesn't have it (26000).
 * The connection that holds it is useless for that statement; another connection is not.
 */
export function isStalePlan(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return code === '0A000' || code === '26000'
}

/** 55P03: somebody else had a lock for longer than the statement, or its session, would wait; the transaction did nothing. */
export const isLockTimeout = (error: unknown): boolean => error instanceof Error && codeOf(error) === '55P03'

/** Somebody else inserted the same row first: what was unknown when this transaction looked is known now. */
export const isConflict = (error: unknown): boolean => error instanceof UniqueIntegrityConstraintViolationError

/** Of the error's own report, or of the one that it was caused by. */
function reported(error: Error, field: 'code' | 'severity'): string | undefined {
  const own: unknown = Reflect.get(error, field)
  if (typeof own === 'string') return own
  return error.cause instanceof Error ? reported(error.cause, field) : undefined
}

const codeOf = (error: Error): string | undefined => reported(error, 'code')

/** Of a connection that could not be had, as Slonik's pool says it: what ended meanwhile was no statement's. */
export function connectionError(error: unknown): Error {
  const named = namedError(error, undefined)
  return named instanceof DatabaseError ? named : new ConnectionError(named.message, { cause: named })
}

/** Slonik declares the fields of the server's error report as absent or text; node-postgres has them undefined or text. */
type Violation = ConstructorParameters<typeof UniqueIntegrityConstraintViolationError>[0]

export function namedError(error: unknown, statement: Statement | undefined): Error {
  if (!(error instanceof Error)) return new Error('The database driver failed.', { cause: error })
  if (!(error instanceof DatabaseError)) {
    // node-postgres has no code for a socket that closed under it; this is its whole vocabulary for the case.
    return /^Connection terminated|not queryable$|^Query read timeout$|^timeout expired$/.test(error.message)
      ? new BackendTerminatedUnexpectedlyError(error)
      : error
  }
  switch (error.code) {
    case '22P02':
      return new InvalidInputError(error.message)
    case '23502':
      return new NotNullIntegrityConstraintViolationError(error as Violation)
    case '23503':
      return new ForeignKeyIntegrityConstraintViolationError(error as Violation)
    case '23505':
      return new UniqueIntegrityConstraintViolationError(error as Violation)
    case '23514':
      return new CheckIntegrityConstraintViolationError(error as Violation)
    case '23P01':
      return new CheckExclusionConstraintViolationError(error as Violation)
    case '25P03':
      return new IdleTransactionTimeoutError(error)
    case '42601':
      return statement ? new InputSyntaxError(error, { sql: statement.sql, values: [] }) : error
    case '57014':
      // One code for two causes; only the text tells a cancelled statement from one that ran out of time.
      return error.message.includes('user request')
        ? new StatementCancelledError(error)
        : new StatementTimeoutError(error)
    case '57P01':
      return new BackendTerminatedError(error)
    default:
      return error
  }
}
