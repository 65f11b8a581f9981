/** What stops the start of a process that no launcher started: one line on stderr that says what to mend, and exit code 1. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { requireArtifactDirectory } from '../../bin/composition.ts'
import { ConfigError, readConfig, readWorkerConfig } from '../../bin/config.ts'
import { ArtifactsUnavailable } from '../../persistence/artifacts.ts'
import { childArgs } from '../support/child.ts'
import { spawnConsole } from '../support/console.ts'
import { capturedLog } from '../support/system.ts'
import { runWorker } from '../support/worker.ts'
import { freePort } from '../support/free-port.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'signalbox-start-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** Nobody listens there: a start that comes as far as its database says so. */
const workerEnv = (): Record<string, string> => ({
  NODE_ENV: 'production',
  A2A_AUTH_MODE: 'development',
  A2A_ALLOW_DEVELOPMENT_AUTH: 'true',
  A2A_COMMAND_WORKER_MODE: 'external',
  A2A_DATABASE_PROFILE: 'postgresql',
  A2A_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  A2A_DATA_DIR: home,
})
const worker = (env: Record<string, string> = {}) => runWorker({ ...workerEnv(), ...env })
/** Runs a console that is to refuse to its end. */
async function refusedConsole(env: Record<string, string>) {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('A2A_'))
  const child = spawn(process.execPath, childArgs('bin/console.ts'), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...Object.fromEntries(inherited),
      NODE_ENV: 'development',
      A2A_AUTH_MODE: 'development',
      A2A_DATABASE_PROFILE: 'pglite',
      A2A_DATA_DIR: home,
      HOST: '127.0.0.1',
      PORT: String(await freePort()),
      ...env,
    },
  })
  const ended = once(child, 'close') as Promise<[number | null]>
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code, stdout, stderr }
}
const consoleOutput = (env: Record<string, string> = {}): Promise<string> =>
  spawnConsole({ dataDirectory: home, database: 'pglite', env }).then(
    async (started) => {
      await started.stop()
      return 'It started.'
    },
    (error: Error) => error.message,
  )

describe('a secrets.json that is none', () => {
  const secrets = '{"vaultKeys": {"k1": "short"}, "activeVaultKey": "k1"}'
  const sentence = () =>
    `${join(home, 'secrets.json')} is not a valid secrets file. Restore it from a backup; it is never overwritten.\n`
  beforeEach(() => writeFileSync(join(home, 'secrets.json'), secrets))
  afterEach(() => expect(readFileSync(join(home, 'secrets.json'), 'utf8')).toBe(secrets))

  it('ends a worker with one line', async () => {
    expect(await worker()).toEqual({ code: 1, stdout: '', stderr: `signalbox worker: ${sentence()}` })
  })

  it('ends a console with one line', async () => {
    expect(await consoleOutput()).toBe(`The console did not start: signalbox: ${sentence()}`)
  })

  it('is nobody’s business where the key is given', async () => {
    const given = await worker({ A2A_VAULT_KEYS: JSON.stringify({ k1: '11'.repeat(32) }), A2A_VAULT_ACTIVE_KEY: 'k1' })
    expect(given.stderr).toContain('The database cannot be reached')
  })
})

test('a secrets.json that cannot be read is named, and why', async () => {
  const { stderr } = await worker({ A2A_DATA_DIR: join(placed('file'), 'below') })
  expect(stderr).toMatch(/^signalbox worker: .*below\/secrets\.json cannot be read \(ENOTDIR\)\.\n$/)
})

/** A file where a directory is meant: also who may write anything cannot write below it. */
function placed(name: string): string {
  const file = join(home, name)
  writeFileSync(file, '')
  return file
}

