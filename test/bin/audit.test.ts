/** `signalbox audit verify`: what it finds in files that were made by hand, link by link, and what it says and exits with. */
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { verifyFiles } from '../../bin/audit-files.ts'
import {
  chainFormat,
  chainStart,
  linkText,
  type ChainAnchor,
  type ChainedRow,
  type ChainLink,
} from '../../domain/audit-chain.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-audit-verify-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const organizationId = '0190a8c4-0000-7000-8000-000000000001'
const sha256 = (text: string | null): string => hash('sha256', text ?? '', 'hex')

interface Linked extends ChainLink {
  readonly row: ChainedRow
}

const rowOf = (number: number): ChainedRow => ({
  place: number * 3,
  id: `0190a8c4-0000-7000-8000-${String(number).padStart(12, '0')}`,
  organizationId,
  at: `2026-11-22T10:00:00.${String(number).padStart(6, '0')}Z`,
  kind: 'session.started',
  actorType: 'user',
  actorPersonId: null,
  taskId: null,
  subjectId: null,
  data: { note: `row ${number}`, ö: 1.5 },
})

function chainOf(count: number, from: ChainAnchor = chainStart): Linked[] {
  const links: Linked[] = []
  let { hash: previousHash } = from
  for (let number = from.number + 1; number <= from.number + count; number++) {
    const row = rowOf(number)
    const link = { number, previousHash, hash: sha256(linkText(previousHash, number, row)), row }
    links.push(link)
    previousHash = link.hash
  }
  return links
}

const headOf = (links: readonly ChainLink[]): ChainAnchor => {
  const { number, hash: is } = links.at(-1) ?? chainStart
  return { number, hash: is }
}
const startLine = (after: ChainAnchor) => ({ format: chainFormat, organizationId, exportedAt: rowOf(1).at, after })
const endLine = (head: ChainAnchor) => ({ head, unlinked: 0 })
const linesOf = (after: ChainAnchor, links: readonly Linked[]): unknown[] => [
  startLine(after),
  ...links,
  endLine(headOf(links)),
]

let files = 0
function fileOf(lines: readonly unknown[]): string {
  const path = join(folder, `${++files}.jsonl`)
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return path
}
const chain = chainOf(6)
const anchorAt = (number: number): ChainAnchor => headOf(chain.slice(0, number))
const findings = async (paths: readonly string[], anchors: readonly ChainAnchor[] = []): Promise<string[]> =>
  (await verifyFiles(paths, anchors)).findings.map(({ words }) => words)

