/**
 * The audit trail as files: CSV for people and spreadsheets, the chain as JSON lines for `signalbox audit verify`. Owns both
 * formats; not who may have them (audit.ts) nor what a chain proves (docs/adr/0011).
 */
import type { AuditRecord } from '../domain/audit.ts'
import { chainFormat, type ChainAnchor, type ChainFileEnd, type ChainFileStart } from '../domain/audit-chain.ts'
import { readLinks } from '../persistence/audit-chain.ts'
import type { Connection } from '../persistence/connection.ts'

const header = ['time', 'kind', 'actor', 'task', 'subject', 'detail']

/** RFC 4180: a cell with a quote, a comma or a line break is quoted. What a spreadsheet would run as a formula is made text. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const actorOf = ({ actorType, actorUserId }: AuditRecord, people: ReadonlyMap<string, string>): string =>
  actorUserId === null ? actorType : (people.get(actorUserId) ?? actorUserId)

export function csvOf(records: readonly AuditRecord[], people: ReadonlyMap<string, string>): string {
  const rows = records.map((record) => {
    const { at, kind, taskId, subjectId, data } = record
    return [at, kind, actorOf(record, people), taskId ?? '', subjectId ?? '', JSON.stringify(data)]
  })
  return [header, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('')
}

const linksAtOnce = 500
const line = (value: unknown): string => `${JSON.stringify(value)}\n`

export interface ChainExport {
  readonly organizationId: string
  readonly exportedAt: string
  readonly from: ChainAnchor
  readonly head: ChainAnchor
  readonly unlinked: number
}

/**
 * A line that says what it is, a line a link, a line that says where it ends: without the last one a file that was cut off
 * would look whole. Read a piece at a time, as fast as the caller takes it.
 */
export async function* chainLines(db: Connection, what: ChainExport, drain: AbortSignal): AsyncGenerator<string> {
  const { organizationId, exportedAt, from, head, unlinked } = what
  const start: ChainFileStart = { format: chainFormat, organizationId, exportedAt, after: from }
  yield line(start)
  for (let after = from.number; after < head.number;) {
    // Cut off, not ended: a browser must not show a whole file. What it has is found to be none by its missing last line, too.
    if (drain.aborted) throw new Error('The console is stopping, and with it this export.')
    const links = await readLinks(db, organizationId, { after, to: head.number, limit: linksAtOnce })
    const last = links.at(-1)
    // Links that are gone: the end is said all the same, and whoever verifies sees that it was not reached.
    if (!last) break
    yield links.map(({ place: _, ...link }) => line(link)).join('')
    after = last.number
  }
  const end: ChainFileEnd = { head: { number: head.number, hash: head.hash }, unlinked }
  yield line(end)
}
