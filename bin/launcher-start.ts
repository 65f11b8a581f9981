/**
 * `signalbox start`: one console process, from its environment to its exit code. Owns the child's environment, waiting
 * until it answers, the browser tab, signals and the exit code. Does not own the directory's lock: the process that opens
 * the database takes it (bin/console.ts), so that it is true to that process's life whichever of the two is killed.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { registerAgents, startAgents } from './launcher-demo.ts'
import type { StartCommand } from './launcher-options.ts'
import { listening, waitUntilReady } from './launcher-ready.ts'
import { prepareDataDirectory, readOrCreateSecrets, type Secrets } from './launcher-secrets.ts'

export interface Launch {
  /** The production build. */
  readonly dist: string
  readonly version: string
  readonly env: NodeJS.ProcessEnv
}

/** How long a console that never answered is given to stop before it is killed. Killing loses nothing: a restart heals. */
const stopLimitMs = 10_000

/** Runs a console until it ends; resolves to the exit code. Throws an Error with the sentence to print. */
export async function start(command: StartCommand, launch: Launch): Promise<number> {
  const server = join(launch.dist, 'bin', 'console.js')
  // The build writes its stamp last: without it, what lies there is a part of a build.
  const parts = [server, join(launch.dist, 'ui', 'index.html'), join(launch.dist, '.build')]
  if (!parts.every((part) => existsSync(part))) throw new Error('No production build was found; run `npm run build`.')
  prepareDataDirectory(command.dataDir)
  const secrets = readOrCreateSecrets(command.dataDir)
  const child = spawnServer(server, serverEnvironment(command, launch.env, secrets))
  let listens = false
  child.on('message', (said) => {
    listens ||= said === listening
  })
  const ended = exitCodeOf(child)
  const release = forwardSignals(child)
  const gone = abortedBy(ended)
  // Beside the console's start, so that tasks of an earlier run find their agents; settled, since it may fail unawaited.
  const agents = Promise.allSettled(command.demo ? [startAgents(launch.env, command.dataDir)] : [])
  try {
    const url = urlOf(command)
    // Where somebody else listens, our console will say so and end, or get the port when they leave it.
    const ready = await waitUntilReady(url, gone, () => listens)
    if (ready === 'silent') throw new Error('The console did not answer within 120 seconds.')
    if (ready === 'ended') return await ended
    const [demo] = await agents
    if (demo?.status === 'rejected') throw demo.reason
    const hints = demo ? await registerAgents(demo.value, url, gone) : ''
    const door = doorOf(url, launch.env)
    process.stdout.write(greeting(command, launch, door, hints))
    if (wantsBrowser(command, launch.env)) await openBrowser(door)
    return await ended
  } catch (error) {
    // What failed because the console ended is told by the console, not by its echo here.
    if (gone.aborted) return await ended
    throw error
  } finally {
    release()
    for (const demo of await agents) if (demo.status === 'fulfilled') await demo.value.close()
    await stop(child, ended)
  }
}

function serverEnvironment(command: StartCommand, env: NodeJS.ProcessEnv, secrets: Secrets): NodeJS.ProcessEnv {
  const local = !env.A2A_AUTH_MODE || env.A2A_AUTH_MODE === 'development'
  const ownVault = env.A2A_VAULT_KEYS || env.A2A_VAULT_ACTIVE_KEY
  return {
    ...env,
    NODE_ENV: 'production',
    HOST: command.host,
    PORT: String(command.port),
    A2A_DATA_DIR: command.dataDir,
    A2A_AUTO_MIGRATE: env.A2A_AUTO_MIGRATE || 'true',
    A2A_LOG_LEVEL: env.A2A_LOG_LEVEL || 'warn',
    ...(local
      ? { A2A_AUTH_MODE: 'development', A2A_ALLOW_DEVELOPMENT_AUTH: env.A2A_ALLOW_DEVELOPMENT_AUTH || 'true' }
      : {}),
    ...(ownVault
      ? {}
      : { A2A_VAULT_KEYS: JSON.stringify(secrets.vaultKeys), A2A_VAULT_ACTIVE_KEY: secrets.activeVaultKey }),
  }
}

/**
 * The IPC channel carries one message, that the console listens; and it closes when this process ends, however it ends, and the
 * console drains on that.
 * A process group of its own keeps a terminal's Ctrl-C from reaching the console twice, from the terminal and from here.
 */
function spawnServer(server: string, env: NodeJS.ProcessEnv): ChildProcess {
  return spawn(process.execPath, [server], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: process.platform !== 'win32',
  })
}

/** The child's exit code as a shell tells it: a death by signal n is 128 + n. */
function exitCodeOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
  })
}

function abortedBy(ended: Promise<number>): AbortSignal {
  const controller = new AbortController()
  const abort = () => controller.abort()
  ended.then(abort, abort)
  return controller.signal
}

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** npm sends its own copy of a terminal's Ctrl-C within milliseconds; a person's second one comes later and is meant. */
const sameSignalMs = 500

function forwardSignals(child: ChildProcess): () => void {
  let lastMs = Number.NEGATIVE_INFINITY
  const forward = (signal: NodeJS.Signals) => {
    const nowMs = performance.now()
    if (nowMs - lastMs < sameSignalMs) return
    lastMs = nowMs
    child.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal)
  }
  for (const signal of forwarded) process.on(signal, forward)
  return () => {
    for (const signal of forwarded) process.off(signal, forward)
  }
}

/** Ends a child that still runs: asked first, killed after the limit. */
async function stop(child: ChildProcess, ended: Promise<number>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopLimitMs)
  await ended
  clearTimeout(timer)
}

/** Where this computer reaches the console: an address that means "every interface" is no place to go to. */
function urlOf({ host, port }: StartCommand): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** Where a person goes: sign-in comes back to the configured origin, so it has to start there. */
const doorOf = (url: string, env: NodeJS.ProcessEnv): string =>
  (env.A2A_AUTH_MODE === 'oidc' && env.A2A_AUTH_ORIGIN) || url

const greeting = (command: StartCommand, launch: Launch, door: string, hints: string): string =>
  `Signalbox ${launch.version} is ready at ${door}
Data is kept in ${command.dataDir}. Stop with Ctrl-C.
${hints}`

const wantsBrowser = (command: StartCommand, env: NodeJS.ProcessEnv): boolean =>
  command.open === 'yes' || (command.open === 'auto' && process.stdout.isTTY && !env.CI)

async function openBrowser(url: string): Promise<void> {
  const explain = () => process.stdout.write(`No browser could be opened here; visit ${url}\n`)
  try {
    const { default: open } = await import('open')
    const opened = await open(url)
    opened.once('error', explain)
    opened.once('exit', (code) => code !== 0 && explain())
  } catch {
    explain() // the console runs and its address is printed: a missing browser is no failure of the start
  }
}
