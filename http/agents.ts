/** Agents: register, list, look, remove. Does not own discovery or registration (actors/agents.ts). */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { refusals } from '../domain/refusal.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfAgent = z.object({ agentId: z.string() })
const error = refusals['agent.url.missing']
const Registration = z.strictObject({ cardUrl: z.string({ error }).check(z.minLength(1, { error })) })

export const agentRoutes: FastifyPluginCallbackZod<Door> = (app, { system }, done) => {
  const read = { permission: 'read' } as const
  const administer = { permission: 'administer' } as const
  app.get('/api/agents', { config: read }, async (request) => ({ agents: await system.agents.list(viewerOf(request)) }))
  app.post('/api/agents', { config: administer, schema: { body: Registration } }, async (request, reply) => {
    const agent = await system.agents.register(viewerOf(request), request.body.cardUrl)
    return reply.code(201).send({ agent })
  })
  app.post('/api/agents/preview', { config: administer, schema: { body: Registration } }, (request) =>
    system.agents.preview(request.body.cardUrl),
  )
  app.get('/api/agents/:agentId', { config: read, schema: { params: OfAgent } }, async (request) =>
    system.agents.get(viewerOf(request), localId(request.params.agentId, 'agent.unknown')),
  )
  app.delete('/api/agents/:agentId', { config: administer, schema: { params: OfAgent } }, async (request) => {
    await system.agents.remove(viewerOf(request), localId(request.params.agentId, 'agent.unknown'))
    return { removed: true }
  })
  done()
}
