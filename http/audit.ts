/**
 * The audit trail: reading, exporting, and how its chain stands. Owns who may read what of it: the whole is for administrators, a
 * task's part for whoever can read the task. Does not own the queries (persistence/audit-views.ts) or the files (audit-export.ts).
 */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { recordExport } from '../actors/audit-export.ts'
import { instruments } from '../actors/system.ts'
import type { Viewer } from '../domain/access.ts'
import { auditGroups, AuditAnswer, ChainAnswer, type AuditRecord } from '../domain/audit.ts'
import { chainStart, faultWords } from '../domain/audit-chain.ts'
import { Refusal } from '../domain/refusal.ts'
import { countUnlinked, findHead, findLink } from '../persistence/audit-chain.ts'
import { lastCheck } from '../persistence/audit-check.ts'
import { contextOf, listAudit, type AuditFilter, type PlacedRecord } from '../persistence/audit-views.ts'
import type { Connection } from '../persistence/connection.ts'
import { namesOf } from '../persistence/person-names.ts'
import { media } from './answers.ts'
import { chainLines, csvOf } from './audit-export.ts'
import { CursorText, cursorOf, placeOf, rowsUpTo } from './cursors.ts'
import { localId, uuidText, type Door } from './door.ts'
import { isUuid } from '../domain/uuid.ts'
import { viewerOf } from './guard.ts'

const isoInstant = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/
/** Years 1 to 9999, which the database reads as JavaScript writes them; no 31st of February, which it would carry over. */
const isInstant = (text: string): boolean => {
  const day = text.slice(0, 10)
  const [midnight, time] = isoInstant.test(text) ? [Date.parse(day), Date.parse(text)] : [Number.NaN, Number.NaN]
  if (Number.isNaN(midnight) || Number.isNaN(time) || !new Date(midnight).toISOString().startsWith(day)) return false
  return /^(?!0000)\d{4}-/.test(new Date(time).toISOString())
}
/** A day, or an instant with its offset; normalized, so that a range compares as text. */
const instant = (error: string) =>
  z.pipe(
    z.string({ error }).check(z.refine(isInstant, { error })),
    z.transform((text: string) => new Date(text).toISOString()),
  )

const filters = {
  taskId: z.optional(z.string()),
  group: z._default(z.enum(['all', ...auditGroups], { error: 'Unknown audit group.' }), 'all'),
  actor: z.optional(uuidText('actor')),
  since: z.optional(instant('since must be a timestamp.')),
  until: z.optional(instant('until must be a timestamp.')),
  cursor: z.optional(CursorText),
}
const ListQuery = z.object({ ...filters, limit: z.prefault(rowsUpTo(200), '50') })
const ExportQuery = z.object({
  ...filters,
  limit: z.prefault(rowsUpTo(200), '200'),
  format: z._default(z.enum(['csv', 'jsonl'], { error: 'Unknown export format.' }), 'csv'),
})
type Query = z.infer<typeof ListQuery>

interface Page {
  readonly records: readonly PlacedRecord[]
  readonly next: string | null
}

function filterOf(query: Query): AuditFilter {
  const { taskId, group, actor, since, until, cursor } = query
  if (since !== undefined && until !== undefined && since > until) throw new Refusal('audit.range')
  return {
    taskId: taskId === undefined ? null : localId(taskId, 'task.unknown'),
    group,
    personId: actor ?? null,
    since: since ?? null,
    until: until ?? null,
    before: cursor === undefined ? null : placeOf(cursor),
    // One more than asked for tells whether there is a next page.
    limit: query.limit + 1,
  }
}

/** Refuses whoever may not read what is asked for, before anything is read. */
async function pageFor(db: Connection, viewer: Viewer, query: Query): Promise<Page> {
  const filter = filterOf(query)
  if (filter.taskId === null && viewer.role !== 'admin') throw new Refusal('action.forbidden')
  if (filter.taskId !== null && !(await contextOf(db, viewer, [filter.taskId])).has(filter.taskId))
    throw new Refusal('task.unknown')
  const rows = await listAudit(db, viewer.organizationId, filter)
  const records = rows.slice(0, query.limit)
  const last = records.at(-1)
  return { records, next: rows.length > query.limit && last ? cursorOf(last.place) : null }
}

/** Everybody whom records speak of: who did it, and people and memberships among what it was done to. */
function peopleIn(records: readonly AuditRecord[]): Set<string> {
  const named = records.flatMap(({ actorUserId, subjectId, data }) => [actorUserId, subjectId, ...Object.values(data)])
  return new Set(named.filter((value) => typeof value === 'string').filter(isUuid))
}

const withoutPlace = ({ place: _, ...record }: PlacedRecord): AuditRecord => record

