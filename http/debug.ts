/**
 * The actor debugger: lists, one actor, its log. Reads only: nothing here moves an actor. What of a row may be shown is
 * debug-views.ts, the system as a whole debug-system.ts; the page that shows it is ui/pages/actors.ts.
 */
import type { FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { chartsOf } from '../actors/charts.ts'
import { ActorAnswer, ActorLogPage, ActorPage } from '../domain/actor.ts'
import { Refusal } from '../domain/refusal.ts'
import { findActor, listActors, readActorLog, type ActorRecord } from '../persistence/actor-views.ts'
import { readEvidence } from '../persistence/evidence.ts'
import { namesOf } from '../persistence/person-names.ts'
import { findSend } from '../persistence/unsettled-sends.ts'
import { standingOf, type Asked } from './actor-standing.ts'
import { CursorText, cursorOf, placeOf, rowsUpTo } from './cursors.ts'
import { agentTroubleRoutes } from './debug-agent.ts'
import { sendRoutes } from './debug-sends.ts'
import { systemRoutes } from './debug-system.ts'
import { taskActorRoutes } from './debug-task.ts'
import { troubleRoutes } from './debug-troubles.ts'
import { attentionStates, deliveryOf, peopleOf, stepsOf, summaryOf } from './debug-views.ts'
import { uuidText, type Door } from './door.ts'
import { isUuid } from '../domain/uuid.ts'
import { isStorable } from './command-body.ts'
import { viewerOf } from './guard.ts'

/** A name with a NUL is no name of anything, and PostgreSQL would not look for it. */
const text = z
  .string()
  .check(
    z.minLength(1),
    z.maxLength(200),
    z.refine(isStorable, { error: 'A filter holds characters that cannot be stored.' }),
  )
const ListQuery = z.object({
  kind: z.optional(text),
  state: z.optional(text),
  q: z.optional(text),
  attention: z.optional(z.enum(['true', 'false'])),
  work: z.optional(z.enum(['due', 'held'])),
  owner: z.optional(text),
  agentId: z.optional(uuidText('agentId')),
  cursor: z.optional(CursorText),
  limit: z.prefault(rowsUpTo(100), '50'),
})
const revision = (error: string) =>
  z.optional(z.pipe(z.string({ error }).check(z.regex(/^\d{1,9}$/, { error })), z.transform(Number)))
const LogQuery = z
  .object({
    /** Reads on from there, oldest first; the log's beginning when neither is said. */
    after: revision('after must be a revision.'),
    /** Reads back from there: the newest steps below it. */
    before: revision('before must be a revision.'),
    limit: z.prefault(rowsUpTo(200), '200'),
  })
  .check(
    z.refine(({ after, before }) => after === undefined || before === undefined, {
      error: 'after and before exclude each other.',
    }),
  )
const OfActor = z.object({ kind: z.string(), id: z.string() })
type Ref = z.infer<typeof OfActor>

async function listPage(
  { db, viewer, kinds, definitions }: Asked,
  query: z.infer<typeof ListQuery>,
): Promise<ActorPage> {
  const { kind, state, q, attention, work, owner, agentId, cursor, limit } = query
  const place = cursor === undefined ? null : placeOf(cursor)
  const filter = {
    kinds: kind === undefined ? Object.keys(kinds) : [kind],
    state: state ?? null,
    q: q ?? null,
    work: work ?? null,
    owner: owner ?? null,
    agentId: agentId ?? null,
    attention: attention === 'true' ? attentionStates(definitions) : null,
  }
  // One more than asked for tells whether there is a next page.
  const rows = await listActors(db, viewer, {
    ...filter,
    before: place && { updatedAt: place.at, id: place.id },
    limit: limit + 1,
  })
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    actors: page.map((row) => summaryOf(row, definitions)),
    next: rows.length > limit && last ? cursorOf({ at: last.updatedAt, id: last.id }) : null,
  }
}

