/** Access administration: what was given to whom, and one change at a time. Does not own the changes (actors/access.ts). */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { AccessChange, AccessRecord } from '../domain/grant.ts'
import { Refusal } from '../domain/refusal.ts'
import { readAccess } from '../persistence/access.ts'
import { Updated } from './answers.ts'
import { isStorable } from './command-body.ts'
import type { Door } from './door.ts'
import { viewerOf } from './guard.ts'

/** One sentence for everything that is wrong with a request: the page that sends them makes none of these mistakes. */
function changeIn(body: unknown): AccessChange {
  const result = AccessChange.safeParse(body)
  if (!result.success || !Object.values(result.data).every((value) => value === null || isStorable(value)))
    throw new Refusal('access.invalid')
  return result.data
}

const unknownSubjects = [
  'access.invalid',
  'access.grant.unknown',
  'access.team.unknown',
  'access.membership.unknown',
  'access.subject.unknown',
  'access.agent.unknown',
] as const

export const adminRoutes: FastifyPluginCallbackZod<Door> = (app, { db, system }, done) => {
  const config = { permission: 'administer' } as const
  const record = { summary: 'Teams, members, grants and credentials', response: { 200: AccessRecord } }
  app.get('/api/admin/security', { config, schema: record }, (request) =>
    readAccess(db.pool, viewerOf(request).organizationId),
  )
  const change = {
    summary: 'Change access',
    body: z.unknown(),
    accepts: { body: AccessChange },
    response: { 200: Updated },
    refuses: unknownSubjects,
  } as const
  app.post('/api/admin/security', { config, schema: change }, async (request) => {
    await system.access.change(viewerOf(request), changeIn(request.body))
    return { updated: true } as const
  })
  done()
}
