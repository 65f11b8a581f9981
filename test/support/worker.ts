/** A separate worker as a process of its own, for tests of deployments with several processes. Owns the process only. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { childArgs } from './child.ts'

export interface SpawnedWorker {
  readonly process: ChildProcess
  output(): string
  /** SIGTERM, as an operator stops it. Resolves to the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL: nothing is drained. */
  kill(): Promise<void>
}

export interface EndedWorker {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const root = resolve(import.meta.dirname, '../..')
const entry = fileURLToPath(new URL('../../bin/worker.ts', import.meta.url))

/** Nothing of the console's own configuration may leak from whoever runs the tests. */
const inherited = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('A2A_') && name !== 'NODE_ENV' && name !== 'HOST'),
  )

function launch(env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, childArgs(entry), {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited(), ...env },
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()))
  return { child, said }
}

/** Runs a worker to its end, for one that is to refuse. */
export async function runWorker(env: Readonly<Record<string, string>>): Promise<EndedWorker> {
  const { child, said } = launch(env)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...said }
}

/** Starts a worker and waits until it says that it is ready. */
export async function spawnWorker(env: Readonly<Record<string, string>>): Promise<SpawnedWorker> {
  const { child, said } = launch(env)
  const ended = once(child, 'close')
  const ready = new Promise<void>((resolveReady, reject) => {
    child.stdout.on('data', () => said.stdout.includes('worker ready') && resolveReady())
    child.once('close', () => reject(new Error(`The worker did not start: ${said.stdout}${said.stderr}`)))
  })
  await ready
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
    return child.exitCode
  }
  return {
    process: child,
    output: () => said.stdout + said.stderr,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  }
}
