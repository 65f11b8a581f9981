/**
 * A separate worker: does the background work of consoles that run with A2A_COMMAND_WORKER_MODE=external, on the same
 * PostgreSQL. Any number may run. Does not listen, and does not apply migrations: on a schema that is older or newer than
 * its own it ends with one line and exit code 1, so that whoever runs it (systemd, Kubernetes) starts it again.
 */
import { readWorkerConfig } from './config.ts'
import { listenMetrics } from './metrics.ts'
import { ending, runProcess } from './process.ts'
import { packageVersion } from './version.ts'

await runProcess('signalbox worker', async () => {
  const config = readWorkerConfig(process.env)
  // Loaded only now: a refusal is said at once.
  const { openSystem } = await import('./composition.ts')
  const { openLog } = await import('./log.ts')
  const log = openLog(config.logLevel)
  for (const name of config.unknownVariables) log.warn({ name }, 'an unknown A2A_ variable is ignored')
  const running = await openSystem(config, log, true, false)
  const drain = new AbortController()
  let closeMetrics = (): Promise<void> => Promise.resolve()
  try {
    closeMetrics = await listenMetrics(config, running, drain.signal, null)
    log.info({ pid: process.pid, release: packageVersion }, 'worker ready')
    await ending([running.system.supervisor.ended])
  } finally {
    // Also after the supervisor gave up: a delivery that is under way still ends with what is known of it.
    drain.abort()
    await running.close()
    await closeMetrics()
  }
})
