/**
 * The configuration: the environment read once, at start, into one typed value that the composition roots hand down.
 * Owns what the variables mean together; a single value's rule is bin/config-variables.ts. The only variable that is
 * read later is A2A_AGUI_ENABLED, at each request. Nothing below bin/ sees the environment.
 */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { originOf, type TrustedKeys, Variables } from './config-variables.ts'
import { isLoopbackHost } from '../domain/loopback.ts'

/** A wrong value: one line that names the variable and never holds a secret. Stops the start. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export type AuthConfig =
  | { readonly mode: 'development'; readonly organization: string }
  | {
      readonly mode: 'oidc'
      readonly organization: string
      readonly issuer: string
      readonly clientId: string
      readonly clientSecret: string
      /** 64 hexadecimal characters: encrypts the login state between the redirect and the callback. */
      readonly flowKey: string
      readonly origin: string
      readonly sessionSeconds: number
      readonly idleSeconds: number | null
    }

export type DatabaseConfig =
  | { readonly profile: 'pglite'; readonly directory: string; readonly autoMigrate: boolean }
  | { readonly profile: 'postgresql'; readonly url: string; readonly autoMigrate: boolean }

/** Absolute paths. `data` holds the pid file and the launcher's secrets; the other two lie in it unless they are set. */
export interface DirectoriesConfig {
  readonly data: string
  readonly pglite: string
  readonly artifacts: string
}

export type LogLevel = NonNullable<Variables['A2A_LOG_LEVEL']>

export interface Config {
  readonly production: boolean
  readonly listen: { readonly host: string; readonly port: number }
  readonly auth: AuthConfig
  readonly database: DatabaseConfig
  readonly directories: DirectoriesConfig
  readonly worker: { readonly mode: 'embedded' | 'external'; readonly decisionSweepMs: number }
  /** How long facts, logs of archived actors, and bytes that no task refers to are kept. */
  readonly keeping: { readonly factDays: number; readonly logDays: number; readonly artifactGraceMs: number }
  /** `development` reaches loopback over http and needs no allowlist; it follows the sign-in mode, not NODE_ENV. */
  readonly network: {
    readonly profile: 'development' | 'production'
    readonly allowedOrigins: readonly string[]
    readonly allowPrivateNetworks: boolean
  }
  /** null: push is off. `signingKey` is 64 hexadecimal characters. */
  readonly push: { readonly callbackOrigin: string; readonly signingKey: string } | null
  /** null: notifications stay in the app. `secrets` holds the current one first, then the one being rotated out. */
  readonly notify: { readonly url: string; readonly organization: string; readonly secrets: readonly string[] } | null
  /** null: no key ring, so credentials can't be stored or used. */
  readonly vault: { readonly keys: Readonly<Record<string, string>>; readonly activeKey: string } | null
  readonly cards: { readonly requireSigned: boolean; readonly trustedKeys: TrustedKeys }
  readonly agents: {
    readonly registered: readonly string[]
    readonly sidebandExtensionUris: readonly string[]
    readonly extensionHost: string
  }
  readonly metrics: { readonly port: number } | null
  readonly logLevel: LogLevel
  /** Names that begin with A2A_ and that nothing reads: worth one warning, since a misspelt limit is no limit. */
  readonly unknownVariables: readonly string[]
}

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the environment of the console; throws ConfigError. */
export function readConfig(env: Environment): Config {
  return assemble(readVariables(env), env)
}

/** A worker listens to nobody and signs nobody in, so no provider's secret has to be where it is not used. */
export type WorkerConfig = Omit<Config, 'auth' | 'listen'>

/** Reads the environment of a separate worker, which has its own two refusals and then the console's rules. */
export function readWorkerConfig(env: Environment): WorkerConfig {
  const variables = readVariables(env)
  if (variables.A2A_DATABASE_PROFILE !== 'postgresql')
    throw new ConfigError('The separate worker requires PostgreSQL; PGlite uses embedded dispatch.')
  if (variables.NODE_ENV !== 'production') throw new ConfigError('The separate worker requires NODE_ENV=production.')
  // The mode still counts: which agents may be reached follows it.
  return assembleWork(variables, env, {
    mode: modeFrom(variables),
    organization: variables.A2A_AUTH_ORGANIZATION_SLUG ?? 'local',
  })
}

/** Reads what a database script needs, so that `db:migrate` runs before sign-in, push and vault are configured. */
export function readDatabaseConfig(env: Environment): {
  readonly database: DatabaseConfig
  readonly directories: DirectoriesConfig
} {
  const variables = readVariables(env)
  const directories = directoriesFrom(variables)
  return { database: databaseFrom(variables, directories), directories }
}

/** Reads what changing credentials needs: the database and the key ring, whatever else is configured by then. */
export function readCredentialsConfig(env: Environment): Pick<Config, 'database' | 'directories' | 'vault'> {
  const variables = readVariables(env)
  const directories = directoriesFrom(variables)
  return { database: databaseFrom(variables, directories), directories, vault: vaultFrom(variables) }
}

