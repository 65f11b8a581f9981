/**
 * One process per data directory. PGlite takes no lock and two openers lose each other's commits (583 of 1,935 acknowledged
 * ones in a trial), so every opener, scripts included, takes this first and holds it while it lives.
 *
 * Two means. On Linux an abstract socket named after the directory's device and inode: the kernel frees it at the process's
 * end, however that comes. Everywhere a file with the owner's pid and start time, which also says who it is.
 * Not covered: two containers that share the directory but neither the network nor the process namespace.
 */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'

export class DirectoryLocked extends Error {
  override readonly name = 'DirectoryLocked'
  /** Undefined when the owner is alive but its file is not there (yet). */
  readonly pid: number | undefined
  constructor(directory: string, pid: number | undefined) {
    super(`${directory} is in use by another process${pid === undefined ? '' : ` (pid ${pid})`}.`)
    this.pid = pid
  }
}

export interface DirectoryLock {
  /** Also happens when the process exits. */
  release(): void
}

/** Takes the directory, creating it (for its owner only) if need be, or throws DirectoryLocked at once. */
export function lockDataDirectory(directory: string, fileName = 'signalbox.pid'): DirectoryLock {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const file = join(directory, fileName)
  const socket = process.platform === 'linux' ? claimSocket(directory, file) : undefined
  const owner = describeSelf()
  try {
    claimFile(directory, file, owner, TAKEOVER_DEPTH)
  } catch (error) {
    socket?.close()
    throw error
  }
  const release = (): void => {
    process.off('exit', release)
    if (readIfThere(file) === owner) rmSync(file, { force: true })
    socket?.close()
  }
  process.once('exit', release)
  return { release }
}

/**
 * `listen` on a path binds before it returns and reports a failure later, so `listening` answers at once.
 * Unreferenced: the lock never keeps a process alive.
 */
function claimSocket(directory: string, file: string): Server {
  const { dev, ino } = statSync(directory, { bigint: true })
  const server = createServer((connection) => connection.destroy())
  let failure: Error | undefined
  server.on('error', (error) => {
    failure = error
  })
  server.listen({ path: `\0signalbox-${dev}-${ino}`, exclusive: true })
  if (!server.listening) throw new DirectoryLocked(directory, ownerOf(readIfThere(file))?.pid)
  server.unref()
  if (failure) throw failure
  return server
}

/** Each level is a starter that died in the middle of a takeover: a machine that kills more than this in a row has other troubles. */
const TAKEOVER_DEPTH = 4
/** Rounds in which the file changed hands between two looks at it. */
const ROUNDS = 50

/**
 * link() makes the file appear whole or not at all. A dead owner's file is replaced only by who holds the claim named
 * after exactly that content, and who, holding it, still finds that content: so of many starters one replaces it.
 */
function claimFile(directory: string, file: string, owner: string, depth: number): void {
  for (let round = 0; round < ROUNDS; round += 1) {
    if (publish(file, owner, linkSync)) return
    const found = readIfThere(file)
    if (found === undefined) continue
    const other = ownerOf(found)
    if (other && isRunning(other)) throw new DirectoryLocked(directory, other.pid)
    if (depth === 0) break
    const claim = `${file}.${createHash('sha256').update(found).digest('hex').slice(0, 16)}`
    claimFile(directory, claim, owner, depth - 1)
    try {
      if (readIfThere(file) === found && publish(file, owner, renameSync)) return
    } finally {
      rmSync(claim, { force: true })
    }
  }
  throw new DirectoryLocked(directory, ownerOf(readIfThere(file))?.pid)
}

/** False when the file exists and `place` doesn't replace. */
function publish(file: string, content: string, place: (from: string, to: string) => void): boolean {
  const draft = `${file}.${process.pid}-${randomBytes(4).toString('hex')}.new`
  writeFileSync(draft, content, { mode: 0o600 })
  try {
    place(draft, file)
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

interface Owner {
  readonly pid: number
  /** Tells this process from a later one with the same pid, also after a reboot. Empty where the system can't say. */
  readonly start: string
}

/** Three lines: the pid (so that `cat` and `kill` are easy), its start, and a nonce that makes every lock's content its own. */
function describeSelf(): string {
  return `${process.pid}\n${startOf(process.pid) ?? ''}\n${randomBytes(8).toString('hex')}\n`
}

function ownerOf(content: string | undefined): Owner | undefined {
  const [pid, start] = content?.split('\n') ?? []
  const number = Number(pid)
  return Number.isInteger(number) && number > 0 ? { pid: number, start: start ?? '' } : undefined
}

function isRunning(owner: Owner): boolean {
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    if (errorCode(error) !== 'EPERM') return false
  }
  const start = startOf(owner.pid)
  if (start === undefined) return false
  return owner.start === '' || start === '' || owner.start === start
}

/** Undefined: no such process, or one that has ended and waits to be collected. */
function startOf(pid: number): string | undefined {
  if (process.platform === 'linux') {
    const stat = readIfThere(`/proc/${pid}/stat`)
    if (stat === undefined) return undefined
    // proc(5): the name in parentheses may hold anything; after it the state is field 3 and the start, in ticks, field 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${fields[19] ?? ''}`
  }
  if (process.platform === 'win32') return ''
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    // ps exits with 1 and says nothing when there is no such process.
    return undefined
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = errorCode(error)
    // A process that ends while its /proc file is read gives ESRCH.
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw error
  }
}

const errorCode = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