describe('one file', () => {
  test('that is whole holds, as do its anchors', async () => {
    const path = fileOf(linesOf(chainStart, chain))
    expect(await verifyFiles([path], [anchorAt(3), anchorAt(6), chainStart])).toEqual({
      organizationId,
      from: chainStart,
      head: anchorAt(6),
      rows: 6,
      unlinked: 0,
      findings: [],
    })
    expect(await findings([fileOf([startLine(chainStart), endLine(chainStart)])])).toEqual([])
  })

  const edited = (number: number, change: Partial<Linked>): Linked[] =>
    chain.map((link) => (link.number === number ? { ...link, ...change } : link))
  const third = chain[2] ?? chainOf(1)[0]
  const relinked = chainOf(6).map((link) => ({ ...link }))
  const broken: Readonly<Record<string, readonly [string, readonly unknown[]]>> = {
    'an edited row': [
      'Row 3: the row was changed after it was linked.',
      linesOf(chainStart, edited(3, { row: { ...rowOf(3), kind: 'session.ended' } })),
    ],
    'an edited row with a hash to match': [
      'Row 4: the row before it is not the one it was linked to.',
      linesOf(
        chainStart,
        edited(3, {
          row: { ...rowOf(3), kind: 'session.ended' },
          hash: sha256(linkText(third?.previousHash ?? '', 3, { ...rowOf(3), kind: 'session.ended' })),
        }),
      ),
    ],
    'a row that is gone': [
      'Row 4: a row is missing, repeated or out of order before it.',
      linesOf(
        chainStart,
        chain.filter(({ number }) => number !== 3),
      ),
    ],
    'a row that comes twice': [
      'Row 3: a row is missing, repeated or out of order before it.',
      linesOf(
        chainStart,
        chain.flatMap((link) => (link.number === 3 ? [link, link] : [link])),
      ),
    ],
    'rows in another order': [
      'Row 3: a row is missing, repeated or out of order before it.',
      linesOf(
        chainStart,
        [0, 2, 1, 3, 4, 5].flatMap((index) => chain[index] ?? []),
      ),
    ],
    'a first row that is gone': [
      'Row 2: a row is missing, repeated or out of order before it.',
      linesOf(chainStart, chain.slice(1)),
    ],
    'an end that was cut off': [
      'Row 6: the chain does not end where its head says.',
      [startLine(chainStart), ...chain.slice(0, 5), endLine(anchorAt(6))],
    ],
    'a file that was cut off': ['The file is cut off: its last line is missing.', [startLine(chainStart), ...chain]],
    'rows behind the end': [
      'Something stands behind the last line.',
      [startLine(chainStart), ...chain.slice(0, 5), endLine(anchorAt(5)), chain[5]],
    ],
    'what is no link': [
      'A line after row 6 is no part of an export.',
      [startLine(chainStart), ...chain, { number: 7 }, endLine(anchorAt(6))],
    ],
    'a word that no hash covers': [
      'A line after row 0 is no part of an export.',
      linesOf(
        chainStart,
        relinked.map((link) => ({ ...link, comment: 'approved' })),
      ),
    ],
    'a row of another organization': [
      'Row 3: the row belongs to another organization.',
      linesOf(chainStart, edited(3, { row: { ...rowOf(3), organizationId: 'other' } })),
    ],
    'a start that was made up': [
      'Row 0: the hash is not the one that was noted.',
      linesOf({ number: 0, hash: sha256('x') }, chainOf(2, { number: 0, hash: sha256('x') })),
    ],
  }
  test.each(Object.entries(broken))('with %s does not hold', async (_name, [words, lines]) => {
    expect(await findings([fileOf(lines)])).toContain(words)
  })

  test('with a key twice, which other readers read otherwise, does not hold', async () => {
    const lines = linesOf(chainStart, chain).map((line) => JSON.stringify(line))
    const path = join(folder, 'twice.jsonl')
    const twice = (text: string): string => text.replace('"kind":"session.started"', '"kind":"session.ended",$&')
    writeFileSync(path, lines.map((line, at) => `${at === 3 ? twice(line) : line}\n`).join(''))
    expect(await findings([path])).toContain('A line after row 2 is no part of an export.')
    writeFileSync(path, lines.map((line) => `${line}\r\n`).join(''))
    expect(await findings([path])).toEqual([])
  })

  test('a chain that was made anew from its first row holds in itself, and not against an anchor', async () => {
    const made = chainOf(6, chainStart).map((link) => ({ ...link, row: { ...link.row, kind: 'session.ended' } }))
    let previousHash = chainStart.hash
    const anew = made.map((link) => {
      const next = { ...link, previousHash, hash: sha256(linkText(previousHash, link.number, link.row)) }
      previousHash = next.hash
      return next
    })
    const path = fileOf(linesOf(chainStart, anew))
    expect(await findings([path])).toEqual([])
    expect(await findings([path], [anchorAt(4)])).toEqual(['Row 4: the hash is not the one that was noted.'])
  })

  test('a chain that was shortened does not hold against an anchor behind its end', async () => {
    const path = fileOf(linesOf(chainStart, chain.slice(0, 4)))
    expect(await findings([path])).toEqual([])
    expect(await findings([path], [anchorAt(6)])).toEqual(['Row 6 is not in these files; they end at 4.'])
  })
})

