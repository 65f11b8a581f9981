/**
 * The build: `node bin/build.ts [--if-stale]` makes dist/ from the sources. Owns when a build is fresh and the order of the
 * steps; does not own what a step does (tsconfig.build.json, vite.config.ts, bin/build/charts.ts).
 *
 * The stamp, dist/.build, is removed first and written last, and the launcher wants to see it: a build that was
 * interrupted is neither taken for a fresh one nor started. What a finished build did not write is removed, so that a
 * file whose source is gone does not stay.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const stamp = join(dist, '.build')

const sources = ['a2a', 'actors', 'bin', 'domain', 'http', 'machines', 'persistence', 'ui', 'wrapper']
const settings = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json', 'vite.config.ts']

/** A hash of every input's path and bytes: times differ between clones and checkouts that hold the same code. */
function fingerprint(): string {
  const hash = createHash('sha256')
  const add = (path: string) => {
    const bytes = readFileSync(join(root, path))
    hash.update(`${path}\0${bytes.length}\0`).update(bytes)
  }
  const walk = (directory: string) => {
    const entries = readdirSync(join(root, directory), { withFileTypes: true })
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${directory}/${entry.name}`
      if (entry.isDirectory() && entry.name !== 'node_modules') walk(path)
      if (entry.isFile()) add(path)
    }
  }
  for (const directory of sources) if (existsSync(join(root, directory))) walk(directory)
  for (const file of settings) if (existsSync(join(root, file))) add(file)
  return hash.digest('hex')
}

const isFresh = (inputs: string): boolean =>
  existsSync(stamp) && existsSync(join(dist, 'bin', 'signalbox.js')) && readFileSync(stamp, 'utf8') === inputs

/**
 * Runs TypeScript's compiler in a process of its own, beside vite; rejects when it reports an error. What it writes does not depend on
 * types, and they are looked at by `npm run check`: that would take six times as long, of everybody who starts a fresh clone.
 */
function compile(): Promise<void> {
  return new Promise((done, fail) => {
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const args = [compiler, '--noCheck', '-p', join(root, 'tsconfig.build.json')]
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
    child.once('error', fail)
    child.once('exit', (code) => (code === 0 ? done() : fail(new Error('the TypeScript compiler reported errors.'))))
  })
}

/** Bundles the console, then lays its charts beside it: vite empties the folder first. */
async function bundle(): Promise<void> {
  // Whoever builds may have another in their environment: libraries would come with their warnings for developers.
  process.env['NODE_ENV'] = 'production'
  const [{ build: buildUi }, { buildCharts }] = await Promise.all([import('vite'), import('./build/charts.ts')])
  await buildUi({ configFile: join(root, 'vite.config.ts'), logLevel: 'warn' })
  await buildCharts(join(dist, 'ui', 'charts'))
}

/** A file system's clock may run behind the program's by a tick. */
const clockSlackMs = 1_000

/** Removes what was there before the build and was not written by it. */
function sweep(directory: string, beforeMs: number): void {
  if (!existsSync(directory)) return
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) sweep(path, beforeMs)
    else if (statSync(path).mtimeMs < beforeMs - clockSlackMs) rmSync(path)
  }
}

async function build(inputs: string): Promise<void> {
  const startedMs = Date.now()
  mkdirSync(dist, { recursive: true })
  rmSync(stamp, { force: true })
  // Both are waited for, so that a failed step leaves no other one writing after the program has said that it failed.
  const steps = await Promise.allSettled([compile(), bundle()])
  const reasons = steps.flatMap((step) => (step.status === 'rejected' ? [messageOf(step.reason)] : []))
  if (reasons.length > 0) throw new Error(reasons.join('\n'))
  // npm links the package's command to this file.
  chmodSync(join(dist, 'bin', 'signalbox.js'), 0o755)
  // public/ is copied with the times of its sources, and vite has emptied dist/ui itself.
  for (const directory of sources) if (directory !== 'ui') sweep(join(dist, directory), startedMs)
  writeFileSync(stamp, inputs)
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const inputs = fingerprint()
if (!process.argv.includes('--if-stale') || !isFresh(inputs)) {
  const startedMs = performance.now()
  try {
    await build(inputs)
    process.stdout.write(`Built dist in ${((performance.now() - startedMs) / 1000).toFixed(1)} s.\n`)
  } catch (error) {
    process.stderr.write(`signalbox: the build failed: ${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
