/**
 * `npm run verify:package`: what a person gets who installs the package, seen on the real thing: packed, installed with
 * npm into an empty folder, its command run, a console started on a new data directory and stopped. Needs a package
 * registry, so it is not a part of `npm test`.
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
const readyLimitMs = 120_000

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

function npm(args: readonly string[], cwd: string): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

function pack(into: string): Packed {
  const packed: Packed[] = JSON.parse(npm(['pack', '--json', '--silent', '--pack-destination', into], root))
  const [only] = packed
  if (!only) throw new Error('npm pack made no package.')
  const strange = only.files.filter(
    ({ path }) => !/^(?:dist\/|package\.json$|README\.md$|LICENSE$|CHANGELOG\.md$)/.test(path),
  )
  if (strange.length > 0) throw new Error(`The package holds ${strange.map(({ path }) => path).join(', ')}.`)
  if (only.files.some(({ path }) => path.endsWith('.ts'))) throw new Error('The package holds TypeScript.')
  return only
}

function install(tarball: string, into: string): string {
  mkdirSync(into)
  writeFileSync(join(into, 'package.json'), '{ "private": true }\n')
  npm(['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', tarball], into)
  return join(into, 'node_modules', 'signalbox', 'dist', 'bin', 'signalbox.js')
}

function checkVersion(command: string): void {
  const manifest: { version: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const said = execFileSync(process.execPath, [command, '--version'], { encoding: 'utf8' }).trim()
  if (said !== manifest.version) throw new Error(`signalbox --version says ${said}, package.json ${manifest.version}.`)
}

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => done(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

/** Starts the installed console, asks for the session, and stops it; throws unless it ends with 0. */
async function checkStart(command: string, dataDir: string): Promise<void> {
  const port = String(await freePort())
  const child = spawn(process.execPath, [command, '--no-open', '--port', port, '--data-dir', dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  const timer = setTimeout(() => child.kill('SIGTERM'), readyLimitMs)
  const ready = new Promise<boolean>((done) => {
    child.stdout.setEncoding('utf8').on('data', (said: string) => said.includes('is ready at') && done(true))
    child.once('exit', () => done(false))
  })
  if (!(await ready)) throw new Error(`The installed console ended with ${await ended} before it answered.`)
  const response = await fetch(`http://127.0.0.1:${port}/api/auth/session`)
  child.kill('SIGTERM')
  const code = await ended
  clearTimeout(timer)
  if (response.status !== 200) throw new Error(`The installed console answered ${response.status}.`)
  if (code !== 0) throw new Error(`The installed console ended with ${code}.`)
}

const folder = mkdtempSync(join(tmpdir(), 'signalbox-package-'))
try {
  const packed = pack(folder)
  const command = install(join(folder, packed.filename), join(folder, 'consumer'))
  checkVersion(command)
  await checkStart(command, join(folder, 'data'))
  process.stdout.write(`The package of ${packed.files.length} files installs, starts and stops.\n`)
} catch (error) {
  process.stderr.write(`signalbox: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
