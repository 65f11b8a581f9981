/**
 * Processes of the product, started, told, killed and listened to. A worker is the product's own entry unless `storm` says otherwise;
 * a console is test/chaos/doomed/process.ts. Owns processes and their output; a port belongs to whoever asked for it.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ProcessEnd } from './checker.ts'
import { childArgs } from '../support/child.ts'

const root = resolve(import.meta.dirname, '../..')
const readyWithinMs = 60_000
const lookMs = 20
const diesWithinMs = 20_000
const wordsKept = 4_000

export interface Member {
  readonly name: string
  /** Empty for a worker. */
  readonly url: string
  readonly process: ChildProcess
  output(): string
  /** One line for the storm's composition root; resolves when it was heard. */
  tell(said: Readonly<Record<string, unknown>>): Promise<void>
  /** Resolves with how it ended: a signal's name or an exit code. */
  readonly ended: Promise<string>
  /** Bytes that it holds once its garbage is collected; of the storm's composition root only. */
  heldBytes(): Promise<number>
  signal(signal: NodeJS.Signals): void
  /** Whether it stands still (SIGSTOP), by the system's word. */
  isStopped(): boolean
  /** Sends the signal and waits for the end, which is thereby the expected one. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<string>
  /** It was armed to die at a point: waits for that, and fails when it goes on living. */
  diesAt(point: string): Promise<void>
  /** Its end was foreseen. */
  expect(end: string): void
  /** It may end like that, or go on. */
  allow(end: string): void
  report(): ProcessEnd
  /** Rejects with its last words when it ends otherwise than it was meant to. */
  readonly astray: Promise<never>
}

export interface Order {
  readonly kind: 'console' | 'worker'
  /** The storm's composition root with these arguments; without any, a worker is the product's own entry. */
  readonly storm?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** For a console. */
  readonly port?: number
  /** Node.js's own options, which stand before the entry. */
  readonly before?: readonly string[]
}

let launched = 0
/** Whatever ends the tests ends what they started. */
const living = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

export async function launch(order: Order): Promise<Member> {
  const { kind, port = 0 } = order
  const name = `${kind} ${++launched}`
  // The callers of a storm are a crowd in one person, whom the product's own console would tell to come back in a minute.
  const entry: [string, ...string[]] =
    order.storm || kind === 'console'
      ? [join(root, 'test/chaos/doomed/process.ts'), kind, ...(order.storm ?? [])]
      : [join(root, 'bin/worker.ts')]
  const child = spawn(process.execPath, [...(order.before ?? []), ...childArgs(...entry)], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...inherited(), HOST: '127.0.0.1', PORT: String(port), ...order.env },
  })
  const url = kind === 'console' ? `http://127.0.0.1:${port}` : ''
  const member = new Spawned(name, url, child)
  // Armed from its first line on: it may die while it starts, before anybody can say that this was meant.
  if (order.storm?.includes('--die-at')) member.allow('SIGKILL')
  try {
    await (kind === 'console' ? member.answers() : member.wrote('worker ready'))
  } catch (error) {
    child.kill('SIGKILL')
    throw new Error(`${name} did not start: ${member.output()}`, { cause: error })
  }
  return member
}

class Spawned implements Member {
  readonly name: string
  readonly url: string
  readonly process: ChildProcess
  readonly ended: Promise<string>
  readonly astray: Promise<never>
  #output = ''
  #end: string | null = null
  #expected: string | null = null
  #allowed: string | null = null
  #heard: (() => void)[] = []

  constructor(name: string, url: string, child: ChildProcess) {
    this.name = name
    this.url = url
    this.process = child
    const hear = (chunk: Buffer): void => {
      const text = chunk.toString()
      this.#output += text
      for (const _ of text.matchAll(/^heard$/gm)) this.#heard.shift()?.()
    }
    child.stdout?.on('data', hear)
    child.stderr?.on('data', hear)
    // A process that is killed cannot be told anything any more; its end says so.
    child.stdin?.on('error', () => undefined)
    living.add(child)
    child.once('exit', () => living.delete(child))
    this.ended = once(child, 'close').then(([code, signal]: unknown[]) => (this.#end = String(signal ?? code)))
    this.astray = this.ended.then((end) => {
      if (end === this.#allowed) this.#expected = end
      if (end === this.#expected) return new Promise<never>(() => undefined)
      throw new Error(`${this.name} ended with ${end}: ${this.#output.slice(-wordsKept)}`)
    })
    // Whoever plays the scenario listens; between two scenarios nobody does.
    this.astray.catch(() => undefined)
  }

  output(): string {
    return this.#output
  }

  async tell(said: Readonly<Record<string, unknown>>): Promise<void> {
    const heard = new Promise<void>((resolve) => this.#heard.push(resolve))
    this.process.stdin?.write(`${JSON.stringify(said)}\n`)
    await Promise.race([heard, this.ended.then((end) => Promise.reject(new Error(`${this.name} ended: ${end}`)))])
  }

  async heldBytes(): Promise<number> {
    await this.tell({ weigh: true })
    const [, bytes] = [...this.#output.matchAll(/^holds (\d+)$/gm)].at(-1) ?? []
    if (bytes === undefined) throw new Error(`${this.name} does not say what it holds.`)
    return Number(bytes)
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal)
  }

  isStopped(): boolean {
    // proc(5): the name in parentheses may hold anything; the state is the letter behind it.
    const stat = readFileSync(`/proc/${this.process.pid ?? 0}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T')
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<string> {
    this.expect(signal === 'SIGKILL' ? 'SIGKILL' : '0')
    if (this.#end === null) this.process.kill(signal)
    return this.ended
  }

  async diesAt(point: string): Promise<void> {
    this.expect('SIGKILL')
    const late = AbortSignal.timeout(diesWithinMs)
    await Promise.race([this.ended, once(late, 'abort')])
    if (this.#end === null) throw new Error(`${this.name} never came to ${point}: ${this.#output.slice(-2000)}`)
  }

  expect(end: string): void {
    this.#expected ??= end
  }

  allow(end: string): void {
    this.#allowed = end
  }

  report(): ProcessEnd {
    return { name: this.name, output: this.#output, ended: this.#end, expected: this.#expected }
  }

  answers(): Promise<void> {
    return this.#until(async () => {
      const status = await fetch(`${this.url}/api/auth/session`).then(
        (response) => response.status,
        () => 0,
      )
      return status === 200
    })
  }

  wrote(words: string): Promise<void> {
    return this.#until(() => Promise.resolve(this.#output.includes(words)))
  }

  async #until(ready: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + readyWithinMs
    while (!(await ready())) {
      // A process that was armed to die while it starts has done what it was asked to.
      if (this.#end !== null) {
        if (this.#end === 'SIGKILL') return
        throw new Error(`It ended with ${this.#end}.`)
      }
      if (performance.now() > deadline) throw new Error(`Not ready within ${readyWithinMs} ms.`)
      await new Promise((again) => setTimeout(again, lookMs))
    }
  }
}

/** Nothing of a console's configuration may leak from whoever runs the tests. */
const inherited = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('A2A_')))
