/**
 * The real console for a test, on a loopback port of the system's choice: composed in process on a fresh database
 * (`startConsole`), or as a child that may be killed (`spawnConsole`). Owns what it made: server, system, database, files.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { System, type SystemOptions } from '../../actors/system.ts'
import type { Viewer } from '../../domain/access.ts'
import { buildServer, type ServerOptions } from '../../http/server.ts'
import type { Database, Profile } from '../../persistence/database.ts'
import { bothDatabases, freshDatabase } from './databases.ts'
import { openTestLog, type TestLog } from './test-log.ts'

export interface ConsoleOptions extends Partial<Pick<SystemOptions, 'works' | 'policy' | 'sidebandUris'>> {
  /** A fresh database of that kind, or one that the test opened and will close. */
  readonly database: (typeof bothDatabases)[number] | Database
  /** Who every request is, where it is not the local administrator. */
  readonly identify?: (administrator: Viewer) => Viewer | null
  readonly auth?: ServerOptions['auth']
  /** Default: the built console where there is one. Null: the API alone. */
  readonly uiDirectory?: string | null
}

export interface TestConsole {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly system: System
  readonly db: Database
  readonly administrator: Viewer
  readonly log: TestLog
  /** What the process does on SIGTERM first: streams end, waits are answered. */
  drain(): void
  close(): Promise<void>
}

const root = resolve(import.meta.dirname, '../..')
const builtUi = join(root, 'dist/ui')
const development = { profile: 'development', allowPrivateNetworks: false, allowedOrigins: [] } as const

export async function startConsole(options: ConsoleOptions): Promise<TestConsole> {
  const { database, works = true, policy = development, sidebandUris = [], identify = (admin) => admin } = options
  const fresh = typeof database === 'string' ? await freshDatabase(database) : null
  const db = fresh?.db ?? (database as Database)
  const artifactDirectory = mkdtempSync(join(tmpdir(), 'signalbox-artifacts-'))
  const log = openTestLog()
  const extensionHost = 'signalbox.example'
  const system = new System({
    ...{ db, log, works, policy, sidebandUris, artifactDirectory, extensionHost },
    parserThreads: 1,
  })
  await system.start()
  const administrator = await system.localAdministrator()
  const draining = new AbortController()
  const server = buildServer({
    system,
    db,
    log: log.logger,
    sidebandUris,
    auth: options.auth ?? { mode: 'development' },
    identify: () => Promise.resolve(identify(administrator)),
    loopbackOnly: true,
    drain: draining.signal,
    uiDirectory: options.uiDirectory === undefined ? uiIfBuilt() : options.uiDirectory,
  })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    url,
    system,
    db,
    administrator,
    log,
    drain: () => draining.abort(),
    async close() {
      draining.abort()
      await server.close()
      await system.stop()
      await fresh?.close()
      rmSync(artifactDirectory, { recursive: true, force: true })
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
  /** `pglite`: in the data directory. */
  readonly database: 'pglite' | Extract<Profile, { kind: 'postgresql' }>
  /** Laid over the child's environment. */
  readonly env?: Readonly<Record<string, string>>
}

const readyWithinMs = 60_000

/** Runs `bin/console.ts` as a process of its own, and waits until it answers. */
export async function spawnConsole(options: SpawnOptions): Promise<SpawnedConsole> {
  const port = await freePort()
  const { database, dataDirectory } = options
  const child = spawn(process.execPath, [join(root, 'bin/console.ts')], {
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
    if (status === 200) return
    if (performance.now() > deadline) throw new Error(`No answer within ${readyWithinMs} ms.`)
    await new Promise((again) => setTimeout(again, 25))
  }
}

/** Somebody else may take it before the child does; then the child ends and says so. */
async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