async function actorOf({ db, viewer, kinds }: Asked, { kind, id }: Ref): Promise<ActorRecord> {
  const record = isUuid(id) && Object.hasOwn(kinds, kind) ? await findActor(db, viewer, kind, id.toLowerCase()) : null
  if (!record) throw new Refusal('actor.unknown')
  return record
}

/** A command's life is short: discovery three times, one delivery. More steps than this it cannot have. */
const stepsOfCommand = 50

async function actorAnswer(asked: Asked, ref: Ref): Promise<ActorAnswer> {
  const record = await actorOf(asked, ref)
  const { db, viewer } = asked
  const { kind, id } = record
  const send = kind === 'command' ? await findSend(db, viewer, id) : null
  return {
    at: record.seenAt,
    ...(await standingOf(asked, record)),
    delivery: send && deliveryOf(send, await readActorLog(db, 'command', id, { after: 0 }, stepsOfCommand)),
    evidence: send && ((await readEvidence(db, viewer, [id])).get(id) ?? null),
    settlement: send && send.settlement,
    reopenings: send ? send.reopenings : [],
    replaces: send && send.replaces,
  }
}

/** The step before the page comes along: which edge was taken shows only between two values. */
async function logRows(
  asked: Asked,
  { kind, id }: ActorRecord,
  { after = 0, before, limit }: z.infer<typeof LogQuery>,
) {
  const { db } = asked
  if (before === undefined) {
    const [previous = null] = await readActorLog(db, kind, id, { before: after + 1 }, 1)
    const page = await readActorLog(db, kind, id, { after }, limit)
    return { previous, page, next: page.length === limit ? (page.at(-1)?.revision ?? null) : null }
  }
  const rows = await readActorLog(db, kind, id, { before }, limit + 1)
  const page = rows.slice(-limit)
  const previous = rows.length > limit ? (rows[0] ?? null) : null
  return { previous, page, next: previous && (page[0]?.revision ?? null) }
}

async function logPage(asked: Asked, ref: Ref, query: z.infer<typeof LogQuery>): Promise<ActorLogPage> {
  const record = await actorOf(asked, ref)
  const { db, viewer, definitions } = asked
  const { previous, page, next } = await logRows(asked, record, query)
  const names = await namesOf(db, viewer.organizationId, peopleOf(page))
  return { steps: stepsOf(record.kind, previous, page, definitions, names), next }
}

/** An actor is seen with what it is about: a command, a task, or the whole agent (persistence/actor-views.ts). */
const config = { permission: 'read' } as const

const listing = {
  summary: 'Actors: what moves commands, tasks and agents',
  querystring: ListQuery,
  response: { 200: ActorPage },
  refuses: ['cursor.invalid'],
} as const
const refuses = ['actor.unknown'] as const
const looking = { summary: 'One actor', params: OfActor, response: { 200: ActorAnswer }, refuses }
const logging = {
  summary: 'The steps of an actor',
  params: OfActor,
  querystring: LogQuery,
  response: { 200: ActorLogPage },
  refuses,
}

export const debugRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  const { system, db } = door
  app.register(systemRoutes, door)
  app.register(sendRoutes, door)
  app.register(taskActorRoutes, door)
  app.register(agentTroubleRoutes, door)
  app.register(troubleRoutes, door)
  const definitions = chartsOf(system.kinds)
  const asked = (request: FastifyRequest): Asked => ({
    db: db.pool,
    viewer: viewerOf(request),
    kinds: system.kinds,
    definitions,
  })
  app.get('/api/actors', { config, schema: listing }, (request) => listPage(asked(request), request.query))
  app.get('/api/actors/:kind/:id', { config, schema: looking }, (request) =>
    actorAnswer(asked(request), request.params),
  )
  app.get('/api/actors/:kind/:id/log', { config, schema: logging }, (request) =>
    logPage(asked(request), request.params, request.query),
  )
  done()
}
