/**
 * The system as a whole: the live supervisor of this process with its loops, places and threads, and the queues and leases
 * of whoever works on the same database. For administrators: what waits and who works belongs to no agent. Two routes, so that the tree is still told while the database is away. Reads only.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { chartsOf } from '../actors/charts.ts'
import { instruments } from '../actors/system.ts'
import { supervisedOf } from '../actors/vitals.ts'
import { QueuesAnswer, SupervisorAnswer } from '../domain/queue.ts'
import { readQueues } from '../persistence/queue-views.ts'
import { attentionStates } from './debug-views.ts'
import type { Door } from './door.ts'
import { viewerOf } from './guard.ts'

const supervised = { summary: 'The process that answers', response: { 200: SupervisorAnswer } }
const queued = { summary: 'What waits, and who works', response: { 200: QueuesAnswer } }

export const systemRoutes: FastifyPluginCallbackZod<Door> = (app, { system, db }, done) => {
  // A page that is open asks every few seconds: in the administrator's own window it would leave them no place to act.
  const config = { permission: 'administer', countedAs: 'read' } as const
  const needing = attentionStates(chartsOf(system.kinds))
  app.get(
    '/api/supervisor',
    { config: { ...config, database: 'unneeded' }, schema: supervised },
    (): SupervisorAnswer => supervisedOf(system, db, instruments),
  )
  app.get('/api/queues', { config, schema: queued }, (request): Promise<QueuesAnswer> => {
    const { organizationId } = viewerOf(request)
    return readQueues(db.pool, organizationId, Object.keys(system.kinds), needing)
  })
  done()
}