export interface ProvisioningConfig {
  readonly database: DatabaseConfig
  readonly issuer: string
  readonly organization: string
}

/** Reads what admitting people needs: the database, and whose people they are. No secret of the provider's. */
export function readProvisioningConfig(env: Environment): ProvisioningConfig {
  const variables = readVariables(env)
  return {
    database: databaseFrom(variables, directoriesFrom(variables)),
    issuer: needed(variables, 'A2A_OIDC_ISSUER', 'auth:provision'),
    organization: needed(variables, 'A2A_AUTH_ORGANIZATION_SLUG', 'auth:provision'),
  }
}

/** Blank is unset: compose files and CI settings write `A2A_X=` for a value that they leave out. */
function readVariables(env: Environment): Variables {
  const given: Record<string, string> = {}
  for (const name of Object.keys(Variables.shape)) {
    const value = env[name]?.trim() ?? ''
    if (value !== '') given[name] = value
  }
  const parsed = Variables.safeParse(given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const name = String(issue?.path[0] ?? 'environment')
  const message = issue?.message ?? 'is not valid.'
  throw new ConfigError(message.includes(name) ? message : `${name} ${message}`)
}

function assemble(variables: Variables, env: Environment): Config {
  const auth = authFrom(variables)
  return { ...assembleWork(variables, env, auth), auth, listen: listenFrom(variables, auth) }
}

type SignIn = Pick<AuthConfig, 'mode' | 'organization'>

function assembleWork(variables: Variables, env: Environment, signIn: SignIn): WorkerConfig {
  const directories = directoriesFrom(variables)
  const database = databaseFrom(variables, directories)
  const development = signIn.mode === 'development'
  return {
    production: variables.NODE_ENV === 'production',
    database,
    directories,
    worker: workerFrom(variables, database),
    keeping: {
      factDays: variables.A2A_FACT_RETENTION_DAYS ?? 7,
      logDays: variables.A2A_LOG_RETENTION_DAYS ?? 30,
      artifactGraceMs: (variables.A2A_ARTIFACT_GRACE_HOURS ?? 24) * 3_600_000,
    },
    network: {
      profile: development ? 'development' : 'production',
      allowedOrigins: variables.A2A_ALLOWED_AGENT_ORIGINS ?? [],
      allowPrivateNetworks: variables.A2A_ALLOW_PRIVATE_NETWORKS ?? false,
    },
    push: pushFrom(variables),
    notify: notifyFrom(variables, signIn),
    vault: vaultFrom(variables),
    cards: {
      requireSigned: variables.A2A_REQUIRE_SIGNED_CARDS ?? false,
      trustedKeys: variables.A2A_TRUSTED_CARD_KEYS ?? {},
    },
    agents: {
      registered: variables.A2A_REGISTERED_AGENTS ?? [],
      sidebandExtensionUris: variables.A2A_SIDEBAND_EXTENSION_URIS ?? [],
      extensionHost: variables.A2A_EXTENSION_HOST ?? 'signalbox.example',
    },
    metrics: variables.A2A_METRICS_PORT === undefined ? null : { port: variables.A2A_METRICS_PORT },
    logLevel: variables.A2A_LOG_LEVEL ?? 'info',
    unknownVariables: unknownIn(env),
  }
}

function directoriesFrom(variables: Variables): DirectoriesConfig {
  const data = resolve(variables.A2A_DATA_DIR ?? join(homedir(), '.signalbox'))
  return {
    data,
    pglite: resolve(variables.A2A_PGLITE_DATA_DIR ?? join(data, 'pglite')),
    artifacts: resolve(variables.A2A_ARTIFACT_DATA_DIR ?? join(data, 'artifacts')),
  }
}

function databaseFrom(variables: Variables, directories: DirectoriesConfig): DatabaseConfig {
  // A production server that nobody launched is upgraded on purpose, by `db:migrate`; the launcher says so itself.
  const autoMigrate = variables.A2A_AUTO_MIGRATE ?? variables.NODE_ENV !== 'production'
  if (variables.A2A_DATABASE_PROFILE !== 'postgresql')
    return { profile: 'pglite', directory: directories.pglite, autoMigrate }
  return { profile: 'postgresql', url: needed(variables, 'A2A_DATABASE_URL', 'the postgresql profile'), autoMigrate }
}

function modeFrom(variables: Variables): AuthConfig['mode'] {
  const production = variables.NODE_ENV === 'production'
  const mode = variables.A2A_AUTH_MODE ?? (production ? 'oidc' : 'development')
  if (mode === 'development' && production && variables.A2A_ALLOW_DEVELOPMENT_AUTH !== true)
    throw new ConfigError('A2A_AUTH_MODE=development in production also requires A2A_ALLOW_DEVELOPMENT_AUTH=true.')
  return mode
}

function authFrom(variables: Variables): AuthConfig {
  const mode = modeFrom(variables)
  if (mode === 'development') return { mode, organization: variables.A2A_AUTH_ORGANIZATION_SLUG ?? 'local' }
  const why = 'A2A_AUTH_MODE=oidc'
  return {
    mode,
    issuer: needed(variables, 'A2A_OIDC_ISSUER', why),
    clientId: needed(variables, 'A2A_OIDC_CLIENT_ID', why),
    clientSecret: needed(variables, 'A2A_OIDC_CLIENT_SECRET', why),
    organization: needed(variables, 'A2A_AUTH_ORGANIZATION_SLUG', why),
    flowKey: needed(variables, 'A2A_AUTH_FLOW_KEY', why),
    origin: needed(variables, 'A2A_AUTH_ORIGIN', why),
    sessionSeconds: variables.A2A_AUTH_SESSION_SECONDS ?? 28_800,
    idleSeconds: variables.A2A_AUTH_IDLE_SECONDS ?? null,
  }
}

function listenFrom(variables: Variables, auth: AuthConfig): Config['listen'] {
  const host = variables.HOST ?? '127.0.0.1'
  // In development mode every request is the administrator, so nobody else's machine may send one.
  if (auth.mode === 'development' && !isLoopbackHost(host))
    throw new ConfigError('HOST must be a loopback address unless A2A_AUTH_MODE is oidc.')
  return { host: host === '[::1]' ? '::1' : host, port: variables.PORT ?? 3002 }
}

function workerFrom(variables: Variables, database: DatabaseConfig): Config['worker'] {
  const mode = variables.A2A_COMMAND_WORKER_MODE ?? 'embedded'
  if (mode === 'external' && database.profile !== 'postgresql')
    throw new ConfigError('External command workers require PostgreSQL.')
  return { mode, decisionSweepMs: variables.A2A_DECISION_SWEEP_MS ?? 15_000 }
}

function pushFrom(variables: Variables): Config['push'] {
  const url = variables.A2A_PUSH_CALLBACK_ORIGIN
  if (!url) return null
  const origin = originOf(url.href)
  const allowed =
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && isLoopbackHost(url.hostname) && variables.A2A_PUSH_ALLOW_LOOPBACK_HTTP === true)
  if (origin === null || !allowed)
    throw new ConfigError('A2A_PUSH_CALLBACK_ORIGIN requires an HTTPS origin (or explicitly enabled loopback HTTP).')
  const signingKey = variables.A2A_PUSH_SIGNING_KEY
  if (signingKey === undefined) throw new ConfigError('A2A_PUSH_SIGNING_KEY must contain 64 hexadecimal characters.')
  return { callbackOrigin: origin, signingKey }
}

