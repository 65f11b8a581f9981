/**
 * `signalbox audit verify`: says of exported audit chains whether they hold, without a database and without the console. Exit
 * code 0: they do. 1: they do not. 2: nothing can be said, for the call or a file makes no sense. Does not own the checking
 * (audit-files.ts).
 */
import { parseArgs } from 'node:util'
import type { ChainAnchor } from '../domain/audit-chain.ts'
import { UnreadableExport, verifyFiles, type Verdict } from './audit-files.ts'

const usage = `Usage: signalbox audit verify <file>... [--anchor <number>:<hash>]...

Checks exports of the audit chain (GET /api/audit/export?format=jsonl): that no row was changed, removed, added or moved
after it was linked, that each file is whole, and that files which go on from one another fit. No database is needed.

Options:
      --anchor <number>:<hash>  a row's hash that was noted earlier, and kept elsewhere; the files must hold it
  -h, --help                    this text

Exit codes: 0 the chain holds, 1 it does not, 2 it could not be checked.
`

interface Asked {
  readonly files: readonly string[]
  readonly anchors: readonly ChainAnchor[]
}

/** The call makes no sense; the sentence is for the operator. */
class WrongCall extends Error {
  override readonly name = 'WrongCall'
}

function anchorFrom(text: string): ChainAnchor {
  const [, number, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (number === undefined || hash === undefined)
    throw new WrongCall(`"${text}" is no anchor: it must be <number>:<64 hexadecimal digits>.`)
  return { number: Number(number), hash }
}

/** Null: the usage was asked for. */
function asked(argv: readonly string[]): Asked | null {
  const options = { anchor: { type: 'string', multiple: true }, help: { type: 'boolean', short: 'h' } } as const
  const words = () => {
    try {
      return parseArgs({ args: [...argv], options, allowPositionals: true })
    } catch (error) {
      throw new WrongCall(error instanceof Error ? error.message : String(error), { cause: error })
    }
  }
  const { values, positionals } = words()
  if (values.help) return null
  const [command, ...files] = positionals
  if (command !== 'verify')
    throw new WrongCall(command ? `Unknown audit command "${command}".` : 'Say what to do: verify.')
  if (files.length === 0) throw new WrongCall('Name the files to verify.')
  return { files, anchors: (values.anchor ?? []).map(anchorFrom) }
}

function* told({ organizationId, from, head, rows, unlinked, findings }: Verdict): Generator<string> {
  for (const { file, words } of findings) yield `${file}: ${words}`
  if (findings.length > 0) return yield 'The chain does not hold.'
  yield `The chain of organization ${organizationId} holds: ${rows} rows, to number ${head.number}.`
  if (from.number > 0)
    yield `It begins behind row ${from.number}, whose hash is the file's own word unless an earlier file or an anchor vouches for it.`
  if (unlinked > 0) yield `${unlinked} rows were not linked yet when it was exported: they are in the next export.`
  yield `To hold later exports against this one, keep elsewhere: --anchor ${head.number}:${head.hash}`
}

/** Resolves to the exit code. */
export async function runAudit(argv: readonly string[]): Promise<0 | 1 | 2> {
  try {
    const call = asked(argv)
    if (!call) {
      process.stdout.write(usage)
      return 0
    }
    const verdict = await verifyFiles(call.files, call.anchors)
    for (const line of told(verdict)) process.stdout.write(`${line}\n`)
    return verdict.findings.length > 0 ? 1 : 0
  } catch (error) {
    if (!(error instanceof WrongCall || error instanceof UnreadableExport)) throw error
    process.stderr.write(`signalbox: ${error.message}\n`)
    return 2
  }
}
