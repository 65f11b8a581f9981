/**
 * What a console process does between its start and its end: reads its configuration, opens the system, listens, and drains
 * when it is asked to end. Does not own the process's exit (process.ts), nor which parts are laid in (console.ts: none).
 */
import type { FastifyInstance } from 'fastify'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Admission } from './admission.ts'
import type { Parts } from './composition.ts'
import { readConfig } from './config.ts'
import { isLoopbackHost } from '../domain/loopback.ts'
import { closeServer } from '../http/close-server.ts'
import { listening } from './launcher-ready.ts'
import { openLog } from './log.ts'
import { listenMetrics } from './metrics.ts'
import { ending } from './process.ts'
import { packageVersion } from './version.ts'

/** The built console lies beside the built server; run from source it is where the build put it. */
function uiDirectory(): string | null {
  const built = ['../ui/', '../dist/ui/'].map((path) => fileURLToPath(new URL(path, import.meta.url)))
  return (
    built.find((directory) => existsSync(join(directory, 'index.html')) && !existsSync(join(directory, 'main.ts'))) ??
    null
  )
}

/** Rejects when the embedded database's thread is gone: nothing can be promised any more. */
const lost = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('The database is gone.', { cause: signal.reason })), {
      once: true,
    }),
  )

/** Serves until the process is asked to end, and drains. Rejects when it cannot start or cannot go on. */
export async function serveConsole(environment: NodeJS.ProcessEnv, parts: Parts = {}): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config.logLevel)
  for (const name of config.unknownVariables) log.warn({ name }, 'an unknown A2A_ variable is ignored')
  // Loaded only now: a refusal is said at once. Loading the HTTP floor takes about as long as opening the database: the two go side by side.
  const [running, { openAdmission }, { buildServer }] = await Promise.all([
    import('./composition.ts').then(({ openSystem }) =>
      openSystem(config, log, config.worker.mode === 'embedded', true, parts),
    ),
    import('./admission.ts'),
    import('../http/server.ts'),
  ])
  const drain = new AbortController()
  let admission: Admission | null = null
  let server: FastifyInstance | null = null
  let closeMetrics = (): Promise<void> => Promise.resolve()
  // Workers run from here on: whatever fails, they are drained.
  try {
    admission = await openAdmission(config.auth, running)
    await running.system.agents.seed(admission.organizationId, config.agents.registered)
    server = buildServer({
      system: running.system,
      db: running.db,
      auth: admission.auth,
      identify: admission.identify,
      loopbackOnly: config.auth.mode === 'development' && isLoopbackHost(config.listen.host),
      sidebandUris: config.agents.sidebandExtensionUris,
      drain: drain.signal,
      uiDirectory: uiDirectory(),
      version: packageVersion,
      log,
    })
    closeMetrics = await listenMetrics(config, running, drain.signal, server)
    await server.listen(config.listen)
    // Unheard where the launcher is gone by now: then the channel's end is what this process hears, and it drains.
    process.send?.(listening, undefined, undefined, () => undefined)
    log.info({ port: config.listen.port, pid: process.pid, release: packageVersion }, 'console ready')
    await ending([running.system.supervisor.ended, lost(running.db.lost)])
  } finally {
    // Streams end politely and new requests are refused before the system stops taking work.
    drain.abort()
    if (server) await closeServer(server)
    await admission?.close()
    await running.close()
    await closeMetrics()
  }
}
