#!/usr/bin/env node
/**
 * The `signalbox` command: reads the words, runs the one that was asked for, and turns a failure into one line on stderr
 * and exit 1. Owns nothing else; the console itself is bin/console.ts, in a process of its own. Only Node.js's own
 * modules are imported before the version is checked, so that an older Node.js gets a sentence and not a syntax error.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const built = import.meta.url.endsWith('.js')
const root = join(here, built ? '../..' : '..')

function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 19)) return
  process.stderr.write(`signalbox: Node.js 22.19.0 or newer is required; this is ${process.version}.\n`)
  process.exit(1)
}

function version(): string {
  const manifest: { version: string } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return manifest.version
}

/** Runs the command; resolves to the exit code once everything it started has ended. */
async function run(argv: readonly string[]): Promise<number> {
  const { parseCommand, usage } = await import('./launcher-options.ts')
  const command = parseCommand(argv, process.env)
  switch (command.name) {
    case 'help':
      process.stdout.write(usage)
      return 0
    case 'version':
      process.stdout.write(`${version()}\n`)
      return 0
    case 'demo-agent': {
      const [{ runDemoAgent }, { extensionHostFrom }] = await Promise.all([
        import('./demo-agent.ts'),
        import('./launcher-demo.ts'),
      ])
      await runDemoAgent({ port: command.port, ...extensionHostFrom(process.env) })
      return 0
    }
    case 'audit': {
      const { runAudit } = await import('./audit.ts')
      return await runAudit(command.argv)
    }
    case 'start': {
      const { start } = await import('./launcher-start.ts')
      return await start(command, { dist: join(root, 'dist'), version: version(), env: process.env })
    }
  }
}

checkNode()
try {
  // exitCode and not exit(): what still waits in stdout is written, and the demo agents keep their process alive.
  process.exitCode = await run(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`signalbox: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
