/**
 * The launcher's promises [console-http-api: Command-line surface]: its words, refusals, data directory, readiness,
 * signals and exit codes, on real processes, and each wrong word by itself. Not what the console behind it does.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseCommand } from '../../bin/launcher-options.ts'
import { Stage } from './stage.ts'
import { freePort } from '../support/free-port.ts'

let stage: Stage
beforeEach(() => {
  stage = new Stage()
})
afterEach(() => stage.strike())

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false // ESRCH: that it is gone is what the test asks
  }
}

/** A launcher whose console answers. */
async function started(args: readonly string[] = [], env: Record<string, string> = {}) {
  const port = await freePort()
  const running = stage.launch(['start', '--port', String(port), '--data-dir', stage.dataDir, ...args], env)
  await running.says('is ready at')
  return { ...running, port }
}

describe('words', () => {
  test.each(['-h', '--help'])('%s prints the usage', async (flag) => {
    const { code, stdout } = await stage.run([flag])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^Usage: signalbox \[start\] \[options\]/)
  })

  test.each(['-v', '--version'])('%s prints the version', async (flag) => {
    expect(await stage.run([flag])).toEqual({ code: 0, stdout: '0.2.0\n', stderr: '' })
  })

  test.each([
    [['--colour'], 'Unknown option "--colour".'],
    [['start', '-x'], 'Unknown option "-x".'],
    [['--port'], '--port needs a value.'],
    [['--port', '--open'], '--port needs a value.'],
    [['--data-dir='], '--data-dir needs a value.'],
    [['-H'], '-H needs a value.'],
    [['--open=yes'], '--open takes no value.'],
    [['start', 'now'], 'Unexpected argument "now".'],
    [['stop'], 'Unexpected argument "stop".'],
    [['demo-agent', '4010', '4011'], 'Unexpected argument "4011".'],
    [['demo-agent', '--demo'], 'demo-agent takes no --demo.'],
    [['demo-agent', 'x'], '"x" is not a valid port.'],
    [['--port', '0'], '"0" is not a valid port.'],
    [['--port', '65536'], '"65536" is not a valid port.'],
    [['--port=3002.5'], '"3002.5" is not a valid port.'],
    [['-p', 'web'], '"web" is not a valid port.'],
    [['--host', '0.0.0.0'], '"0.0.0.0" is not a loopback address; other hosts need A2A_AUTH_MODE=oidc.'],
    [
      ['--host', '127.0.0.1.example'],
      '"127.0.0.1.example" is not a loopback address; other hosts need A2A_AUTH_MODE=oidc.',
    ],
  ])('%j is refused', (args, sentence) => {
    expect(() => parseCommand(args, {})).toThrow(new Error(sentence))
  })

  test.each([
    [['--colour'], 'Unknown option "--colour".'],
    [['stop'], 'Unexpected argument "stop".'],
    [['demo-agent', 'x'], '"x" is not a valid port.'],
  ])('%j, like all that is refused, ends the command in one line, and nothing is made', async (args, sentence) => {
    expect(await stage.run(args)).toEqual({ code: 1, stdout: '', stderr: `signalbox: ${sentence}\n` })
    expect(existsSync(stage.dataDir)).toBe(false)
  })

  test('a wrong $PORT is refused as the option would be', async () => {
    const { code, stderr } = await stage.run([], { PORT: 'http' })
    expect([code, stderr]).toEqual([1, 'signalbox: "http" is not a valid port.\n'])
  })

  test('--demo is refused where a person has to sign in', async () => {
    const { code, stderr } = await stage.run(['--demo'], { A2A_AUTH_MODE: 'oidc' })
    expect(code).toBe(1)
    expect(stderr).toContain('--demo works without sign-in only')
  })

  test('demo-agent serves on the port it is given', async () => {
    expect((await stage.run(['demo-agent'])).stdout).toBe('sample agents on 4010\n')
    expect((await stage.run(['demo-agent', '4444'])).stdout).toBe('sample agents on 4444\n')
  })
})