async function answerFor(db: Connection, viewer: Viewer, query: Query): Promise<AuditAnswer> {
  const { records, next } = await pageFor(db, viewer, query)
  const entries = records.map(withoutPlace)
  const { organizationId, userId, membershipId, role } = viewer
  const tasks = entries.flatMap(({ taskId }) => taskId ?? [])
  return {
    entries,
    people: Object.fromEntries(await namesOf(db, organizationId, peopleIn(entries))),
    context: Object.fromEntries(await contextOf(db, viewer, tasks)),
    next,
    viewer: { userId, membershipId, role },
  }
}

/** What somebody only asks about (HEAD) is not taken away, so it is not in the trail. */
const recorded = async (
  { db }: Door,
  request: FastifyRequest,
  data: Parameters<typeof recordExport>[3],
): Promise<void> => {
  if (request.method === 'GET') await recordExport(db, instruments, viewerOf(request), data)
}

const attached = (reply: FastifyReply, type: string, name: string): FastifyReply =>
  reply.type(`${type}; charset=utf-8`).header('content-disposition', `attachment; filename="${name}"`)

async function sendCsv(door: Door, request: FastifyRequest, query: Query, reply: FastifyReply): Promise<FastifyReply> {
  const { db } = door
  const viewer = viewerOf(request)
  const { records, next } = await pageFor(db.pool, viewer, query)
  const people = await namesOf(db.pool, viewer.organizationId, peopleIn(records))
  const { group, actor = null, taskId = null, since = null, until = null, cursor } = query
  const asked = { group, actor, taskId, since, until, continued: cursor !== undefined }
  await recorded(door, request, { format: 'csv', ...asked, records: records.length })
  if (next !== null) reply.header('x-next-cursor', next)
  return attached(reply, 'text/csv', 'audit-trail.csv').send(csvOf(records, people))
}

/** From behind the cursor, the number of a link, to the end of the chain: one file, however long. */
async function sendChain(
  door: Door,
  request: FastifyRequest,
  query: Query,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { db, drain } = door
  const { taskId, group, actor, since, until, cursor = '0' } = query
  if (group !== 'all' || [taskId, actor, since, until].some((filter) => filter !== undefined))
    throw new Refusal('audit.chain.filters')
  if (!/^\d{1,15}$/.test(cursor)) throw new Refusal('cursor.invalid')
  const { organizationId } = viewerOf(request)
  const number = Number(cursor)
  const from = number === 0 ? chainStart : await findLink(db.pool, organizationId, number)
  if (!from) throw new Refusal('cursor.invalid')
  const head = await findHead(db.pool, organizationId)
  const unlinked = await countUnlinked(db.pool, organizationId)
  await recorded(door, request, { format: 'jsonl', after: from.number, to: head.number })
  const what = { organizationId, exportedAt: instruments.now().toISOString(), from, head, unlinked }
  reply.header('x-next-cursor', String(head.number))
  const lines = request.method === 'HEAD' ? [] : chainLines(db.pool, what, drain)
  return attached(reply, 'application/jsonl', 'audit-chain.jsonl').send(Readable.from(lines))
}

async function chainFor(db: Connection, { organizationId }: Viewer): Promise<ChainAnswer> {
  const { number, hash, linkedAt } = await findHead(db, organizationId)
  const { checkedAt, fault } = await lastCheck(db, organizationId)
  const unlinked = await countUnlinked(db, organizationId)
  return { number, hash, linkedAt, unlinked, checkedAt, fault: fault && { ...fault, message: faultWords(fault) } }
}

const listing = {
  summary: 'The audit trail, newest first',
  querystring: ListQuery,
  response: { 200: AuditAnswer },
  refuses: ['audit.range', 'cursor.invalid', 'task.unknown'],
} as const
const exporting = {
  summary: 'The audit trail as a file: one page as CSV, or the whole chain as JSON lines',
  querystring: ExportQuery,
  response: {
    200: media(['text/csv', 'application/jsonl'], '`X-Next-Cursor`: where the next page begins.'),
  },
  refuses: ['audit.range', 'audit.chain.filters', 'cursor.invalid', 'task.unknown'],
} as const
const standing = { summary: 'How the chain stands', response: { 200: ChainAnswer } }

export const auditRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  const { db } = door
  const read = { permission: 'read' } as const
  const administer = { permission: 'administer' } as const
  app.get('/api/audit', { config: read, schema: listing }, (request) =>
    answerFor(db.pool, viewerOf(request), request.query),
  )
  app.get('/api/audit/export', { config: administer, schema: exporting }, (request, reply) => {
    const { format, ...query } = request.query
    return (format === 'csv' ? sendCsv : sendChain)(door, request, query, reply)
  })
  // Beyond the specification: the head is what somebody notes elsewhere, to hold the database against it later.
  app.get('/api/audit/chain', { config: administer, schema: standing }, (request) =>
    chainFor(db.pool, viewerOf(request)),
  )
  done()
}
