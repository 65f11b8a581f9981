/**
 * A database driver with two faults: the process dies around a commit, or a commit happens and its acknowledgement is lost
 * (ExecuteAndTimeout). It wraps the product's own driver and tells commits apart by what their transaction wrote. Owns no
 * connection.
 */
import { BackendTerminatedUnexpectedlyError, type DriverFactory } from 'slonik'
import type { Backend } from '../../../persistence/backend.ts'
import type { Doom } from './doom.ts'

type Driver = Awaited<ReturnType<DriverFactory>>
type DriverClient = Awaited<ReturnType<Driver['createClient']>>

/** Decides, at each commit that succeeded, whether its caller learns of it. */
export type Loses = () => boolean

export const withFaults =
  (doom: Doom, loses: Loses) =>
  (backend: Backend): Backend => ({
    ...backend,
    driverFactory: async (given) => {
      const driver = await backend.driverFactory(given)
      return { createClient: async () => faulty(await driver.createClient(), doom, loses) }
    },
  })

const kinds = ['accept', 'claim', 'begin', 'result', 'observation'] as const
type CommitKind = (typeof kinds)[number]

/** What a statement says about the commit that it is part of. */
function kindsOf(sql: string, values: readonly unknown[]): CommitKind[] {
  const found: CommitKind[] = []
  if (/insert into command\b/.test(sql)) found.push('accept')
  if (/skip locked/.test(sql)) found.push('claim')
  if (!/insert into (?:actor_log|task_event)\b/.test(sql)) return found
  const said = JSON.stringify(values)
  if (said.includes('xstate.done.actor.discover')) found.push('begin')
  if (said.includes('xstate.done.actor.deliver')) found.push('result')
  // A reply is an observation, too, but it comes with the result.
  if (/insert into task_event\b/.test(sql) && /\b(?:stream|poll)\b/.test(said)) found.push('observation')
  return found
}

/** The driver's own word for a connection that ended while it waited. */
const lostConnection = (): Error => new BackendTerminatedUnexpectedlyError(new Error('Connection terminated'))

function faulty(client: DriverClient, doom: Doom, loses: Loses): DriverClient {
  let open: Set<CommitKind> | null = null
  const run = async (committing: ReadonlySet<CommitKind>, work: () => ReturnType<DriverClient['query']>) => {
    for (const kind of committing) doom.reach(`${kind}/before-commit`)
    const result = await work()
    for (const kind of committing) doom.reach(`${kind}/after-commit`)
    if (committing.size > 0 && loses()) throw lostConnection()
    return result
  }
  return {
    ...client,
    query: async (sql, values, options) => {
      const work = () => client.query(sql, values, options)
      if (/^\s*(?:start transaction|begin)\b/i.test(sql)) open = new Set()
      else if (/^\s*rollback\s*;?\s*$/i.test(sql)) open = null
      else if (/^\s*commit\b/i.test(sql)) {
        const committing = open ?? new Set<CommitKind>()
        open = null
        return run(committing, work)
      } else {
        const said = kindsOf(sql, values ?? [])
        if (open === null) {
          // A statement outside of a transaction is its own commit. A claim that found nothing is none.
          const result = await run(new Set(doom.awaits('claim/after-commit') ? [] : said), work)
          if (said.includes('claim') && (result.rows?.length ?? 0) > 0) doom.reach('claim/after-commit')
          return result
        }
        for (const kind of said) open.add(kind)
      }
      return work()
    },
  }
}
