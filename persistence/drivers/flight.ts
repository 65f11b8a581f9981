/**
 * A transaction of the loop: statements asked for in one turn of the event loop leave as one group, BEGIN goes with the first
 * and COMMIT with the last. Slonik's own transactions wait for every statement and serve everybody else; this one is for
 * the few statements through which every commit of an actor passes. Does not own connections (postgres-flights.ts, pglite.ts).
 */
import { createHash } from 'node:crypto'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { QuerySqlToken } from 'slonik'
import type { Transaction } from '../connection.ts'
import { validRow } from '../rows.ts'
import { beginReadCommitted } from './session-settings.ts'
import { namedError } from './sqlstate.ts'
import { encoded, StatementSkipped, type GroupedAnswer, type GroupedStatement } from './statement-group.ts'

/** The connection a flight has to itself. */
export interface FlightLine {
  /** Sends a group; its statements are told their answers. */
  readonly send: (statements: readonly GroupedStatement[]) => void
  /** What goes with BEGIN: settings, where a connection cannot carry them (behind a pooler). */
  readonly prologue?: readonly string[]
}

/** What work in flight sees beside the statements: the way to end it together with its last ones. */
export interface Flight extends Transaction {
  /**
   * A statement that is a transaction of its own, before this one begins and in the same exchange as its first statements. Where it
   * fails, nothing behind it is run; answered, it is committed, whatever becomes of what is behind it.
   */
  readonly before: Pick<Transaction, 'any'>
  /** Before anything is asked for: nobody will ask for its id or its clock, so they are not asked for either. */
  unnamed(): void
  /** The transaction's id, known before COMMIT is sent: who never hears of the commit asks for its fate by it. */
  xid(): Promise<string>
  /** The database's clock when the transaction began: what `now()` is in its statements, ISO 8601. Comes with `xid`. */
  now(): Promise<string>
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

const begin = named(beginReadCommitted)
const commit = named('commit')
const rollback = named('rollback')
const beginning = named('select pg_current_xact_id()::text as xid, now() as at')

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

/** The rows of one statement that is a transaction of its own: nothing goes with it but the word that it is complete. */
export async function ask<S extends StandardSchemaV1>(line: FlightLine, statement: QuerySqlToken<S>) {
  // Settings that go with a transaction need one.
  if (line.prologue?.length)
    return fly(line, async (flight) => (await Promise.all([flight.any(statement), flight.commit()]))[0])
  const { text, name } = named(statement.sql)
  const { promise, resolve, reject } = Promise.withResolvers<GroupedAnswer>()
  const failed = (error: Error): void => reject(namedError(error, { sql: text }))
  line.send([{ text, name, values: statement.values.map(encoded), answered: resolve, failed }])
  const { rows } = await promise
  return rows.map((row) => validRow(statement, row))
}

/** Whoever stopped waiting because another statement failed must not become an unhandled rejection. */
function quiet<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined)
  return answer
}

interface Beginning {
  readonly xid: string
  readonly at: string
}

/** One for all: an error is dear to make, and each commit of what is accepted would make one for nobody. */
const unasked = quiet(Promise.reject<Beginning>(new Error('Nobody asked for its name.')))

class FlownTransaction implements Flight {
  readonly #line: FlightLine
  #waiting: GroupedStatement[] = []
  #begun: Promise<Beginning> | null = null
  #committed: Promise<void> | null = null
  #isUnnamed = false
  /** Something went before: what is left of it, where it failed, is to be undone as well. */
  #preceded = false
  /** Whatever was asked for now would run outside of every transaction, or in somebody else's: the line goes on. */
  #over = false
  /** The first failure: whatever was skipped because of it is not news. */
  fault: Error | null = null

