/**
 * Checks exported audit chains without a database: every file in itself, files against each other, and both against hashes that
 * somebody noted. Owns what several files mean together; a single link is domain/audit-chain.ts, what is printed audit.ts.
 */
import { hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import {
  ChainFileEnd,
  ChainFileLink,
  ChainFileStart,
  chainStart,
  ChainWalk,
  faultWords,
  type ChainAnchor,
} from '../domain/audit-chain.ts'

/** Nothing can be said: it cannot be read, or is no export. */
export class UnreadableExport extends Error {
  override readonly name = 'UnreadableExport'
}

/** A row's data are ids and words of ours; what is longer is no export. */
const lineBytes = 1024 * 1024

async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const chunk of createReadStream(path, { encoding: 'utf8' }) as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > lineBytes) throw new UnreadableExport(`${path}: a line is longer than 1 MiB.`)
      yield* lines
    }
  } catch (error) {
    if (error instanceof UnreadableExport) throw error
    throw new UnreadableExport(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (rest !== '') yield rest
}

/**
 * Undefined where it is no JSON, or not as an export writes it: with a key twice, say, of which this reader takes the last and
 * another the first, they would not see the same row.
 */
function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return JSON.stringify(value) === text.trimEnd() ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** What is wrong, in words; `file` is as the caller named it. */
export interface Finding {
  readonly file: string
  readonly words: string
}

export interface Verdict {
  readonly organizationId: string
  /** Where the first file begins: unless it is the chain's start, that much is taken from the file. */
  readonly from: ChainAnchor
  /** Where the last one ends. */
  readonly head: ChainAnchor
  readonly rows: number
  readonly unlinked: number
  readonly findings: readonly Finding[]
}

/** What a file says of itself. `end` is null where its last line is none. */
interface Opened {
  readonly path: string
  readonly start: ChainFileStart
  readonly end: ChainFileEnd | null
}

async function open(path: string): Promise<Opened> {
  let start: ChainFileStart | undefined
  let last = ''
  for await (const line of linesOf(path)) {
    start ??= ChainFileStart.safeParse(parsed(line)).data
    if (!start) break
    last = line
  }
  if (!start)
    throw new UnreadableExport(`${path} is no chain export of Signalbox (GET /api/audit/export?format=jsonl).`)
  return { path, start, end: ChainFileEnd.safeParse(parsed(last)).data ?? null }
}

/** Enough to act on; a file that was damaged throughout has a finding a row. */
const findingsLimit = 20

class Verification {
  readonly findings: Finding[] = []
  rows = 0
  unlinked = 0
  /** The furthest end of the files read so far. */
  head: ChainAnchor
  /** Hashes that links of these numbers must have: noted by people, and said by other files. */
  readonly #expected = new Map<number, string>()
  readonly #met = new Set<number>()

  constructor(from: ChainAnchor) {
    this.head = from
    this.#expected.set(chainStart.number, chainStart.hash)
  }

  find(file: string, words: string): void {
    if (this.findings.length < findingsLimit) this.findings.push({ file, words })
  }

  expect(file: string, anchor: ChainAnchor): void {
    const known = this.#expected.get(anchor.number)
    if (known !== undefined && known !== anchor.hash)
      this.find(file, faultWords({ kind: 'anchor', number: anchor.number }))
    this.#expected.set(anchor.number, known ?? anchor.hash)
  }

  #meet(file: string, { number, hash: is }: ChainAnchor): void {
    this.#met.add(number)
    const expected = this.#expected.get(number)
    if (expected !== undefined && expected !== is) this.find(file, faultWords({ kind: 'anchor', number }))
  }

  async read({ path, start }: Opened): Promise<void> {
    const { after, organizationId } = start
    if (after.number > this.head.number) this.find(path, faultWords({ kind: 'gap', number: after.number + 1 }))
    this.#meet(path, after)
    const walk = new ChainWalk(organizationId, after, (text) => hash('sha256', text, 'hex'))
    let end: ChainFileEnd | null = null
    let isFirst = true
    for await (const line of linesOf(path)) {
      if (!isFirst) end = this.#line(path, walk, line, end)
      isFirst = false
    }
    if (!end) this.find(path, 'The file is cut off: its last line is missing.')
    else if (end.head.number !== walk.at.number || end.head.hash !== walk.at.hash)
      this.find(path, faultWords({ kind: 'end', number: end.head.number }))
    if (walk.at.number >= this.head.number) {
      this.head = walk.at
      this.unlinked = end?.unlinked ?? 0
    }
  }

  #line(path: string, walk: ChainWalk, line: string, end: ChainFileEnd | null): ChainFileEnd | null {
    if (end) this.find(path, 'Something stands behind the last line.')
    const value = parsed(line)
    const link = ChainFileLink.safeParse(value)
    if (link.success) {
      // Of what several files hold, each row once.
      if (link.data.number > this.head.number) this.rows++
      const kind = walk.follow(link.data, link.data.row)
      if (kind) this.find(path, faultWords({ kind, number: link.data.number }))
      this.#meet(path, link.data)
      return end
    }
    const last = ChainFileEnd.safeParse(value)
    if (last.success) return last.data
    this.find(path, `A line after row ${walk.at.number} is no part of an export.`)
    return end
  }

  /** Noted hashes of which no file holds the row: before the first, or behind the last, which was cut off then. */
  missed(anchors: readonly ChainAnchor[]): void {
    for (const { number } of anchors)
      if (!this.#met.has(number))
        this.find('--anchor', `Row ${number} is not in these files; they end at ${this.head.number}.`)
  }
}

/**
 * Checks files of one organization, in whatever order they are given: each may go on where another ends, or hold it. Throws
 * UnreadableExport.
 */
export async function verifyFiles(paths: readonly string[], anchors: readonly ChainAnchor[]): Promise<Verdict> {
  const files: Opened[] = []
  for (const path of paths) files.push(await open(path))
  files.sort((a, b) => a.start.after.number - b.start.after.number)
  const [first, ...others] = files
  if (!first) throw new UnreadableExport('There is no file to check.')
  const { organizationId, after: from } = first.start
  const foreign = others.find(({ start }) => start.organizationId !== organizationId)
  if (foreign) throw new UnreadableExport(`${foreign.path} is of another organization than ${first.path}.`)
  const verification = new Verification(from)
  for (const anchor of anchors) verification.expect('--anchor', anchor)
  // Both ends of all, before any is read: of two that overlap, the shorter one's end is inside the other.
  for (const { path, start, end } of files)
    for (const anchor of end ? [start.after, end.head] : [start.after]) verification.expect(path, anchor)
  for (const file of files) await verification.read(file)
  verification.missed(anchors)
  const { head, rows, unlinked, findings } = verification
  return { organizationId, from, head, rows, unlinked, findings }
}
