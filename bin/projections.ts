/**
 * The `db:projections:rebuild` script: `projections [--offline-pglite] [--organization <uuid>] [--task <uuid>]`. Rebuilds what
 * people read of tasks from their stored events: one line a task and a total on stdout. Interrupted, it goes on where it was
 * the next time. On PostgreSQL servers may run, but no other run over all tasks; the embedded database has one owner, so the
 * console must be stopped.
 */
import { parseArgs } from 'node:util'
import { rebuildAll, rebuildTask, type Rebuilt, type Unreadable } from '../actors/rebuild.ts'
import type { Database } from '../persistence/database.ts'
import { requireSchema } from '../persistence/migrate.ts'
import { migrations } from '../persistence/migrations/all.ts'
import { findOrganization, RebuildCut, RebuildUnderWay } from '../persistence/rebuild.ts'
import { readDatabaseConfig } from './config.ts'
import { indexName, type Blocker } from '../persistence/rebuild-index.ts'
import { asksForHelp, runScript, UsageError, withDatabase } from './script.ts'

const usage = 'Usage: projections [--offline-pglite] [--organization <uuid>] [--task <uuid>]'
const help = `${usage}
  --offline-pglite        the database is the embedded one, and its console is stopped; refused with PostgreSQL
  --organization <uuid>   whose tasks; those of the organization "local" where it is not given
  --task <uuid>           only this task
The database is the one that A2A_DATABASE_PROFILE, A2A_DATABASE_URL and A2A_DATA_DIR name.
`
const options = {
  'offline-pglite': { type: 'boolean' },
  organization: { type: 'string' },
  task: { type: 'string' },
} as const

function asked() {
  try {
    return parseArgs({ options, args: process.argv.slice(2) }).values
  } catch (error) {
    throw new UsageError(usage, { cause: error })
  }
}

function uuid(name: string, text: string | undefined): string | undefined {
  if (text === undefined || /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text?.toLowerCase()
  throw new UsageError(`--${name} must be a UUID.`)
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const counted = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

/** Whoever waits may ask its owner, or end it. */
const blockerWords = ({ pid, application, since }: Blocker): string =>
  pid === 0
    ? 'a prepared transaction'
    : `session ${pid} (${application ?? 'no application name'}${since === null ? '' : `, in a transaction since ${since}`})`

/** What was done, line by line and in all. */
class Tally {
  #tasks = 0
  #events = 0
  #repaired = 0
  #unreadable = 0

  add(task: Rebuilt | Unreadable): void {
    if ('reason' in task) {
      this.#unreadable += 1
      return say(`${task.taskId} left as it is. ${task.reason}`)
    }
    const { taskId, events, repaired } = task
    this.#tasks += 1
    this.#events += events
    this.#repaired += repaired ? 1 : 0
    say(`${taskId} ${counted(events, 'event')}, ${repaired ? 'repaired' : 'unchanged'}`)
  }

  total(): void {
    say(`Rebuilt ${counted(this.#tasks, 'task')} from ${counted(this.#events, 'event')}; ${this.#repaired} repaired.`)
    if (this.#unreadable === 0) return
    const whose = this.#unreadable === 1 ? 'its view stays' : 'their views stay'
    throw new UsageError(
      `${counted(this.#unreadable, 'task')} could not be rebuilt, and ${whose} as before; see above.`,
    )
  }
}

async function rebuild(db: Database, organization: string | undefined, task: string | undefined): Promise<void> {
  await db.raw((client) => requireSchema(client, migrations))
  const by = organization === undefined ? { slug: 'local' } : { id: organization }
  const organizationId = await findOrganization(db.pool, by)
  if (organizationId === null) throw new UsageError(`There is no organization ${organization ?? '"local"'}.`)
  const tally = new Tally()
  if (task !== undefined) {
    const rebuilt = await rebuildTask(db.pool, organizationId, task)
    if (!rebuilt) throw new UsageError(`There is no task ${task} in this organization.`)
    tally.add(rebuilt)
  } else {
    const stop = new AbortController()
    process.once('SIGINT', () => stop.abort(new UsageError('Interrupted; the next run goes on from here.')))
    process.once('SIGTERM', () => stop.abort(new UsageError('Interrupted; the next run goes on from here.')))
    await rebuildAll(db, {
      organizationId,
      now: new Date(),
      told: (rebuilt) => tally.add(rebuilt),
      resumed: ({ afterTaskId, tasks, startedAt }) =>
        say(`Going on behind ${afterTaskId}: ${counted(tasks, 'task')} done by the run of ${startedAt}.`),
      signal: stop.signal,
      waiting: (blockers) => say(`The run waits for ${blockers.map(blockerWords).join(', ')}.`),
      left: () =>
        say(`The index ${indexName} is left behind: others' transactions did not let it go. The next run removes it.`),
    }).catch((error: unknown) => {
      throw error instanceof RebuildUnderWay || error instanceof RebuildCut ? new UsageError(error.message) : error
    })
  }
  tally.total()
}

await runScript(async () => {
  if (asksForHelp(process.argv.slice(2))) return void process.stdout.write(help)
  const values = asked()
  const organization = uuid('organization', values.organization)
  const task = uuid('task', values.task)
  const { database } = readDatabaseConfig(process.env)
  if (database.profile === 'pglite' && values['offline-pglite'] !== true)
    throw new UsageError('The embedded database is rebuilt offline: stop the console and pass --offline-pglite.')
  if (database.profile === 'postgresql' && values['offline-pglite'] === true)
    throw new UsageError('--offline-pglite is for the embedded database, and this one is PostgreSQL: leave it out.')
  await withDatabase(database, (db) => rebuild(db, organization, task))
})
