/**
 * A separate worker: does the background work of consoles that run with A2A_COMMAND_WORKER_MODE=external, on the same
 * PostgreSQL. Any number may run. Does not apply migrations and does not listen.
 */
import { openLog, openSystem } from './composition.ts'
import { readWorkerConfig } from './config.ts'
import { ending, runProcess } from './process.ts'

await runProcess('signalbox worker', async () => {
  const config = readWorkerConfig(process.env)
  const log = openLog(config.logLevel)
  const running = await openSystem(config, log, true, false)
  log.info({ pid: process.pid }, 'worker ready')
  await ending([running.system.supervisor.ended])
  await running.close()
})
