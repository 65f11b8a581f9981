/**
 * The real console for a test, on a loopback port of the system's choice: composed in process on a fresh database
 * (`startConsole`), or as a child that may be killed (`spawnConsole`). Owns what it made: server, system, database, files.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join, resolve } from 'node:path'
import type { SystemOptions } from '../../actors/system.ts'
import type { Viewer } from '../../domain/access.ts'
import { bySession } from '../../http/callers.ts'
import type { AuthRule } from '../../http/door.ts'
import { closeServer } from '../../http/close-server.ts'
import { buildServer } from '../../http/server.ts'
import type { Database, Profile } from '../../persistence/database.ts'
import { Client } from './api.ts'
import { freshDatabase, type bothDatabases } from './databases.ts'
import { placeDatabase } from './migrated-dump.ts'
import { systemOn, type RunningSystem } from './system.ts'
import { openTestLog, type TestLog } from './test-log.ts'
import { childArgs } from './child.ts'
import { freePort } from './free-port.ts'

export interface ConsoleOptions {
  /** A fresh database of that kind, or one that the test opened and will close. */
  readonly database: (typeof bothDatabases)[number] | Database
  readonly system?: Partial<
    Pick<
      SystemOptions,
      | 'works'
      | 'release'
      | 'policy'
      | 'cards'
      | 'outbound'
      | 'sidebandUris'
      | 'push'
      | 'rhythm'
      | 'limits'
      | 'vault'
      | 'artifactDirectory'
    >
  >
  /** Who a request is, where it is not always the local administrator. */
  readonly identify?: (administrator: Viewer, request: { readonly headers: IncomingHttpHeaders }) => Viewer | null
  /** People by their session cookies, instead of `identify` (people.ts, provider.ts). */
  readonly oidc?: (running: RunningSystem) => Extract<AuthRule, { readonly mode: 'oidc' }>
  /** Default: the built console where there is one. Null: the API alone. */
  readonly uiDirectory?: string | null
}

export interface TestConsole extends RunningSystem {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly api: Client
  /** What the HTTP floor logged, by levels of debug and above; the system's own lines are in `lines`. */
  readonly log: TestLog
  /** What the process does first on SIGTERM: streams end, waits are answered. */
  drain(): void
}

const root = resolve(import.meta.dirname, '../..')
const builtUi = join(root, 'dist/ui')

export async function startConsole(options: ConsoleOptions): Promise<TestConsole> {
  const { database, identify = (administrator) => administrator } = options
  const fresh = typeof database === 'string' ? await freshDatabase(database) : null
  const running = await systemOn(fresh?.db ?? (database as Database), options.system)
  const log = openTestLog()
  const draining = new AbortController()
  const auth = options.oidc?.(running)
  const server = buildServer({
    system: running.system,
    db: running.db,
    log: log.logger,
    sidebandUris: options.system?.sidebandUris ?? [],
    auth: auth ?? { mode: 'development' },
    identify: auth ? bySession(auth.sessions) : (request) => Promise.resolve(identify(running.viewer, request)),
    loopbackOnly: auth === undefined,
    drain: draining.signal,
    uiDirectory: options.uiDirectory === undefined ? uiIfBuilt() : options.uiDirectory,
    version: '0.0.0-test',
  })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    ...running,
    url,
    api: new Client(url),
    log,
    drain: () => draining.abort(),
    async close() {
      draining.abort()
      await closeServer(server)
      await running.close()
      await fresh?.close()
    },
  }
}

const uiIfBuilt = (): string | null => (existsSync(join(builtUi, 'index.html')) ? builtUi : null)

export interface SpawnedConsole {
  readonly url: string
  readonly process: ChildProcess
  /** What it wrote to stdout and stderr so far. */
  output(): string
  /** SIGKILL: nothing is drained. Resolves when the process is gone. */
  kill(): Promise<void>
  /** SIGTERM, as an operator stops it. Resolves to the exit code. */
  stop(): Promise<number | null>
}

export interface SpawnOptions {
  /** Holds the pid file, the artifacts and, for the embedded profile, the database. The caller removes it. */
  readonly dataDirectory: string
  /** `pglite`: in the data directory, where a migrated one is put unless there is one (`placeDatabase`). */
  readonly database: 'pglite' | Extract<Profile, { kind: 'postgresql' }>
  /** Laid over the child's environment. */
  readonly env?: Readonly<Record<string, string>>
  /** The composition root; default: the product's own. */
  readonly root?: 'bin/console.ts' | 'test/support/crowd-console.ts'
}

const readyWithinMs = 60_000

/** Runs `bin/console.ts` as a process of its own, and waits until it answers. */
export async function spawnConsole(options: SpawnOptions): Promise<SpawnedConsole> {
  const port = await freePort()
  const { database, dataDirectory } = options
  if (database === 'pglite') await placeDatabase(dataDirectory)
  const child = spawn(process.execPath, childArgs(join(root, options.root ?? 'bin/console.ts')), {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...inherited(),
      NODE_ENV: 'development',
      A2A_AUTH_MODE: 'development',
      A2A_DATA_DIR: dataDirectory,
      HOST: '127.0.0.1',
      PORT: String(port),
      ...(database === 'pglite'
        ? { A2A_DATABASE_PROFILE: 'pglite' }
        : { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: database.url }),
      ...options.env,
    },
  })
  let output = ''
  const hear = (chunk: Buffer): void => void (output += chunk.toString())
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  const url = `http://127.0.0.1:${port}`
  const ended = once(child, 'exit')
  const end = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
    return child.exitCode
  }
  try {
    await untilReady(`${url}/api/auth/session`, child)
  } catch (error) {
    await end('SIGKILL')
    throw new Error(`The console did not start: ${output}`, { cause: error })
  }
  return {
    url,
    process: child,
    output: () => output,
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
  }
}

/** Nothing of the console's own configuration may leak from whoever runs the tests. */
const inherited = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('A2A_')))

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + readyWithinMs
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('The process ended.')
    const status = await fetch(url).then(
      (response) => response.status,
      () => 0,
    )
    // In oidc mode nobody is signed in yet, and that is an answer.
    if (status === 200 || status === 401) return
    if (performance.now() > deadline) throw new Error(`No answer within ${readyWithinMs} ms.`)
    await new Promise((again) => setTimeout(again, 25))
  }
}
