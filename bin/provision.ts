/**
 * The `auth:provision` script: `provision --issuer <https url> --subject <sub> --organization <slug> --name <text> --role
 * <admin|operator|viewer> [--offline-pglite]` admits a person; a second time it changes their name and role. And, beyond the
 * specification, `auth:disable`: `provision disable --issuer --subject --organization [--offline-pglite]` takes the membership
 * back, whose sessions end with it. One line on stdout. On PostgreSQL the console may run; the embedded database has one owner.
 */
import { parseArgs } from 'node:util'
import { Changes } from '../actors/loop/changes.ts'
import { provision, withdraw } from '../actors/provisioning.ts'
import { newToken } from '../actors/tokens.ts'
import { Role } from '../domain/access.ts'
import type { Database } from '../persistence/database.ts'
import { migrateUp, requireSchema, schemaStatus } from '../persistence/migrate.ts'
import { migrations } from '../persistence/migrations/all.ts'
import type { Identity } from '../persistence/people.ts'
import { readProvisioningConfig, type ProvisioningConfig } from './config.ts'
import { asksForHelp, runScript, UsageError, withAnyDatabase, withDatabase } from './script.ts'

const usage = `Usage: provision --issuer <https url> --subject <sub> --organization <slug> --name <text> --role <admin|operator|viewer> [--offline-pglite]
       provision disable --issuer <https url> --subject <sub> --organization <slug> [--offline-pglite]`
const help = `${usage}
  --issuer, --subject   who they are at the identity provider, exactly; the issuer is A2A_OIDC_ISSUER
  --organization        A2A_AUTH_ORGANIZATION_SLUG
  --name, --role        as they are shown, and what they may ever do; a second time changes both
  --offline-pglite      the database is the embedded one, and its console is stopped
  disable               takes the membership back and ends its sessions
The database is the one that A2A_DATABASE_PROFILE, A2A_DATABASE_URL and A2A_DATA_DIR name.
`
const whose = {
  issuer: { type: 'string' },
  subject: { type: 'string' },
  organization: { type: 'string' },
  'offline-pglite': { type: 'boolean', default: false },
} as const
const what = { name: { type: 'string' }, role: { type: 'string' } } as const

type Values = Readonly<Partial<Record<'issuer' | 'subject' | 'organization' | 'name' | 'role', string>>> & {
  readonly 'offline-pglite': boolean
}

interface Asked {
  readonly identity: Identity
  readonly organization: string
  readonly offline: boolean
  /** Null: the membership is taken back. */
  readonly person: { readonly name: string; readonly role: Role } | null
}

function valuesOf(args: string[], disables: boolean): Values {
  try {
    return parseArgs({ options: disables ? whose : { ...whose, ...what }, args }).values
  } catch (error) {
    throw new UsageError(usage, { cause: error })
  }
}

/** Control characters would be invisible where the value is shown, and nobody means them. */
function text(values: Values, name: 'issuer' | 'subject' | 'organization' | 'name', characters: number): string {
  const value = values[name]
  if (value === undefined) throw new UsageError(usage)
  if (value.trim() === '' || value.length > characters || /\p{Cc}/u.test(value))
    throw new UsageError(`--${name} must have 1 to ${characters} printable characters.`)
  return value
}

function asked(): Asked {
  const [word, ...rest] = process.argv.slice(2)
  const disables = word === 'disable'
  const values = valuesOf(disables ? rest : process.argv.slice(2), disables)
  // OpenID Connect Core 1.0 §2: a subject has at most 255 characters.
  const identity = { issuer: text(values, 'issuer', 1024), subject: text(values, 'subject', 255) }
  const asks = { identity, organization: text(values, 'organization', 63), offline: values['offline-pglite'] }
  if (disables) return { ...asks, person: null }
  const role = Role.safeParse(values.role)
  if (!role.success) throw new UsageError('--role must be admin, operator or viewer.')
  return { ...asks, person: { name: text(values, 'name', 200), role: role.data } }
}

/** Who is admitted where nobody can sign in from would be admitted in vain. */
function requireMatch({ identity, organization, offline }: Asked, config: ProvisioningConfig): void {
  if (identity.issuer !== config.issuer) throw new UsageError('--issuer must equal A2A_OIDC_ISSUER.')
  if (organization !== config.organization)
    throw new UsageError('--organization must equal A2A_AUTH_ORGANIZATION_SLUG.')
  if (config.database.profile === 'pglite' && !offline)
    throw new UsageError('The embedded database is changed offline: stop the console and pass --offline-pglite.')
}

/** Consoles that run are other processes: they learn of it by its fact, within half a second. */
const toolsOn = (db: Database) => ({ db, changes: new Changes(), instruments: { now: () => new Date(), newToken } })

async function change(db: Database, { identity, organization, person }: Asked, migrates: boolean): Promise<string> {
  await db.raw(async (client) => {
    // People are admitted before the first start, too; what holds data is upgraded on purpose only.
    const { current } = await schemaStatus(client, migrations)
    if (current === 0 && migrates) await migrateUp(client, migrations)
    await requireSchema(client, migrations)
  })
  if (person) {
    const { membershipId } = await provision(toolsOn(db), organization, { identity, ...person })
    return `Provisioned ${person.name} as ${person.role} of ${organization}: membership ${membershipId}.`
  }
  const member = await withdraw(toolsOn(db), organization, identity)
  if (!member) throw new UsageError('There is no enabled membership of this issuer and subject.')
  return `Disabled membership ${member.membershipId} of ${organization}; its sessions have ended.`
}

await runScript(async () => {
  if (asksForHelp(process.argv.slice(2))) return void process.stdout.write(help)
  const asks = asked()
  const config = readProvisioningConfig(process.env)
  requireMatch(asks, config)
  // The first person is admitted before the first start; nobody can be taken back from a database that is not there.
  const open = asks.person === null || !config.database.autoMigrate ? withDatabase : withAnyDatabase
  const line = await open(config.database, (db) => change(db, asks, config.database.autoMigrate))
  return void process.stdout.write(`${line}\n`)
})
