/**
 * The actor debugger: lists, one actor, its log, the supervisor. Reads only: nothing here moves an actor. What of a row may
 * be shown is debug-views.ts; the page that shows it is ui/pages/actors.ts.
 */
import type { FastifyPluginCallback, FastifyRequest } from 'fastify'
import * as z from 'zod/mini'
import { chartsOf } from '../actors/charts.ts'
import type { Viewer } from '../domain/access.ts'
import type { ActorAnswer, ActorLogPage, ActorPage, SupervisorAnswer } from '../domain/actor.ts'
import { Refusal } from '../domain/refusal.ts'
import { findActor, listActors, readActorLog, type ActorFilter, type ActorRecord } from '../persistence/actor-views.ts'
import type { Connection } from '../persistence/database.ts'
import { displayNames } from '../persistence/person-names.ts'
import { detailOf, peopleOf, stepsOf, summaryOf, type Definitions } from './debug-views.ts'
import { isUuid, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

/** Who asks for what, and what their actors' logs are read with. */
interface Asked {
  readonly db: Connection
  readonly viewer: Viewer
  readonly definitions: Definitions
}

const limits = { list: { default: 50, largest: 100 }, log: { default: 200, largest: 200 } }

const text = z.string().check(z.minLength(1), z.maxLength(200))
const ListQuery = z.object({
  kind: z.optional(text),
  state: z.optional(text),
  q: z.optional(text),
  attention: z.optional(z.enum(['true', 'false'])),
  cursor: z.optional(z.string().check(z.maxLength(500))),
  limit: z.optional(z.string()),
})
const LogQuery = z.object({
  after: z.optional(z.string().check(z.regex(/^\d{1,9}$/))),
  limit: z.optional(z.string()),
})

function parsed<T>(schema: z.ZodMiniType<T>, value: unknown): T {
  const result = schema.safeParse(value)
  if (!result.success) throw new Refusal('body.invalid')
  return result.data
}

function limitOf(given: string | undefined, range: { readonly default: number; readonly largest: number }): number {
  const limit = given === undefined ? range.default : /^\d{1,4}$/.test(given) ? Number(given) : 0
  if (limit < 1 || limit > range.largest) throw new Refusal('body.invalid', `limit must be 1–${range.largest}.`)
  return limit
}

/** A cursor is the last row's place in the order, so that a page stays where it was while new rows arrive. */
type Place = NonNullable<ActorFilter['before']>
const Place = z.tuple([
  z.string().check(
    z.maxLength(40),
    z.refine((at) => !Number.isNaN(Date.parse(at))),
  ),
  z.guid(),
])

const cursorOf = ({ updatedAt, id }: Place): string =>
  Buffer.from(JSON.stringify([updatedAt, id])).toString('base64url')

function placeOf(cursor: string | undefined): Place | null {
  if (cursor === undefined) return null
  const result = Place.safeParse(jsonOf(Buffer.from(cursor, 'base64url').toString('utf8')))
  if (!result.success) throw new Refusal('cursor.invalid')
  const [updatedAt, id] = result.data
  return { updatedAt, id }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal('cursor.invalid')
    throw error
  }
}

async function listPage({ db, viewer, definitions }: Asked, query: unknown): Promise<ActorPage> {
  const { kind, state, q, attention, cursor, limit: given } = parsed(ListQuery, query)
  const limit = limitOf(given, limits.list)
  const filter = { kind: kind ?? null, state: state ?? null, q: q ?? null, attention: attention === 'true' }
  // One more than asked for tells whether there is a next page.
  const rows = await listActors(db, viewer.organizationId, { ...filter, before: placeOf(cursor), limit: limit + 1 })
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const now = new Date()
  return {
    actors: page.map((row) => summaryOf(row, definitions, now)),
    next: rows.length > limit && last ? cursorOf(last) : null,
  }
}

type Params = { readonly kind: string; readonly id: string }

async function actorOf({ db, viewer }: Asked, { kind, id }: Params): Promise<ActorRecord> {
  const record = isUuid(id) ? await findActor(db, viewer.organizationId, kind, id.toLowerCase()) : null
  if (!record) throw new Refusal('actor.unknown')
  return record
}

async function logPage(asked: Asked, params: Params, query: unknown): Promise<ActorLogPage> {
  const { after: given, limit: wanted } = parsed(LogQuery, query)
  const limit = limitOf(wanted, limits.log)
  const after = Number(given ?? 0)
  const { kind, id } = await actorOf(asked, params)
  const { db, viewer, definitions } = asked
  // The step before the page comes along: which edge was taken shows only between two values.
  const rows = await readActorLog(db, kind, id, Math.max(0, after - 1), after > 0 ? limit + 1 : limit)
  const before = rows.find((row) => row.revision === after) ?? null
  const page = rows.filter((row) => row.revision > after).slice(0, limit)
  const names = await displayNames(db, viewer.organizationId, peopleOf(page))
  const last = page.at(-1)
  return {
    steps: stepsOf(kind, before, page, definitions, names),
    next: page.length === limit && last ? last.revision : null,
  }
}

/** Context and causes may concern people; from part 3 on this asks for `administer`. */
const config = { permission: 'read' } as const

export const debugRoutes: FastifyPluginCallback<Door> = (app, { system, db }, done) => {
  const definitions = chartsOf(system.kinds)
  const asked = (request: FastifyRequest): Asked => ({ db: db.pool, viewer: viewerOf(request), definitions })
  app.get('/api/actors', { config }, (request) => listPage(asked(request), request.query))
  app.get<{ Params: Params }>('/api/actors/:kind/:id', { config }, async (request): Promise<ActorAnswer> => {
    const record = await actorOf(asked(request), request.params)
    return { actor: detailOf(record, definitions, new Date()) }
  })
  app.get<{ Params: Params }>('/api/actors/:kind/:id/log', { config }, (request) =>
    logPage(asked(request), request.params, request.query),
  )
  app.get('/api/supervisor', { config }, (): SupervisorAnswer => {
    const { value, machine, context } = system.supervisor.snapshot
    const { restarts, lastFailure } = context
    return { supervisor: { value, machineVersion: machine.version ?? '0', restarts, lastFailure } }
  })
  done()
}
