/**
 * A database driver with two faults: the process dies around a commit, or a commit happens and its acknowledgement is lost
 * (ExecuteAndTimeout). It wraps the product's own driver and tells commits apart by what their transaction wrote. Owns no
 * connection.
 */
import { BackendTerminatedUnexpectedlyError, type DriverFactory, type QuerySqlToken } from 'slonik'
import type { Backend } from '../../../persistence/drivers/backend.ts'
import type { Flight } from '../../../persistence/drivers/flight.ts'
import type { CommitKind, Doom, StatementKind } from './doom.ts'

type DriverClient = Awaited<ReturnType<Awaited<ReturnType<DriverFactory>>['createClient']>>

/** Decides, at each commit that succeeded, whether its caller learns of it. */
export type Loses = () => boolean

/**
 * Commits of the loop are flights; a claim is one statement beside the pool, or of it, and a callback one of the pool, each its own commit;
 * a person's decision is a transaction of the pool.
 */
export const withFaults =
  (doom: Doom, loses: Loses) =>
  (backend: Backend): Backend => ({
    ...backend,
    fly: (work) => backend.fly((flight) => work(watched(flight, doom, loses))),
    ask: (statement) => {
      const { sql } = statement
      const about = { kind: aloneKindOf(sql, false), commits: writes.test(sql) }
      return reached(
        { doom, loses },
        about,
        () => backend.ask(statement),
        ({ length }) => length,
      )
    },
    driverFactory: async (given) => {
      const driver = await backend.driverFactory(given)
      return { createClient: async () => alone(await driver.createClient(), doom, loses) }
    },
  })

/** Commits that an actor's log tells by the work that is done with them. */
const outcomes: readonly (readonly [work: string, kind: CommitKind])[] = [
  ['discover', 'begin'],
  ['deliver', 'result'],
  ['register', 'register'],
  ['remove', 'remove'],
]

/** What a statement, of these values, says about the commit that it is part of. */
function kindsOf(sql: string, said: string): CommitKind[] {
  const found: CommitKind[] = []
  if (/insert into command\b/.test(sql)) found.push('accept')
  if (/insert into actor_log\b/.test(sql))
    for (const [work, kind] of outcomes) if (said.includes(`xstate.done.actor.${work}`)) found.push(kind)
  if (/update command_evidence\b/.test(sql)) found.push('look')
  // Beside the pool's own transactions only sending again in the place of another settles a send.
  if (/insert into command_settlement\b/.test(sql)) found.push('replace')
  // A reply is an observation, too, but it comes with the result.
  if (/insert into task_event\b/.test(sql) && /\b(?:stream|poll)\b/.test(said)) found.push('observation')
  // By its note: of what is delivered not all is news, and then no event is written.
  if (/insert into push_delivery\b/.test(sql)) found.push('push')
  return found
}

/** The driver's own word for a connection that ended while it waited. */
const lostConnection = (): Error => new BackendTerminatedUnexpectedlyError(new Error('Connection terminated'))

function watched(flight: Flight, doom: Doom, loses: Loses): Flight {
  /** With what the statements say that tell so. */
  const kinds = new Map<CommitKind, string>()
  const noted = <S extends QuerySqlToken>(statement: S): S => {
    const said = JSON.stringify(statement.values)
    for (const kind of kindsOf(statement.sql, said)) kinds.set(kind, `${kinds.get(kind) ?? ''} ${said}`)
    return statement
  }
  return {
    any: (statement) => flight.any(noted(statement)),
    one: (statement) => flight.one(noted(statement)),
    maybeOne: (statement) => flight.maybeOne(noted(statement)),
    query: (statement) => flight.query(noted(statement)),
    before: flight.before,
    unnamed: () => flight.unnamed(),
    xid: () => flight.xid(),
    now: () => flight.now(),
    commit: async () => {
      doom.reach('any/before-commit')
      for (const [kind, said] of kinds) doom.reach(`${kind}/before-commit`, said)
      await flight.commit()
      doom.reach('any/after-commit')
      for (const [kind, said] of kinds) doom.reach(`${kind}/after-commit`, said)
      if (loses()) throw lostConnection()
    },
  }
}

function aloneKindOf(sql: string, settles: boolean): StatementKind | null {
  if (/with due as/.test(sql)) return 'claim'
  if (settles && sql === 'COMMIT') return 'settle'
  return /insert into push_registration\b/.test(sql) ? 'callback' : null
}

/** What writes by itself; a claim that finds nothing is such a one, too. */
const writes = /\b(?:insert into|update|delete from)\b/

interface Faults {
  readonly doom: Doom
  readonly loses: Loses
}

/** What is a commit by itself, with the faults around it. */
async function reached<T>(
  { doom, loses }: Faults,
  { kind, commits }: { readonly kind: StatementKind | null; readonly commits: boolean },
  work: () => Promise<T>,
  found: (result: T) => number,
): Promise<T> {
  if (commits) doom.reach('any/before-commit')
  if (kind !== null) doom.reach(`${kind}/before-commit`)
  const result = await work()
  if (commits) doom.reach('any/after-commit')
  // Most claims find nothing, and nothing is lost with them.
  if (kind === null || (kind !== 'settle' && found(result) === 0)) return result
  doom.reach(`${kind}/after-commit`)
  if (loses()) throw lostConnection()
  return result
}

function alone(client: DriverClient, doom: Doom, loses: Loses): DriverClient {
  let settles = false
  let isInTransaction = false
  return {
    ...client,
    query: async (sql, values, options) => {
      if (sql === 'START TRANSACTION') {
        settles = false
        isInTransaction = true
      }
      settles ||= /insert into command_settlement\b/.test(sql)
      const kind = aloneKindOf(sql, settles)
      const commits = sql === 'COMMIT' || (!isInTransaction && writes.test(sql))
      if (sql === 'COMMIT' || sql === 'ROLLBACK') isInTransaction = false
      const about = { kind, commits }
      return reached(
        { doom, loses },
        about,
        () => client.query(sql, values, options),
        ({ rows }) => rows.length,
      )
    },
  }
}
