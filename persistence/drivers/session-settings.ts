/**
 * What every session of ours is told of itself, so that neither a database's nor a role's own settings (`alter database … set …`)
 * change what our statements mean or how their answers are read. Where a session wants to be and what it may do (search_path,
 * read-only, row security) stays the operator's. How each route carries the settings: postgres.ts, pglite.ts.
 */

export interface Setting {
  readonly name: string
  readonly value: string
}

/**
 * Every statement of ours has an index. A plan made while a table was young would read it whole until the next ANALYZE,
 * minutes later: 3.2 ms against 0.3 for a batch of twenty after a few thousand commands. And none runs long enough to be worth
 * compiling, for which up to PostgreSQL 17 a plan without its favourite scan looks dear enough.
 */
const planning: readonly Setting[] = [
  { name: 'enable_seqscan', value: 'off' },
  { name: 'jit', value: 'off' },
]

/** Times are read as ISO 8601 (node-postgres.ts): in another style 3 April is 4 March, or nothing at all. */
const times: readonly Setting[] = [
  { name: 'datestyle', value: 'ISO, MDY' },
  // A day of an interval has 24 hours.
  { name: 'timezone', value: 'UTC' },
]

/** How values are written by us, and read. */
const values: readonly Setting[] = [
  { name: 'standard_conforming_strings', value: 'on' },
  { name: 'array_nulls', value: 'on' },
  { name: 'bytea_output', value: 'hex' },
  { name: 'intervalstyle', value: 'postgres' },
  { name: 'extra_float_digits', value: '1' },
]

/**
 * A statement that waited for a row reads it as it is then, and a transaction that says nothing holds no snapshot: what locks rows, counts
 * on other people's commits or builds an index counts on that. Whoever needs another isolation asks for it by name.
 */
const isolation: Setting = { name: 'default_transaction_isolation', value: 'read committed' }

/** Of a session that is ours alone. */
export const sessionSettings: readonly Setting[] = [...planning, ...times, ...values, isolation]

/** How a transaction begins where no session carries `isolation` for it. */
export const beginReadCommitted = 'begin isolation level read committed'

/**
 * What a pooler keeps for a client on whichever server it has, when it was told so at the start of the connection: every PgBouncer does for
 * these [pgbouncer.org/config.html, ignore_startup_parameters]. So a statement outside of a transaction has them as well.
 */
export const startupParameters: Readonly<Record<string, string>> = Object.fromEntries(
  [...times, ...values.slice(0, 1)].map(({ name, value }) => [name, value]),
)

/** Of each transaction behind a pooler, all of them: what its servers do otherwise somebody may set while we run. */
export const transactionSettings: readonly Setting[] = [...planning, ...times, ...values]

/** As words of `options` at the start of a connection, where a space ends a word. */
export const asOptions = (settings: readonly Setting[]): string =>
  settings.map(({ name, value }) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`).join(' ')

export const asStatements = (settings: readonly Setting[], scope: 'session' | 'local'): readonly string[] =>
  settings.map(({ name, value }) => `set ${scope} ${name} = '${value}'`)
