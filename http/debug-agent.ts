/** What stands in one agent's way, for the page of that agent. Reads only; the queries are persistence/agent-troubles.ts. */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { chartsOf } from '../actors/charts.ts'
import { AgentTroubles } from '../domain/agent-troubles.ts'
import { Refusal } from '../domain/refusal.ts'
import { readAgentTroubles } from '../persistence/agent-troubles.ts'
import { findAgent } from '../persistence/agents.ts'
import { attentionStates } from './debug-views.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfAgent = z.object({ agentId: z.string() })

const schema = {
  summary: "What stands in an agent's way",
  params: OfAgent,
  response: { 200: AgentTroubles },
  refuses: ['agent.unknown'],
} as const

export const agentTroubleRoutes: FastifyPluginCallbackZod<Door> = (app, { system, db }, done) => {
  const attention = attentionStates(chartsOf(system.kinds))
  const places = Object.entries(system.kinds).map(([kind, row]) => ({
    kind,
    places: row.concurrency,
    perAgent: row.laneLimit,
  }))
  const config = { permission: 'read' } as const
  app.get('/api/agents/:agentId/troubles', { config, schema }, async (request): Promise<AgentTroubles> => {
    const viewer = viewerOf(request)
    const id = localId(request.params.agentId, 'agent.unknown')
    if (!(await findAgent(db.pool, viewer, id))) throw new Refusal('agent.unknown')
    return readAgentTroubles(db.pool, viewer, id, attention, places)
  })
  done()
}
