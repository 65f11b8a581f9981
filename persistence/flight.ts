/**
 * A transaction of the loop: statements asked for in one turn of the event loop leave as one group, BEGIN goes with the first
 * and COMMIT with the last. Slonik's own transactions wait for every statement and serve everybody else; this one is for
 * the few statements through which every commit of an actor passes. Does not own connections (postgres-flights.ts, pglite.ts).
 */
import { createHash } from 'node:crypto'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { QuerySqlToken } from 'slonik'
import type { Transaction } from './database.ts'
import { validRow } from './rows.ts'
import { namedError } from './sqlstate.ts'
import { StatementSkipped, type GroupedAnswer, type GroupedStatement } from './statement-group.ts'

/** The connection a flight has to itself. */
export interface FlightLine {
  /** Sends a group; its statements are told their answers. */
  readonly send: (statements: readonly GroupedStatement[]) => void
  /** What goes with BEGIN: settings, where a connection cannot carry them (behind a pooler). */
  readonly prologue?: readonly string[]
}

/** What work in flight sees beside the statements: the way to end it together with its last ones. */
export interface Flight extends Transaction {
  /** The transaction's id, known before COMMIT is sent: who never hears of the commit asks for its fate by it. */
  xid(): Promise<string>
  /** Sends COMMIT with whatever was asked for in this turn. Nothing may be asked for afterwards. */
  commit(): Promise<void>
}

interface Named {
  readonly text: string
  readonly name: string
}

/** Bounds what is prepared on each connection: our statements are some forty texts. */
const namesLimit = 500
const names = new Map<string, Named>()

/** Slonik writes `$slonik_1` where PostgreSQL reads `$1`. The name comes from the text, so all connections agree on it. */
function named(sql: string): Named {
  const known = names.get(sql)
  if (known) return known
  const text = sql.replaceAll('$slonik_', '$')
  const fresh = { text, name: `f_${createHash('sha256').update(text).digest('hex').slice(0, 24)}` }
  if (names.size >= namesLimit) throw new Error('The statements of a flight must not be built from their values.')
  names.set(sql, fresh)
  return fresh
}

const begin = named('begin')
const commit = named('commit')
const rollback = named('rollback')
const ownXid = named('select pg_current_xact_id()::text as xid')

/** Runs `work` and commits what it did, unless it did so itself; undoes everything when it fails. */
export async function fly<T>(line: FlightLine, work: (flight: Flight) => Promise<T>): Promise<T> {
  const transaction = new FlownTransaction(line)
  try {
    const result = await work(transaction)
    await transaction.end()
    return result
  } catch (error) {
    await transaction.undo()
    throw error instanceof StatementSkipped ? (transaction.fault ?? error) : error
  }
}

class FlownTransaction implements Flight {
  readonly #line: FlightLine
  #waiting: GroupedStatement[] = []
  #begun: Promise<GroupedAnswer> | null = null
  #xid: Promise<string> | null = null
  #committed: Promise<void> | null = null
  /** The first failure: whatever was skipped because of it is not news. */
  fault: Error | null = null

  constructor(line: FlightLine) {
    this.#line = line
  }

  query(statement: QuerySqlToken): Promise<unknown> {
    return this.#ask(statement)
  }

  async any<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    const { rows } = await this.#ask(statement)
    return rows.map((row) => validRow(statement, row))
  }

  async maybeOne<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    const [row, ...others] = await this.any(statement)
    if (others.length > 0) throw new Error('A statement that has one row at most had more.')
    return row ?? null
  }

  async one<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    const row = await this.maybeOne(statement)
    if (row === null) throw new Error('A statement that has a row had none.')
    return row
  }

  async xid(): Promise<string> {
    this.#begin()
    return this.#xid ?? ''
  }

  commit(): Promise<void> {
    // Nothing was asked for, so there is nothing to commit.
    if (!this.#begun) return Promise.resolve()
    this.#committed ??= this.#put(commit, []).then(({ command }) => {
      // A server that met an error before answers ROLLBACK, and not with another error.
      if (command !== 'COMMIT') throw this.fault ?? new Error('The transaction was rolled back.')
    })
    this.#committed.catch(() => undefined)
    return this.#committed
  }

  /** After the work: commits if that was not done, and says so if anything failed that nobody waited for. */
  async end(): Promise<void> {
    await this.commit()
    if (this.fault) throw this.fault
  }

  /** Never rejects: a connection that cannot even undo is broken, and its transaction ends with it. */
  async undo(): Promise<void> {
    if (!this.#begun) return
    await this.#put(rollback, []).catch(() => undefined)
  }

  #ask(query: QuerySqlToken): Promise<GroupedAnswer> {
    if (this.#committed) return Promise.reject(new Error('The transaction has been committed.'))
    this.#begin()
    return this.#put(named(query.sql), query.values)
  }

  #begin(): void {
    if (this.#begun) return
    this.#begun = this.#put(begin, [])
    for (const setting of this.#line.prologue ?? []) void this.#put(named(setting), [])
    this.#xid = this.#put(ownXid, []).then(({ rows }) => String(rows[0]?.['xid']))
    this.#xid.catch(() => undefined)
  }

  #put({ text, name }: Named, values: readonly unknown[]): Promise<GroupedAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<GroupedAnswer>()
    // Whoever stopped waiting because another statement failed must not become an unhandled rejection.
    promise.catch(() => undefined)
    const failed = (error: Error): void => {
      const cause = error instanceof StatementSkipped ? error : namedError(error, { sql: text })
      if (!(cause instanceof StatementSkipped)) this.fault ??= cause
      reject(cause)
    }
    // After the microtasks of this turn: everything that can be asked for without waiting is asked for by then.
    if (this.#waiting.length === 0) process.nextTick(() => this.#leave())
    this.#waiting.push({ text, name, values, answered: resolve, failed })
    return promise
  }

  #leave(): void {
    const group = this.#waiting
    this.#waiting = []
    this.#line.send(group)
  }
}
