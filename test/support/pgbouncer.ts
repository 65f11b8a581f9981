/**
 * A real PgBouncer in transaction mode, where the machine has one: `A2A_TEST_PGBOUNCER` names the program, for no registry of ours carries
 * it. Everywhere else our own pooler (pooler.ts) does what is feared of one.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { withClient } from './pg-client.ts'
import { unprivileged } from './postgres.ts'

export const pgBouncer = process.env['A2A_TEST_PGBOUNCER'] ?? null

/** From 1.21 on it knows what a client has prepared. */
export function bouncerCarriesNames(program: string): boolean {
  const version = /PgBouncer (\d+)\.(\d+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))
  return Number(version?.[1]) > 1 || Number(version?.[2]) >= 21
}

export interface Bouncer {
  readonly url: string
  close(): Promise<void>
}

const startsWithinMs = 10_000

/** In front of the database of a URL, with so many servers. */
export async function startPgBouncer(program: string, database: string, servers: number): Promise<Bouncer> {
  const user = unprivileged()
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-bouncer-'))
  const port = await freePort()
  const { hostname, port: serverPort, pathname, username } = new URL(database)
  const name = pathname.slice(1)
  const settings = [
    '[databases]',
    `${name} = host=${hostname} port=${serverPort} dbname=${name} user=${username}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    `default_pool_size = ${servers}`,
    ...(bouncerCarriesNames(program) ? ['max_prepared_statements = 200'] : []),
  ]
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, `${settings.join('\n')}\n`)
  if (user) for (const path of [folder, file]) chownSync(path, user.uid, user.gid)
  const child = spawn(program, ['-q', file], { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)))
  const ended = once(child, 'exit')
  const url = `postgres://${username}@127.0.0.1:${port}/${name}`
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  for (const until = Date.now() + startsWithinMs; ; await setTimeout(50)) {
    const failure = await withClient(url, () => Promise.resolve(null)).catch((error: unknown) => error)
    if (failure === null) return { url, close }
    if (child.exitCode === null && Date.now() < until) continue
    await close()
    throw new Error(`PgBouncer does not answer: ${said}`, { cause: failure })
  }
}
