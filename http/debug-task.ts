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
import { TaskActorsAnswer } from '../domain/task-actors.ts'
import { findActors } from '../persistence/actor-views.ts'
import { readHeard, readScope } from '../persistence/task-actors.ts'
import { standingOf } from './actor-standing.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfTask = z.object({ taskId: z.string() })

/** Who looks after a task is no command. */
const ofNoCommand = { delivery: null, evidence: null, settlement: null, reopenings: [], replaces: null }

const schema = {
  summary: 'Who looks after a task',
  params: OfTask,
  response: { 200: TaskActorsAnswer },
  refuses: ['task.unknown'],
} as const

export const taskActorRoutes: FastifyPluginCallbackZod<Door> = (app, { system, db }, done) => {
  const definitions = chartsOf(system.kinds)
  const config = { permission: 'read' } as const
  app.get('/api/task-actors/:taskId', { config, schema }, async (request): Promise<TaskActorsAnswer> => {
    const viewer = viewerOf(request)
    const id = localId(request.params.taskId, 'task.unknown')
    const scope = await readScope(db.pool, viewer, id)
    if (!scope) throw new Refusal('task.unknown')
    const refs = [
      { kind: 'subscription', id },
      { kind: 'push', id },
      { kind: 'reconciliation', id: scopeId(scope) },
      { kind: 'ownership', id },
    ]
    const records = await findActors(db.pool, viewer, refs)
    // One statement read them, so one clock saw them all.
    const at = records[0]?.seenAt ?? instruments.now().toISOString()
    const actors: ActorAnswer[] = []
    const asked = { db: db.pool, viewer, kinds: system.kinds, definitions }
    for (const record of records) actors.push({ at, ...(await standingOf(asked, record)), ...ofNoCommand })
    return { at, actors, heard: [...(await readHeard(db.pool, id))] }
  })
  done()
}