  readonly before: Pick<Transaction, 'any'> = { any: (statement) => this.#precede(statement) }

  constructor(line: FlightLine) {
    this.#line = line
  }

  query(statement: QuerySqlToken): Promise<unknown> {
    return quiet(this.#ask(statement))
  }

  any<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    return quiet(this.#ask(statement).then(({ rows }) => rows.map((row) => validRow(statement, row))))
  }

  maybeOne<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    const first = this.any(statement).then(([row, ...others]) => {
      if (others.length > 0) throw new Error('A statement that has one row at most had more.')
      return row ?? null
    })
    return quiet(first)
  }

  one<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    const only = this.maybeOne(statement).then((row) => {
      if (row === null) throw new Error('A statement that has a row had none.')
      return row
    })
    return quiet(only)
  }

  #precede<S extends StandardSchemaV1>(statement: QuerySqlToken<S>) {
    if (this.#begun || this.#over) throw new Error('The transaction has begun.')
    const values = statement.values.map(encoded)
    this.#preceded = true
    this.#open()
    const answer = this.#put(named(statement.sql), values)
    const committed = this.#put(commit, [])
    return quiet(Promise.all([answer, committed]).then(([{ rows }]) => rows.map((row) => validRow(statement, row))))
  }

  unnamed(): void {
    if (this.#begun || this.#over) throw new Error('The transaction has begun.')
    this.#isUnnamed = true
  }

  async xid(): Promise<string> {
    return (await this.#beginning()).xid
  }

  async now(): Promise<string> {
    return (await this.#beginning()).at
  }

  async #beginning(): Promise<Beginning> {
    if (this.#over) throw new Error('The transaction is over.')
    return this.#begin()
  }

  commit(): Promise<void> {
    this.#over = true
    // Nothing was asked for, so there is nothing to commit.
    if (!this.#begun) return Promise.resolve()
    this.#committed ??= quiet(this.#end())
    return this.#committed
  }

  async #end(): Promise<void> {
    if (this.fault) throw this.fault
    const { command } = await this.#put(commit, [])
    // A server that met an error before answers ROLLBACK, and not with another error.
    if (command !== 'COMMIT') throw this.fault ?? new Error('The transaction was rolled back.')
  }

  /** After the work: commits if that was not done, and says so if anything failed that nobody waited for. */
  async end(): Promise<void> {
    await this.commit()
    if (this.fault) throw this.fault
  }

  /** Never rejects: a connection that cannot even undo is broken, and its transaction ends with it. */
  async undo(): Promise<void> {
    this.#over = true
    if (this.#begun || this.#preceded) await this.#put(rollback, []).catch(() => undefined)
  }

  async #ask(query: QuerySqlToken): Promise<GroupedAnswer> {
    if (this.#over) throw new Error('The transaction is over.')
    // Here and not when the group is written: half of a group, without its Sync, is answered by nobody.
    const values = query.values.map(encoded)
    void this.#begin()
    return this.#put(named(query.sql), values)
  }

  #begin(): Promise<Beginning> {
    if (this.#begun) return this.#begun
    this.#open()
    const read = ({ rows }: GroupedAnswer): Beginning => ({
      xid: String(rows[0]?.['xid']),
      at: String(rows[0]?.['at']),
    })
    this.#begun = this.#isUnnamed ? unasked : quiet(this.#put(beginning, []).then(read))
    return this.#begun
  }

  #open(): void {
    void this.#put(begin, [])
    for (const setting of this.#line.prologue ?? []) void this.#put(named(setting), [])
  }

  #put({ text, name }: Named, values: GroupedStatement['values']): Promise<GroupedAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<GroupedAnswer>()
    const failed = (error: Error): void => {
      const cause = error instanceof StatementSkipped ? error : namedError(error, { sql: text })
      if (!(cause instanceof StatementSkipped)) this.fault ??= cause
      reject(cause)
    }
    // After the microtasks of this turn: everything that can be asked for without waiting is asked for by then.
    if (this.#waiting.length === 0) process.nextTick(() => this.#leave())
    this.#waiting.push({ text, name, values, answered: resolve, failed })
    return quiet(promise)
  }

  #leave(): void {
    const group = this.#waiting
    this.#waiting = []
    this.#line.send(group)
  }
}
