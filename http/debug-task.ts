/**
 * Who looks after one task: the actors that follow it, are called about it and ask for it, for the column beside the task.
 * Reads only. What of an actor may be shown is debug-views.ts.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { chartsOf } from '../actors/charts.ts'
import { scopeId } from '../actors/reconciliation-scopes.ts'
import { instruments } from '../actors/system.ts'
import type { ActorAnswer } from '../domain/actor.ts'
import { Refusal } from '../domain/refusal.ts'
import type { TaskActorsAnswer } from '../domain/task-actors.ts'
import { findActors } from '../persistence/actor-views.ts'
import { readWait } from '../persistence/queue-views.ts'
import { readHeard, readScope } from '../persistence/task-actors.ts'
import { detailOf, placesOf } from './debug-views.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfTask = z.object({ taskId: z.string() })

export const taskActorRoutes: FastifyPluginCallbackZod<Door> = (app, { system, db }, done) => {
  const definitions = chartsOf(system.kinds)
  const config = { permission: 'read' } as const
  app.get(
    '/api/task-actors/:taskId',
    { config, schema: { params: OfTask } },
    async (request): Promise<TaskActorsAnswer> => {
      const { organizationId } = viewerOf(request)
      const id = localId(request.params.taskId, 'task.unknown')
      const scope = await readScope(db.pool, organizationId, id)
      if (!scope) throw new Refusal('task.unknown')
      const refs = [
        { kind: 'subscription', id },
        { kind: 'push', id },
        { kind: 'reconciliation', id: scopeId(scope) },
        { kind: 'ownership', id },
      ]
      const records = await findActors(db.pool, organizationId, refs)
      const now = instruments.now()
      const at = now.toISOString()
      const actors: ActorAnswer[] = []
      for (const record of records) {
        const wait = await readWait(db.pool, organizationId, record.kind, record.id)
        const actor = detailOf(record, definitions, now)
        actors.push({ at, actor, wait: placesOf(wait, system.kinds[record.kind]), delivery: null, evidence: null })
      }
      return { at, actors, heard: [...(await readHeard(db.pool, id))] }
    },
  )
  done()
}
