/**
 * The rules that a machine can keep: floors, sizes, names and habits, over every file of the repository. Owns that they
 * hold, and that each check and the linter do report what they are for. The reasons stand in CONTRIBUTING.md.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { floors, wrongFloors } from './tidy/floors.ts'
import {
  ambientReads,
  bannedNames,
  barrels,
  bucketNames,
  clocksBelowRuntime,
  dishonestTests,
  escapesFromTypes,
  longFunctions,
  poolsInTransactions,
  secondDoors,
  swallowed,
  tooLong,
  unfinished,
  withoutOpening,
} from './tidy/habits.ts'
import { files, isGenerated, parse, read, type Source, sources } from './tidy/sources.ts'

type Check = (source: Source) => string[]

/** A source that has the habit, and the check that has to see it. */
const examples: [string, Check, string, string][] = [
  ['imports stay within the floors', wrongFloors, 'http/x.ts', `import { step } from '../machines/command.ts'`],
  ['files are short', tooLong, 'domain/x.ts', '\n'.repeat(400) + 'export const a = 1'],
  ['functions are short', longFunctions, 'domain/x.ts', `function f() {${'\n'.repeat(70)}}`],
  ['every file opens with what it owns', withoutOpening, 'domain/x.ts', 'export const a = 1'],
  ['names are words of the trade', bannedNames, 'actors/x.ts', 'class TaskManager {}'],
  ['interfaces have no prefix', bannedNames, 'actors/x.ts', 'interface ITask {}'],
  ['only composition roots read the environment', ambientReads, 'actors/x.ts', 'const a = process.env.A'],
  ['time is an argument below the runtime', clocksBelowRuntime, 'persistence/x.ts', 'const a = Date.now()'],
  ['ids are arguments below the runtime', clocksBelowRuntime, 'machines/x.ts', 'const a = crypto.randomUUID()'],
  ['the network has one door', secondDoors, 'actors/x.ts', `import { request } from 'undici'`],
  ['nobody fetches past the door', secondDoors, 'http/x.ts', `await fetch('https://agent.example/')`],
  [
    'a transaction asks its own connection',
    poolsInTransactions,
    'actors/x.ts',
    'db.pool.transaction(() => db.pool.one(q))',
  ],
  ['nothing is any', escapesFromTypes, 'domain/x.ts', 'const a: any = 1'],
  ['nothing is cast through unknown', escapesFromTypes, 'domain/x.ts', 'const a = 1 as unknown as string'],
  ['the type checker is not silenced', escapesFromTypes, 'domain/x.ts', '// @ts-expect-error\nconst a: string = 1'],
  ['nothing is left to do in a comment', unfinished, 'domain/x.ts', '// TODO later'],
  ['no catch swallows', swallowed, 'actors/x.ts', 'try { f() } catch { }'],
  ['no rejection is swallowed', swallowed, 'actors/x.ts', 'f().catch(() => {})'],
  ['no export *', barrels, 'domain/x.ts', `export * from './y.ts'`],
  ['no barrels', barrels, 'domain/x.ts', `export { a } from './y.ts'`],
  ['tests use no doubles', dishonestTests, 'test/x.test.ts', `vi.mock('x')`],
  ['tests leave none out', dishonestTests, 'test/x.test.ts', `test.only('x', f)`],
  ['tests do not sleep', dishonestTests, 'test/x.test.ts', 'new Promise((r) => setTimeout(r, 100))'],
]

describe('habits', () => {
  test.each(examples)('%s: seen where it is broken', (_rule, check, path, text) => {
    expect(check(parse(path, text))).toHaveLength(1)
  })

  test.each([...new Set(examples.map(([, check]) => check))])('%o: kept everywhere', (check) => {
    expect(sources.flatMap(check)).toEqual([])
  })

  test('no folder or file is a bucket', () => {
    expect(bucketNames('ui/utils/x.ts')).toHaveLength(1)
    expect(files.filter((path) => !isGenerated(path)).flatMap(bucketNames)).toEqual([])
  })
})

/** Per floor: what it may import, and what it may not. The linter and the check above have to agree on each. */
const imports: Record<string, { may: string[]; mayNot: string[] }> = {
  a2a: { may: ['zod/mini', './sse.ts'], mayNot: ['node:fs', 'fastify', '../domain/task.ts', '../bin/config.ts'] },
  domain: { may: ['../a2a/wire.ts'], mayNot: ['node:crypto', 'xstate', '../persistence/tasks.ts'] },
  machines: {
    may: ['xstate', '../domain/task.ts'],
    mayNot: ['zod', 'node:fs', '../a2a/wire.ts', '../actors/loop/plan.ts'],
  },
  persistence: { may: ['slonik', 'node:fs', '../domain/task.ts'], mayNot: ['undici', '../machines/command.ts'] },
  actors: { may: ['undici', '../machines/command.ts'], mayNot: ['fastify', '../http/server.ts', '../ui/main.ts'] },
  http: {
    may: ['fastify', '@fastify/static'],
    mayNot: ['undici', 'xstate', '../machines/command.ts', '../ui/main.ts'],
  },
  ui: { may: ['lit', 'lit/directives/x.js', 'zod/mini'], mayNot: ['node:fs', 'xstate', 'zod', '../http/server.ts'] },
  wrapper: { may: ['fastify', '../a2a/wire.ts'], mayNot: ['../actors/system.ts', '../http/server.ts'] },
}
const lineOf = (name: string) => `import ${JSON.stringify(name)}\n`

