/**
 * The process's log: JSON lines on stdout, without secrets and without what people and agents said. Owns what is told of an error, and
 * which fields are never written; not what is logged (every floor logs its own, by ids and words).
 */
import { pino, type Level, type Logger, type LoggerOptions } from 'pino'

/**
 * A last net: nothing that is logged today has such a field. Headers and bodies are not logged at all.
 * `*`: one level down, as in `{credential: {token}}`.
 */
const secretNames = [
  'authorization',
  'cookie',
  'set-cookie',
  'token',
  // As OAuth spells them.
  'access_token',
  'id_token',
  'refresh_token',
  'client_secret',
  'secret',
  'clientSecret',
  'password',
  'credential',
]
const secrets = secretNames.flatMap((name) => [`["${name}"]`, `*["${name}"]`])

/** Names of an error, of a database's object or of a rule. Never its `values`, `row` or `detail`, which are what somebody wrote. */
const toldOfErrors = ['code', 'constraint', 'table', 'column', 'sql', 'syscall', 'address', 'port', 'status'] as const
/** An outage is wrapped three times at most; a chain that bites its tail must end. */
const causesTold = 5

type ErrorTold = Record<string, unknown>

export function tellError(error: unknown, depth = 0): ErrorTold {
  if (!(error instanceof Error)) return { type: typeof error, message: 'Something was thrown that is no error.' }
  const told: ErrorTold = { type: error.name, message: error.message, stack: error.stack }
  for (const [name, value] of Object.entries(error))
    if (toldOfErrors.some((each) => each === name) && (typeof value === 'string' || typeof value === 'number'))
      told[name] = value
  if (depth >= causesTold) return told
  if (error.cause !== undefined) told['cause'] = tellError(error.cause, depth + 1)
  if (error instanceof AggregateError)
    told['errors'] = error.errors.slice(0, causesTold).map((each: unknown) => tellError(each, depth + 1))
  return told
}

export const logOptions = (level: Level | 'silent'): LoggerOptions => ({
  level,
  redact: secrets,
  serializers: { err: (error: unknown) => tellError(error) },
})

export const openLog = (level: Level | 'silent'): Logger => pino(logOptions(level))
