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
import { readFailingSince } from '../persistence/failing.ts'
import { readSeenAt } from '../persistence/processes.ts'
import { readWait } from '../persistence/queue-views.ts'
import { readHeard, readScope } from '../persistence/task-actors.ts'
import { detailOf, placesOf } from './debug-views.ts'
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
    for (const record of records) {
      const kind = system.kinds[record.kind]
      const wait = placesOf(await readWait(db.pool, viewer, record, kind?.doubt?.counts), kind, record.snapshot.context)
      const actor = detailOf(record, definitions)
      const since = await readFailingSince(db.pool, record)
      const holderSeenAt = await readSeenAt(db.pool, record.leaseOwner)
      actors.push({ at, actor, wait, since, holderSeenAt, ...ofNoCommand })
    }
    return { at, actors, heard: [...(await readHeard(db.pool, id))] }
  })
  done()
}
