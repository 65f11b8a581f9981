/**
 * How a process of ours ends: by a signal, by the launcher's death, or because it cannot go on. Owns exit codes and the
 * one line that says why a start failed; does not own what is drained (composition.ts, console.ts).
 */
import { SchemaMismatch } from '../persistence/migrate.ts'
import { isDatabaseOutage } from '../persistence/outage.ts'
import { ConfigError } from './config.ts'
import { DirectoryLocked } from './directory-lock.ts'
import { SecretsUnusable } from './launcher-secrets.ts'
import { rootOf } from './root-cause.ts'

/** What the operator can mend, in one line; anything else is a defect and is printed whole. */
const isExplained = (error: unknown): error is Error =>
  error instanceof ConfigError ||
  error instanceof SecretsUnusable ||
  error instanceof SchemaMismatch ||
  error instanceof DirectoryLocked ||
  isListening(error)

const isListening = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && (error.code === 'EADDRINUSE' || error.code === 'EACCES')

function explain(error: unknown): string {
  if (isExplained(error)) return error.message
  if (isDatabaseOutage(error)) return `The database cannot be reached: ${rootOf(error)}`
  // A server's report carries a code (a missing database, a wrong password): its sentence says what to mend.
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return `${error.message} (${error.code})`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Runs a process to its end and sets its exit code: 0 after a clean drain, 1 otherwise. */
export async function runProcess(name: string, main: () => Promise<void>): Promise<void> {
  try {
    await main()
    process.exitCode = 0
  } catch (error) {
    process.stderr.write(`${name}: ${explain(error)}\n`)
    process.exitCode = 1
  }
  // Whatever still holds the loop open (a socket of a client that never hangs up) must not keep a drained process alive.
  process.exit()
}

// Heard from the moment this module is loaded: a signal or a launcher's death during the start must not be missed, nor
// kill a process that is half way through creating its database.
const asked = Promise.withResolvers<void>()
let wasAsked = false
/** Deliveries are waited for 10 s; whatever else is in the way (a dead database, a stuck socket) must not make it 15. */
const drainLimitMs = 14_500
const giveUp = (): void => {
  process.stderr.write(
    `signalbox: the drain took longer than ${drainLimitMs} ms; what is under way is left to its leases.\n`,
  )
  process.exit(1)
}
const ask = (): void => {
  // A second signal ends at once: whoever sends it does not want to wait.
  if (wasAsked) process.exit(1)
  wasAsked = true
  setTimeout(giveUp, drainLimitMs).unref()
  asked.resolve()
}
process.on('SIGTERM', ask)
process.on('SIGINT', ask)
if (process.channel) process.once('disconnect', ask)

/**
 * Resolves when the process is asked to end: SIGTERM, SIGINT, or the launcher's channel closing because it is gone.
 * Rejects with the first of `failures`.
 */
export function ending(failures: readonly Promise<unknown>[]): Promise<void> {
  return new Promise((resolve, reject) => {
    asked.promise.then(resolve, reject)
    for (const failure of failures) failure.catch(reject)
  })
}