describe('several files', () => {
  const one = fileOf(linesOf(chainStart, chain.slice(0, 2)))
  const two = fileOf(linesOf(anchorAt(2), chain.slice(2, 4)))
  const three = fileOf(linesOf(anchorAt(4), chain.slice(4)))
  const whole = fileOf(linesOf(chainStart, chain))

  test('hold together in any order, and beside one that holds them all', async () => {
    expect(await verifyFiles([three, one, two], [anchorAt(3)])).toMatchObject({
      head: anchorAt(6),
      rows: 6,
      findings: [],
    })
    expect(await verifyFiles([two, whole, one], [])).toMatchObject({ rows: 6, findings: [] })
  })

  test('with one missing do not', async () => {
    expect(await findings([one, three])).toEqual(['Row 5: a row is missing, repeated or out of order before it.'])
  })

  test('that go on from another past do not', async () => {
    const other = { number: 2, hash: sha256('another past') }
    const forged = fileOf(linesOf(other, chainOf(2, other)))
    expect(await findings([forged])).toEqual([])
    expect(await findings([one, forged])).toContain('Row 2: the hash is not the one that was noted.')
    expect(await findings([whole, forged])).not.toEqual([])
  })

  test('that forge what another holds do not, where both begin and end inside it', async () => {
    const [third, ...others] = chainOf(3, anchorAt(2))
    const row = { ...rowOf(3), kind: 'session.ended' }
    const hashed = sha256(linkText(third?.previousHash ?? '', 3, row))
    const from = { number: 3, hash: hashed }
    const inside = [{ number: 3, previousHash: anchorAt(2).hash, hash: hashed, row }, ...chainOf(others.length, from)]
    const forged = fileOf(linesOf(anchorAt(2), inside))
    expect(await findings([forged])).toEqual([])
    for (const paths of [
      [whole, forged],
      [forged, whole],
    ])
      expect(await findings(paths)).toContain('Row 5: the hash is not the one that was noted.')
  })

  test('of different organizations are not checked', async () => {
    const foreign = fileOf([{ ...startLine(chainStart), organizationId: 'another' }, endLine(chainStart)])
    await expect(verifyFiles([one, foreign], [])).rejects.toThrow('another organization')
  })
})

describe('the command', () => {
  const signalbox = join(import.meta.dirname, '../../bin/signalbox.ts')
  const run = async (...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
    const words = [signalbox, 'audit', ...argv]
    return promisify(execFile)(process.execPath, words).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
  }
  const { hash: headHash } = anchorAt(6)

  test('says that the chain holds, and what to keep of it', async () => {
    const { code, stdout } = await run('verify', fileOf(linesOf(chainStart, chain)), '--anchor', `6:${headHash}`)
    expect(stdout).toContain('holds: 6 rows, to number 6.')
    expect(stdout).toContain(`--anchor 6:${headHash}`)
    expect(code).toBe(0)
  })

  test('says where it does not, and exits 1', async () => {
    const path = fileOf(linesOf(chainStart, chain.slice(1)))
    const { code, stdout } = await run('verify', path)
    expect(stdout).toContain(`${path}: Row 2: a row is missing`)
    expect(stdout).toContain('The chain does not hold.')
    expect(code).toBe(1)
  })

  test('what cannot be checked is exit 2, and one line says why', async () => {
    const wrong: [string[], string][] = [
      [[], 'Say what to do: verify.'],
      [['verify', 'x', '--anchor', '3'], '"3" is no anchor'],
      [['verify', join(folder, 'nowhere')], 'cannot be read'],
      [['verify', signalbox], 'is no chain export'],
    ]
    const outcomes = await Promise.all(wrong.map(([argv]) => run(...argv)))
    for (const [at, { code, stdout, stderr }] of outcomes.entries()) {
      expect(stderr).toContain(wrong[at]?.[1])
      expect(stderr).toMatch(/^signalbox: .+\n$/)
      expect([code, stdout]).toEqual([2, ''])
    }
  })

  test('has a usage', async () => {
    const { code, stdout } = await run('verify', '--help')
    expect([code, stdout.slice(0, 29)]).toEqual([0, 'Usage: signalbox audit verify'])
  })
})
