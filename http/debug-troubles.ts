/**
 * Where troubles are, for the lists that lead to them: agents that have any, and tasks that are not followed. Reads only; the
 * queries are persistence/troubles.ts, what stands in one agent's way is debug-agent.ts.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { chartsOf } from '../actors/charts.ts'
import { TroubledAgentsAnswer, UnfollowedTasksAnswer } from '../domain/troubles.ts'
import { readTroubledAgents, readUnfollowedTasks } from '../persistence/troubles.ts'
import { attentionStates } from './debug-views.ts'
import type { Door } from './door.ts'
import { viewerOf } from './guard.ts'

const agents = { summary: 'Agents that have troubles, and which', response: { 200: TroubledAgentsAnswer } }
const tasks = { summary: 'Tasks whose following does not work', response: { 200: UnfollowedTasksAnswer } }

export const troubleRoutes: FastifyPluginCallbackZod<Door> = (app, { system, db }, done) => {
  const attention = attentionStates(chartsOf(system.kinds))
  const config = { permission: 'read' } as const
  app.get('/api/troubled-agents', { config, schema: agents }, (request): Promise<TroubledAgentsAnswer> =>
    readTroubledAgents(db.pool, viewerOf(request), attention),
  )
  app.get('/api/unfollowed-tasks', { config, schema: tasks }, (request): Promise<UnfollowedTasksAnswer> =>
    readUnfollowedTasks(db.pool, viewerOf(request), attention),
  )
  done()
}