describe('floors', () => {
  test('the tree has no floor without a rule', () => {
    expect(Object.keys(imports)).toEqual(Object.keys(floors))
    const known = new Set([...Object.keys(floors), 'bin', 'test', 'docs', '.ci', ''])
    expect(sources.filter(({ floor }) => !known.has(floor)).map(({ path }) => path)).toEqual([])
  })

  test.each(Object.entries(imports))('%s: the check refuses what it should', (floor, { may, mayNot }) => {
    expect(wrongFloors(parse(`${floor}/x.ts`, may.map(lineOf).join('')))).toEqual([])
    expect(wrongFloors(parse(`${floor}/x.ts`, mayNot.map(lineOf).join('')))).toHaveLength(mayNot.length)
    const deep = mayNot.map((name) => lineOf(name.replace(/^\.\.\//, '../../')))
    expect(wrongFloors(parse(`${floor}/deep/x.ts`, deep.join('')))).toHaveLength(mayNot.length)
  })

  test('the linter refuses the same', () => {
    const refused = lintFloors()
    for (const [floor, { mayNot }] of Object.entries(imports))
      expect(refused.get(floor), floor).toEqual(mayNot.toSorted())
  })
})

/** Runs the linter by the repository's rules over one file a floor; the imports that it reports, by floor. */
function lintFloors(): Map<string, string[]> {
  const repository = resolve(import.meta.dirname, '..')
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-floors-'))
  try {
    const rules: Record<string, unknown> = JSON.parse(read('.oxlintrc.json'))
    writeFileSync(join(folder, '.oxlintrc.json'), JSON.stringify({ ...rules, options: {} }))
    for (const [floor, { may, mayNot }] of Object.entries(imports)) {
      mkdirSync(join(folder, floor))
      writeFileSync(join(folder, floor, 'x.ts'), [...may, ...mayNot].map(lineOf).join(''))
    }
    const report = lint(join(repository, 'node_modules', 'oxlint', 'bin', 'oxlint'), folder)
    const refused = new Map<string, string[]>()
    for (const [, path = '', name = ''] of report.matchAll(/^(\S+?):\d+:\d+: '([^']+)' import is restricted/gm))
      refused.set(dirname(path), [...(refused.get(dirname(path)) ?? []), name].toSorted())
    return refused
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function lint(program: string, folder: string): string {
  try {
    return execFileSync(process.execPath, [program, '--format', 'unix'], {
      cwd: folder,
      encoding: 'utf8',
    })
  } catch (error) {
    if (error instanceof Error && 'stdout' in error && typeof error.stdout === 'string') return error.stdout
    throw error
  }
}

describe('what is committed', () => {
  const text = files.filter((path) => !/\.(?:png|jpg|ico|woff2?|gz)$/.test(path))

  test('names no path of a machine and no registry', () => {
    const traces = /\/(?:root|home|Users|work)\/[\w.-]+|\bregistry\.[a-z]+[.:/]|"resolved":\s*"http/
    const found = text.flatMap((path) => (traces.test(read(path)) ? [`${path}: ${traces.exec(read(path))?.[0]}`] : []))
    expect(found).toEqual([])
  })

  test.each(files.filter((path) => path.endsWith('.md')))('%s speaks only of files that exist', (path) => {
    const prose = read(path).replace(/^```[^]*?^```/gm, '')
    const links = [...prose.matchAll(/\]\((?!\w+:|#)([^)#]+)[^)]*\)/g)].map(([, to = '']) => join(dirname(path), to))
    const named = [...prose.matchAll(/`((?:a2a|domain|machines|persistence|actors|http|ui|bin|test|docs)\/[\w./-]+)`/g)]
    const spoken = [...links, ...named.map(([, to = '']) => to)].map((to) => to.replace(/\/$/, ''))
    const exists = (to: string) => files.some((file) => file === to || file.startsWith(`${to}/`))
    expect(spoken.filter((to) => !exists(to))).toEqual([])
  })

  test.each(['package.json', 'bin/runtime/package.json'])('%s pins every version', (path) => {
    const manifest: Record<string, unknown> = JSON.parse(read(path))
    const kinds = ['dependencies', 'devDependencies', 'optionalDependencies']
    const ranges = kinds.flatMap((kind) =>
      Object.entries(manifest[kind] ?? {}).map(([name, range]) => `${name} ${range}`),
    )
    expect(ranges.filter((each) => !/ (?:npm:.+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(each))).toEqual([])
  })

  test('the lock holds every platform of the packages that are split by platform', () => {
    const lock: { packages: Record<string, { optionalDependencies?: Record<string, string> }> } = JSON.parse(
      read('package-lock.json'),
    )
    const missing = Object.entries(lock.packages).flatMap(([owner, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter(
          (name) => ![`node_modules/${name}`, `${owner}/node_modules/${name}`].some((path) => path in lock.packages),
        )
        .map((name) => `${owner} needs ${name}`),
    )
    expect(missing).toEqual([])
  })
})