describe('start', () => {
  test('gives the console its environment and its directory', async () => {
    const { port, process: launcher, outcome } = await started()
    const { env } = stage.seen()
    expect(env).toMatchObject({
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: String(port),
      A2A_DATA_DIR: stage.dataDir,
      A2A_AUTH_MODE: 'development',
      A2A_ALLOW_DEVELOPMENT_AUTH: 'true',
      A2A_AUTO_MIGRATE: 'true',
    })
    const secrets: { vaultKeys: Record<string, string>; activeVaultKey: string } = JSON.parse(
      stage.read('secrets.json'),
    )
    expect(JSON.parse(env.A2A_VAULT_KEYS ?? '')).toEqual(secrets.vaultKeys)
    expect(env.A2A_VAULT_ACTIVE_KEY).toBe(secrets.activeVaultKey)
    expect(secrets.vaultKeys[secrets.activeVaultKey]).toMatch(/^[0-9a-f]{64}$/)
    expect(modeOf(stage.dataDir)).toBe('700')
    expect(modeOf(join(stage.dataDir, 'pglite'))).toBe('700')
    expect(modeOf(join(stage.dataDir, 'artifacts'))).toBe('700')
    expect(modeOf(join(stage.dataDir, 'secrets.json'))).toBe('600')
    launcher.kill('SIGTERM')
    expect((await outcome).stdout).toContain(`Signalbox 0.2.0 is ready at http://127.0.0.1:${port}`)
  })

  test('finds its directory by $A2A_DATA_DIR, else in the home directory', async () => {
    const home = stage.launch(['-p', String(await freePort())])
    await home.says(join(stage.root, '.signalbox'))
    const named = stage.launch(['-p', String(await freePort())], { A2A_DATA_DIR: join(stage.root, 'named') })
    await named.says(join(stage.root, 'named'))
    expect(existsSync(join(stage.root, 'named', 'secrets.json'))).toBe(true)
  })

  test('a browser that cannot be opened is told, and no failure', async () => {
    const { says, process: launcher, outcome } = await started(['--open'])
    await says('No browser could be opened here; visit http://127.0.0.1:')
    launcher.kill('SIGTERM')
    expect((await outcome).code).toBe(0)
  })

  test('keeps its vault key from start to start', async () => {
    const first = await started()
    const before = stage.read('secrets.json')
    first.process.kill('SIGINT')
    expect((await first.outcome).code).toBe(0)
    await started()
    expect(stage.read('secrets.json')).toBe(before)
    expect(readdirSync(stage.dataDir).filter((name) => name.startsWith('secrets.json.'))).toEqual([])
  })

  test('honours what the environment says: sign-in, host and key ring', async () => {
    const keys = JSON.stringify({ own: 'a'.repeat(64) })
    await started(['--host', '0.0.0.0'], {
      A2A_AUTH_MODE: 'oidc',
      A2A_AUTH_ORIGIN: 'https://console.example',
      A2A_VAULT_KEYS: keys,
      A2A_VAULT_ACTIVE_KEY: 'own',
      A2A_AUTO_MIGRATE: 'false',
      STUB_STATUS: '401',
    })
    const { env } = stage.seen()
    expect(env).toMatchObject({
      HOST: '0.0.0.0',
      A2A_AUTH_MODE: 'oidc',
      A2A_VAULT_KEYS: keys,
      A2A_AUTO_MIGRATE: 'false',
    })
    expect(env.A2A_ALLOW_DEVELOPMENT_AUTH).toBeUndefined()
  })

  test('overrules nobody who forbids development sign-in: then the console refuses to start', async () => {
    await started([], { A2A_ALLOW_DEVELOPMENT_AUTH: 'false' })
    expect(stage.seen().env).toMatchObject({ A2A_AUTH_MODE: 'development', A2A_ALLOW_DEVELOPMENT_AUTH: 'false' })
  })

  test.each([
    '{',
    '[]',
    '{"vaultKeys":{},"activeVaultKey":"k1"}',
    '{"vaultKeys":{"k1":"short"},"activeVaultKey":"k1"}',
  ])('an invalid secrets.json stops it and stays as it is: %s', async (text) => {
    mkdirSync(stage.dataDir)
    writeFileSync(join(stage.dataDir, 'secrets.json'), text)
    const { code, stderr } = await stage.run(['--data-dir', stage.dataDir, '-p', String(await freePort())])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^signalbox: .*secrets\.json is not a valid secrets file\..*\n$/)
    expect(stage.read('secrets.json')).toBe(text)
    expect(stage.read('seen.json')).toBe('')
  })

  test.each(['dist/bin/console.js', 'dist/ui/index.html', 'dist/.build'])('refuses without %s', async (file) => {
    rmSync(join(stage.root, file))
    const { code, stderr } = await stage.run(['--data-dir', stage.dataDir])
    expect([code, stderr]).toEqual([1, 'signalbox: No production build was found; run `npm run build`.\n'])
  })
})

