/**
 * What a console process does between its start and its end: reads its configuration, opens the system, listens, and drains
 * when it is asked to end. Does not own the process's exit (process.ts), nor which parts are laid in (console.ts: none).
 */
import type { FastifyInstance } from 'fastify'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openLog, openSystem, type Parts } from './composition.ts'
import { readConfig, type Config } from './config.ts'
import { isLoopbackHost } from './loopback.ts'
import { ending } from './process.ts'

/** The built console lies beside the built server; run from source it is where the build put it. */
function uiDirectory(): string | null {
  const built = ['../ui/', '../dist/ui/'].map((path) => fileURLToPath(new URL(path, import.meta.url)))
  return (
    built.find((directory) => existsSync(join(directory, 'index.html')) && !existsSync(join(directory, 'main.ts'))) ??
    null
  )
}

function rulesOf(config: Config) {
  if (config.auth.mode === 'oidc') return { mode: 'oidc' as const, origin: config.auth.origin }
  return { mode: 'development' as const }
}

/** Rejects when the embedded database's thread is gone: nothing can be promised any more. */
const lost = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('The database is gone.', { cause: signal.reason })), {
      once: true,
    }),
  )

/** A client that is half way through a request may end it; then its line is cut, and the drain of deliveries begins. */
const farewellMs = 2_000

async function closeServer(server: FastifyInstance): Promise<void> {
  const late = setTimeout(() => server.server.closeAllConnections(), farewellMs)
  try {
    await server.close()
  } finally {
    clearTimeout(late)
  }
}

/** Serves until the process is asked to end, and drains. Rejects when it cannot start or cannot go on. */
export async function serveConsole(environment: NodeJS.ProcessEnv, parts: Parts = {}): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config.logLevel)
  for (const name of config.unknownVariables) log.warn({ name }, 'an unknown A2A_ variable is ignored')
  // Loading the HTTP floor takes about as long as opening the database, so the two go side by side.
  const [{ buildServer }, running] = await Promise.all([
    import('../http/server.ts'),
    openSystem(config, log, config.worker.mode === 'embedded', true, parts),
  ])
  const administrator = await running.system.localAdministrator()
  await running.system.agents.seed(administrator.organizationId, config.agents.registered)
  const drain = new AbortController()
  const server = buildServer({
    system: running.system,
    db: running.db,
    auth: rulesOf(config),
    // Sign-in by a provider comes with part 3; until then nobody is signed in where it is asked for.
    identify: () => Promise.resolve(config.auth.mode === 'development' ? administrator : null),
    loopbackOnly: config.auth.mode === 'development' && isLoopbackHost(config.listen.host),
    sidebandUris: config.agents.sidebandExtensionUris,
    drain: drain.signal,
    uiDirectory: uiDirectory(),
    log,
  })
  try {
    await server.listen(config.listen)
    log.info({ port: config.listen.port, pid: process.pid }, 'console ready')
    await ending([running.system.supervisor.ended, lost(running.db.lost)])
  } finally {
    // Streams end politely and new requests are refused before the system stops taking work.
    drain.abort()
    await closeServer(server)
    await running.close()
  }
}
