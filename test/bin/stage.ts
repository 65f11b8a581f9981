/**
 * A stage for the launcher: its real sources in a folder of their own, beside a console that is a few lines long, so that
 * what the launcher promises about *any* server process is seen on real processes, signals and ports. The real console
 * behind the real launcher is the business of the specs.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const repository = resolve(import.meta.dirname, '../..')

/** Tells what it was given, answers what it is told to, and drains as the console does. */
const consoleSource = `
import { createServer } from 'node:http'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
const { A2A_DATA_DIR: dir, HOST: host, PORT: port, STUB_EXIT, STUB_STATUS, STUB_DRAIN_CODE, STUB_DRAIN_MS } = process.env
// Whole when it is there, and there once signals are heard: a test that sees it may read it and signal.
const tell = () => {
  writeFileSync(dir + '/seen.json.draft', JSON.stringify({ pid: process.pid, env: process.env }))
  renameSync(dir + '/seen.json.draft', dir + '/seen.json')
}
if (STUB_EXIT) tell()
if (STUB_EXIT) process.exit(Number(STUB_EXIT))
const server = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => { body += chunk })
  request.on('end', () => {
    if (request.method === 'POST') appendFileSync(dir + '/posted.log', request.url + ' ' + body + '\\n')
    response.writeHead(request.method === 'POST' ? 201 : Number(STUB_STATUS ?? 200)).end('{}')
  })
})
server.on('error', (error) => { console.error('signalbox: ' + error.code); process.exit(1) })
const begin = () => server.listen(Number(port), host, () => process.send?.('listening'))
if (process.env.STUB_BEGINS === 'when told') process.once('SIGUSR2', begin)
else begin()
const drain = (why) => {
  appendFileSync(dir + '/ended.log', why + '\\n')
  setTimeout(() => process.exit(Number(STUB_DRAIN_CODE ?? 0)), Number(STUB_DRAIN_MS ?? 0))
}
process.on('SIGINT', () => drain('SIGINT'))
process.on('SIGTERM', () => drain('SIGTERM'))
process.on('disconnect', () => drain('disconnect'))
tell()
`

const demoAgentSource = `
import { writeFileSync } from 'node:fs'
export async function startDemoAgents({ port }) {
  const cardUrls = Object.fromEntries(['showcase', 'form', 'approver', 'a2ui'].map((name) => [name, 'http://127.0.0.1:4999/' + name + '/card.json']))
  return { port, cardUrls, close: async () => { writeFileSync(process.env.STUB_AGENTS_LOG, 'closed') } }
}
export async function runDemoAgent({ port }) { console.log('sample agents on ' + port) }
`

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly process: ChildProcess
  /** Resolves when stdout holds `text`; rejects when the launcher ends before. */
  readonly says: (text: string) => Promise<void>
  readonly outcome: Promise<Outcome>
}

export class Stage {
  readonly root = mkdtempSync(join(tmpdir(), 'signalbox-launcher-'))
  readonly dataDir = join(this.root, 'data')
  readonly #running: Running[] = []

  constructor() {
    const bin = join(this.root, 'bin')
    mkdirSync(bin)
    for (const name of readdirSync(join(repository, 'bin')))
      if (/^(?:signalbox|launcher-.*)\.ts$/.test(name)) cpSync(join(repository, 'bin', name), join(bin, name))
    mkdirSync(join(this.root, 'domain'))
    cpSync(join(repository, 'domain', 'loopback.ts'), join(this.root, 'domain', 'loopback.ts'))
    cpSync(join(repository, 'package.json'), join(this.root, 'package.json'))
    writeFileSync(join(bin, 'demo-agent.ts'), demoAgentSource)
    mkdirSync(join(this.root, 'dist', 'bin'), { recursive: true })
    mkdirSync(join(this.root, 'dist', 'ui'))
    writeFileSync(join(this.root, 'dist', 'bin', 'console.js'), consoleSource)
    writeFileSync(join(this.root, 'dist', 'ui', 'index.html'), '<!doctype html>')
    writeFileSync(join(this.root, 'dist', '.build'), 'a stamp')
  }

  /** Starts the launcher with nothing in its environment but what the test says. */
  launch(args: readonly string[], env: Record<string, string> = {}): Running {
    const child = spawn(process.execPath, [join(this.root, 'bin', 'signalbox.ts'), ...args], {
      env: { PATH: process.env.PATH, HOME: this.root, CI: 'true', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const running = watch(child)
    this.#running.push(running)
    return running
  }

  async run(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
    return await this.launch(args, env).outcome
  }

  read(name: string): string {
    const file = join(this.dataDir, name)
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  }

  /** What the console was started with. */
  seen(): { pid: number; env: Record<string, string> } {
    const seen: { pid: number; env: Record<string, string> } = JSON.parse(this.read('seen.json'))
    return seen
  }

  /** Ends everything. A console inherits its launcher's pipes, so an outcome also means that the console is gone. */
  async strike(): Promise<void> {
    for (const { process: launcher } of this.#running) launcher.kill('SIGKILL')
    await Promise.all(this.#running.map(({ outcome }) => outcome))
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** Follows a started process. */
export function watch(child: ChildProcess): Running {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
  const outcome = new Promise<Outcome>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
  const says = (text: string) =>
    new Promise<void>((done, fail) => {
      const look = () => {
        if (stdout.includes(text)) done()
      }
      child.stdout?.on('data', look)
      child.once('close', () => fail(new Error(`The launcher ended without saying "${text}": ${stderr}`)))
      look()
    })
  return { process: child, says, outcome }
}