describe('the console process', () => {
  test.each([
    ['SIGINT', '0'],
    ['SIGTERM', '0'],
    ['SIGTERM', '9'],
  ] as const)('%s is forwarded once and its exit code %s handed on', async (signal, code) => {
    const { process: launcher, outcome } = await started([], { STUB_DRAIN_CODE: code })
    launcher.kill(signal)
    expect((await outcome).code).toBe(Number(code))
    expect(stage.read('ended.log')).toBe(`${signal}\n`)
  })

  test("npm's copy of a terminal's Ctrl-C is not a second one", async () => {
    const { process: launcher, outcome } = await started([], { STUB_DRAIN_MS: '400' })
    launcher.kill('SIGINT')
    await expect.poll(() => stage.read('ended.log')).toBe('SIGINT\n')
    launcher.kill('SIGINT')
    expect((await outcome).code).toBe(0)
    expect(stage.read('ended.log')).toBe('SIGINT\n')
  })

  test('a console that ends before it answers ends the launcher at once, with its code', async () => {
    const { code, stdout } = await stage.run(['--data-dir', stage.dataDir, '-p', String(await freePort())], {
      STUB_EXIT: '7',
    })
    expect([code, stdout]).toEqual([7, ''])
  })

  test('a console killed by a signal is told as 128 + n', async () => {
    const { outcome } = await started()
    process.kill(stage.seen().pid, 'SIGKILL')
    expect((await outcome).code).toBe(137)
  })

  test('a launcher that is killed takes its console along', async () => {
    const { process: launcher } = await started()
    const { pid } = stage.seen()
    launcher.kill('SIGKILL')
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false)
    expect(stage.read('ended.log')).toBe('disconnect\n')
  })

  test("another server's answer on the port is not taken for the console's", async () => {
    const other = createServer((_request, response) => response.end('{}'))
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done))
    const { port } = other.address() as AddressInfo
    const { code, stdout, stderr } = await stage.run(['--data-dir', stage.dataDir, '-p', String(port)])
    other.close()
    expect([code, stdout, stderr]).toEqual([1, '', 'signalbox: EADDRINUSE\n'])
  })
})

test('a console that gets its port when another leaves it is ready then', async () => {
  const other = createServer((_request, response) => response.end('{}'))
  await new Promise<void>((done) => other.listen(0, '127.0.0.1', done))
  const { port } = other.address() as AddressInfo
  const args = ['--data-dir', stage.dataDir, '-p', String(port)]
  const { process: launcher, says, outcome } = stage.launch(args, { STUB_BEGINS: 'when told' })
  await expect.poll(() => existsSync(join(stage.dataDir, 'seen.json'))).toBe(true)
  await new Promise((done) => other.close(done))
  process.kill(stage.seen().pid, 'SIGUSR2')
  await says(`is ready at http://127.0.0.1:${port}`)
  launcher.kill('SIGTERM')
  expect((await outcome).code).toBe(0)
})

test('--demo starts the sample agents, registers all four, says what to try, and closes them', async () => {
  const log = join(stage.root, 'agents.log')
  const { process: launcher, outcome } = await started(['--demo'], { STUB_AGENTS_LOG: log })
  const posted = stage.read('posted.log').trim().split('\n')
  expect(posted.map((line) => line.replace(/^\/api\/agents .*:\d+\/(\w+)\/card\.json"}$/, '$1'))).toEqual([
    'showcase',
    'form',
    'approver',
    'a2ui',
  ])
  launcher.kill('SIGTERM')
  expect((await outcome).stdout).toContain('What to try first')
  expect(existsSync(log)).toBe(true)
})