describe('a directory for files', () => {
  const refusalOf = (directory: string): string =>
    `A2A_ARTIFACT_DATA_DIR must be a directory that can be read and written: ${directory} (`

  it('that is none ends a worker and a console with one line', async () => {
    const file = placed('file')
    const below = join(file, 'artifacts')
    for (const directory of [file, below]) {
      const { code, stdout, stderr } = await worker({ A2A_ARTIFACT_DATA_DIR: directory })
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr.startsWith(`signalbox worker: ${refusalOf(directory)}`)).toBe(true)
      expect(stderr).toMatch(/ \((?:EEXIST|ENOTDIR)\)\.\n$/)
    }
    const output = await consoleOutput({ A2A_ARTIFACT_DATA_DIR: below })
    expect(output).toBe(`The console did not start: signalbox: ${refusalOf(below)}ENOTDIR).\n`)
  })

  it('is made where it is missing, and nothing is left in it', async () => {
    const directory = join(home, 'of', 'files')
    await requireArtifactDirectory(directory, capturedLog().log)
    expect(readdirSync(directory)).toEqual([])
    await requireArtifactDirectory(directory, capturedLog().log)
    expect(readdirSync(directory)).toEqual([])
  })

  it('that is full is said in the log, and what needs no room goes on', async () => {
    const { log, lines } = capturedLog()
    const fails = (code: string) => () =>
      Promise.resolve(new ArtifactsUnavailable(Object.assign(new Error(), { code })))
    for (const code of ['ENOSPC', 'EDQUOT']) await requireArtifactDirectory(home, log, fails(code))
    expect(lines.map(({ level, message }) => [level, message])).toEqual(
      ['ENOSPC', 'EDQUOT'].map(() => ['warn', 'there is no room for files of agents']),
    )
    await expect(requireArtifactDirectory(home, log, fails('EROFS'))).rejects.toThrow(ConfigError)
  })
})

const key = 'ab'.repeat(32)
const keyRule = 'A2A_PUSH_SIGNING_KEY must contain 64 hexadecimal characters.'
const originRule = 'A2A_PUSH_CALLBACK_ORIGIN requires an HTTPS origin (or explicitly enabled loopback HTTP).'
const push = (origin: string, signingKey = key): Record<string, string> => ({
  A2A_PUSH_CALLBACK_ORIGIN: origin,
  A2A_PUSH_SIGNING_KEY: signingKey,
})

/** The specification's sentences [console-http-api.md: "Background loops", "Errors": push configuration]. */
const refusals: readonly (readonly [env: Record<string, string>, sentence: string])[] = [
  [{ A2A_COMMAND_WORKER_MODE: 'external' }, 'External command workers require PostgreSQL.'],
  [{ A2A_COMMAND_WORKER_MODE: 'both' }, 'Invalid A2A_COMMAND_WORKER_MODE.'],
  [push('https://console.example', 'ab'), keyRule],
  [{ A2A_PUSH_CALLBACK_ORIGIN: 'https://console.example' }, keyRule],
  [push('console'), 'Invalid A2A_PUSH_CALLBACK_ORIGIN.'],
  [push('https://console.example/path'), originRule],
  [push('http://127.0.0.1:3002'), originRule],
  [{ ...push('http://console.example'), A2A_PUSH_ALLOW_LOOPBACK_HTTP: 'true' }, originRule],
]

test.each(refusals)('%j is refused word for word', (env, sentence) => {
  expect(() => readConfig({ NODE_ENV: 'development', ...env })).toThrow(new ConfigError(sentence))
})

// A worker is told the same of push: it is who registers with agents.
test.each(refusals.slice(1))('%j is refused to a worker in the same words', (env, sentence) => {
  expect(() => readWorkerConfig({ ...workerEnv(), ...env })).toThrow(new ConfigError(sentence))
})

/** A start costs a third of a second of a processor: all that is refused comes out by the same door. */
test.each([...refusals.slice(0, 1), ...refusals.slice(3, 4)])(
  'a console refuses %j in one line, and makes nothing',
  async (env, sentence) => {
    expect(await refusedConsole(env)).toEqual({ code: 1, stdout: '', stderr: `signalbox: ${sentence}\n` })
    expect(readdirSync(home)).toEqual([])
  },
)

test.each(refusals.slice(3, 4))('a worker refuses %j in one line, and makes nothing', async (env, sentence) => {
  expect(await worker(env)).toEqual({ code: 1, stdout: '', stderr: `signalbox worker: ${sentence}\n` })
  expect(readdirSync(home)).toEqual([])
})
