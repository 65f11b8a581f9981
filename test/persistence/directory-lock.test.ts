/** One process per data directory, proved with real processes: simultaneous starts, kill -9, stale files, reused pids. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DirectoryLocked, lockDataDirectory } from '../../bin/directory-lock.ts'

const module = new URL('../../bin/directory-lock.ts', import.meta.url).href
/** Says `got` or `refused`, then stays until its stdin closes: it dies with this test. */
const starter = `
  const { lockDataDirectory } = await import(${JSON.stringify(module)})
  process.stdin.resume().once('end', () => process.exit())
  try { lockDataDirectory(process.argv[1]); console.log('got') } catch (error) { console.log(error.name === 'DirectoryLocked' ? 'refused' : error.stack) }`

interface Starter {
  readonly child: ChildProcess
  readonly word: Promise<string>
}

describe('a data directory', () => {
  let folder: string
  let directory: string
  let children: ChildProcess[]
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'signalbox-lock-'))
    directory = join(folder, 'data')
    children = []
  })
  afterEach(async () => {
    await Promise.all(children.map(kill))
    rmSync(folder, { recursive: true })
  })

  function start(): Starter {
    const child = spawn(process.execPath, ['--input-type=module', '-e', starter, directory], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    children.push(child)
    if (!child.stdout) throw new Error('no stdout')
    const word = once(createInterface(child.stdout), 'line').then(([line]) => String(line))
    return { child, word }
  }

  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  const file = () => join(directory, 'signalbox.pid')

  it('is created for its owner only, and says who has it', () => {
    const lock = lockDataDirectory(directory)
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    expect(readFileSync(file(), 'utf8').split('\n')[0]).toBe(String(process.pid))
    lock.release()
    expect(readdirSync(directory)).toEqual([])
  })

  it('has one owner, also within a process, until it is released', () => {
    const lock = lockDataDirectory(directory)
    expect(() => lockDataDirectory(directory)).toThrow(DirectoryLocked)
    lock.release()
    lockDataDirectory(directory).release()
  })

  it('refuses another process at once, naming the owner', async () => {
    const owner = start()
    expect(await owner.word).toBe('got')
    const before = performance.now()
    const refusal = refused(directory)
    expect(performance.now() - before).toBeLessThan(4_000)
    expect(refusal.pid).toBe(owner.child.pid)
    expect(refusal.message).toBe(`${directory} is in use by another process (pid ${owner.child.pid}).`)
  })

  it('is free at once after kill -9', async () => {
    const owner = start()
    expect(await owner.word).toBe('got')
    await kill(owner.child)
    lockDataDirectory(directory).release()
  })

  it('goes to exactly one of twelve that start on a stale file', async () => {
    const dead = start()
    expect(await dead.word).toBe('got')
    await kill(dead.child)
    expect(readFileSync(file(), 'utf8')).not.toBe('')
    const words = await Promise.all(Array.from({ length: 12 }, () => start().word))
    expect(words.filter((word) => word === 'got')).toHaveLength(1)
    expect(words.filter((word) => word === 'refused')).toHaveLength(11)
    expect(readdirSync(directory)).toEqual(['signalbox.pid'])
  })

  it('is free when the file’s pid belongs to another process by now', async () => {
    const owner = start()
    expect(await owner.word).toBe('got')
    const [, startTime = ''] = readFileSync(file(), 'utf8').split('\n')
    await kill(owner.child)
    // This test's own pid, with the dead process's start: a pid that was used again.
    writeFileSync(file(), `${process.pid}\n${startTime}\nx\n`)
    lockDataDirectory(directory).release()
  })

  it.each(['', 'nonsense', '99999999\n\n\n'])('is free when the file says %j', (content) => {
    lockDataDirectory(directory).release()
    writeFileSync(file(), content)
    const lock = lockDataDirectory(directory)
    expect(readFileSync(file(), 'utf8')).toMatch(`${process.pid}\n`)
    lock.release()
  })

  it('is left to its new owner by an old one that releases late', () => {
    const old = lockDataDirectory(directory)
    writeFileSync(file(), 'somebody else\n')
    old.release()
    expect(readFileSync(file(), 'utf8')).toBe('somebody else\n')
  })
})

function refused(directory: string): DirectoryLocked {
  try {
    lockDataDirectory(directory)
  } catch (error) {
    if (error instanceof DirectoryLocked) return error
    throw error
  }
  throw new Error('The directory was free.')
}