const secretLengthMin = 32

function notifyFrom(variables: Variables, auth: SignIn): Config['notify'] {
  const url = variables.A2A_NOTIFY_WEBHOOK_URL
  if (!url) return null
  const nearby = auth.mode === 'development' && isLoopbackHost(url.hostname)
  if (url.protocol !== 'https:' && !nearby) throw new ConfigError('A2A_NOTIFY_WEBHOOK_URL must be an HTTPS URL.')
  const current = variables.A2A_NOTIFY_WEBHOOK_SECRET ?? ''
  const previous = variables.A2A_NOTIFY_WEBHOOK_SECRET_PREVIOUS
  if (current.length < secretLengthMin)
    throw new ConfigError(`A2A_NOTIFY_WEBHOOK_SECRET must have at least ${secretLengthMin} characters.`)
  if (previous !== undefined && previous.length < secretLengthMin)
    throw new ConfigError(`A2A_NOTIFY_WEBHOOK_SECRET_PREVIOUS must have at least ${secretLengthMin} characters.`)
  return {
    url: url.href,
    organization: variables.A2A_NOTIFY_WEBHOOK_ORGANIZATION ?? auth.organization,
    secrets: previous === undefined ? [current] : [current, previous],
  }
}

function vaultFrom(variables: Variables): Config['vault'] {
  const keys = variables.A2A_VAULT_KEYS
  const activeKey = variables.A2A_VAULT_ACTIVE_KEY
  if (!keys && activeKey === undefined) return null
  if (!keys) throw new ConfigError('A2A_VAULT_ACTIVE_KEY is set without A2A_VAULT_KEYS.')
  if (activeKey === undefined || !Object.hasOwn(keys, activeKey))
    throw new ConfigError('A2A_VAULT_ACTIVE_KEY must be the id of one of the keys in A2A_VAULT_KEYS.')
  return { keys, activeKey }
}

function needed<K extends keyof Variables>(variables: Variables, name: K, why: string): NonNullable<Variables[K]> {
  const value = variables[name]
  if (value === undefined || value === null) throw new ConfigError(`${name} is required by ${why}.`)
  return value
}

/** Read elsewhere on purpose: per request, or by the tests, the wrapper and its backends. */
const readElsewhere = /^A2A_(?:AGUI_ENABLED$|TEST_|WRAPPER_)/
const unknownIn = (env: Environment): string[] =>
  Object.keys(env)
    .filter((name) => name.startsWith('A2A_') && !Object.hasOwn(Variables.shape, name) && !readElsewhere.test(name))
    .toSorted()
