/** The `db:*` scripts as an operator runs them: one line per result, exit codes, and the directory's lock. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { lockDataDirectory } from '../../bin/directory-lock.ts'
import { bothDatabases, freshDatabase } from '../support/databases.ts'
import { isLong } from '../support/pass.ts'
import { runScript, type Outcome } from '../support/scripts.ts'

const script = fileURLToPath(new URL('../../bin/database.ts', import.meta.url))
const projections = fileURLToPath(new URL('../../bin/projections.ts', import.meta.url))

const run = (variables: Record<string, string>, ...args: string[]): Promise<Outcome> =>
  runScript(script, variables, ...args)

describe.each(bothDatabases)('%s', (kind) => {
  // A run on the embedded database costs 1.5 s of a processor. What is only read is read in the same words: in the long pass.
  const isThorough = isLong || kind === 'postgresql'
  it('is taken down, shown, checked and migrated', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-scripts-'))
    const fresh = await freshDatabase('postgresql')
    const url = fresh.profile.kind === 'postgresql' ? fresh.profile.url : ''
    const env: Record<string, string> =
      kind === 'pglite' ? { A2A_DATA_DIR: folder } : { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: url }
    expect(await run(env, 'migrate')).toMatchObject({ code: 0, err: '' })
    if (isThorough) {
      expect((await run(env, 'migrate')).out).toMatch(/^Nothing to apply: the schema is at v\d+\.\n$/)
      expect((await run(env, 'list')).out).toMatch(/^1 the-house applied \d{4}-\S+Z\n/)
      expect(await run(env, 'check')).toMatchObject({ code: 0, err: '' })
    }
    expect((await run(env, 'down')).out).toMatch(/^Took back \d+ \S+\n$/)
    if (isThorough) expect((await run(env, 'pending')).out).toMatch(/^\d+ \S+\n$/)
    expect(await run(env, 'check')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^This database is at schema v\d+, .*\n$/),
    })
    await fresh.close()
    rmSync(folder, { recursive: true })
  }, 90_000)
})

it('fails in one line while another process has the embedded database', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-scripts-'))
  const lock = lockDataDirectory(join(folder, 'pglite'))
  expect(await run({ A2A_DATA_DIR: folder }, 'migrate')).toEqual({
    code: 1,
    out: '',
    err: `${join(folder, 'pglite')} is in use by another process (pid ${process.pid}).\n`,
  })
  lock.release()
  rmSync(folder, { recursive: true })
})

it('says what it takes, and what a number must be', async () => {
  expect(await run({}, 'drop')).toMatchObject({
    code: 1,
    err: 'Usage: database <migrate | down | list | pending | check>\n',
  })
  const wrong = await run({ A2A_DATA_DIR: join(tmpdir(), 'signalbox-never-made') }, 'down', 'all')
  expect(wrong).toMatchObject({ code: 1, err: 'The version or count must be a whole number from 1.\n' })
})

it.each([
  ['database list', script, ['list']],
  ['database down', script, ['down', '1']],
  ['database check', script, ['check']],
  ['projections', projections, ['--offline-pglite']],
] as const)('%s does not make a database in a directory that was mistyped', async (_, file, args) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-scripts-'))
  const mistyped = join(folder, 'dta')
  expect(await runScript(file, { A2A_DATA_DIR: mistyped }, ...args)).toEqual({
    code: 1,
    out: '',
    err: `There is no database in ${join(mistyped, 'pglite')}; A2A_DATA_DIR says where, and db:migrate makes one.\n`,
  })
  expect([existsSync(mistyped), readdirSync(folder)]).toEqual([false, []])
  rmSync(folder, { recursive: true })
})

it.each([
  ['database', script],
  ['projections', projections],
])('%s --help says what it takes, and opens nothing', async (name, file) => {
  const asked = await runScript(file, { A2A_DATA_DIR: join(tmpdir(), 'signalbox-never-made') }, '--help')
  expect(asked).toMatchObject({ code: 0, err: '' })
  expect(asked.out).toMatch(new RegExp(`^Usage: ${name} .*\n(?:  .*\n)+The database is the one `))
})

it('refuses the word for the embedded database where it is PostgreSQL', async () => {
  const env = { A2A_DATABASE_PROFILE: 'postgresql', A2A_DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' }
  expect(await runScript(projections, env, '--offline-pglite')).toEqual({
    code: 1,
    out: '',
    err: '--offline-pglite is for the embedded database, and this one is PostgreSQL: leave it out.\n',
  })
})
