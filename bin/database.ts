/**
 * The `db:migrate`, `db:migrate:down`, `db:migration:list`, `db:migration:pending` and `db:schema:check` scripts:
 * `database <migrate [version] | down [count] | list | pending | check>`. One line per result on stdout, errors on stderr
 * with exit code 1. Takes the embedded database's directory lock, so a running console makes it fail rather than lose data.
 * Only `migrate` makes an embedded database where there is none.
 */
import type { RawClient } from '../persistence/drivers/backend.ts'
import { migrateDown, migrateUp, requireSchema, schemaStatus } from '../persistence/migrate.ts'
import { migrations } from '../persistence/migrations/all.ts'
import { readDatabaseConfig } from './config.ts'
import { asksForHelp, runScript, UsageError, withAnyDatabase, withDatabase } from './script.ts'

type Command = (client: RawClient, argument: number | undefined) => Promise<string[]>

const commands: Readonly<Record<string, Command>> = {
  async migrate(client, to) {
    const done = await migrateUp(client, migrations, to)
    if (done.length === 0)
      return [`Nothing to apply: the schema is at v${(await schemaStatus(client, migrations)).current}.`]
    return done.map(({ version, name }) => `Applied ${version} ${name}`)
  },
  async down(client, count) {
    const done = await migrateDown(client, migrations, count)
    return done.length === 0
      ? ['Nothing to take back.']
      : done.map(({ version, name }) => `Took back ${version} ${name}`)
  },
  async list(client) {
    const { applied } = await schemaStatus(client, migrations)
    if (applied.length === 0) return ['No migration is applied.']
    return applied.map(({ version, name, appliedAt }) => `${version} ${name} applied ${appliedAt}`)
  },
  async pending(client) {
    const { pending } = await schemaStatus(client, migrations)
    return pending.length === 0
      ? ['No migration is pending.']
      : pending.map(({ version, name }) => `${version} ${name}`)
  },
  async check(client) {
    await requireSchema(client, migrations)
    return [`The schema is at v${migrations.at(-1)?.version ?? 0}, as this version needs.`]
  },
}

const usage = `Usage: database <${Object.keys(commands).join(' | ')}>`
const help = `${usage}
  migrate [version]   applies what is pending, up to a version; makes an embedded database where there is none
  down [count]        takes back the last migration, or so many
  list                tells what is applied
  pending             tells what is not
  check               fails unless the schema is as this version needs it
The database is the one that A2A_DATABASE_PROFILE, A2A_DATABASE_URL and A2A_DATA_DIR name.
`

function positive(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new UsageError('The version or count must be a whole number from 1.')
}

async function main(): Promise<void> {
  const args = process.argv.slice(2)
  if (asksForHelp(args)) return void process.stdout.write(help)
  const [name = '', argument] = args
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) throw new UsageError(usage)
  // Before anything is opened: a wrong word must not create a data directory.
  const number = argument === undefined ? undefined : positive(argument)
  const { database } = readDatabaseConfig(process.env)
  const open = name === 'migrate' ? withAnyDatabase : withDatabase
  const lines = await open(database, (db) => db.raw((client) => command(client, number)))
  process.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

await runScript(main)
