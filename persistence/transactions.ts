/**
 * Transactions on connections of Slonik's pool. Slonik's own are not used: each keeps its name in an AsyncLocalStorage, and with
 * Node.js 22 everything asynchronous in the whole process is dearer from the first of them on: a tenth of what a command over HTTP
 * costs the console. What it is for, refusing to ask the pool inside of a transaction, is refused by test/tidy. Does not own
 * connections, and is not what the loop's commits pass through (drivers/flight.ts).
 */
import { sql, type DatabasePool } from 'slonik'
import type { Connection, Pool } from './connection.ts'

/** Another answer to COMMIT than its own: a statement had failed, whose error `work` kept to itself. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack'
  constructor() {
    super('The transaction was rolled back: a statement of it had failed.')
  }
}

/** Each takes one connection of the pool for as long as it lasts. */
export const transactionsOf = (pool: DatabasePool): Pool['transaction'] => {
  return (work) => pool.connect((connection) => transact(connection, work))
}

async function transact<T>(connection: Connection, work: (tx: Connection) => Promise<T>): Promise<T> {
  // As Slonik says it: the drivers know it by these words (drivers/postgres.ts).
  await connection.query(sql.unsafe`START TRANSACTION`)
  try {
    const result = await work(connection)
    const { command } = await connection.query(sql.unsafe`COMMIT`)
    if (String(command) !== 'COMMIT') throw new RolledBack()
    return result
  } catch (error) {
    // Where this fails too the line is gone, and its transaction with it. Slonik ends a connection on which work has thrown.
    await connection.query(sql.unsafe`ROLLBACK`).catch((second: unknown) => second)
    throw error
  }
}
