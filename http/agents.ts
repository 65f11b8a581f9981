/** Agents: register, list, look, remove. Does not own discovery or registration (actors/agents.ts), or the list as it comes (answering-agents.ts). */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { refusals } from '../domain/refusal.ts'
import { answeringAgentRoutes } from './answering-agents.ts'
import { AgentAnswer, AgentsAnswer, PreviewAnswer, RegistrationAnswer, Removed } from './answers.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfAgent = z.object({ agentId: z.string() })
const error = refusals['agent.url.missing']
const Registration = z.strictObject({ cardUrl: z.string({ error }).check(z.minLength(1, { error })) })

const listing = { summary: 'Agents, each with its card as it is now', response: { 200: AgentsAnswer } }
const wrongUrl = ['agent.url.missing', 'agent.url.scheme', 'agent.url.decorated', 'agent.url.length'] as const
const unread = ['agent.discovery', 'agent.network'] as const
const registering = {
  summary: 'Register an agent by the address of its card',
  body: Registration,
  response: { 201: RegistrationAnswer },
  refuses: wrongUrl,
}
const previewing = {
  summary: 'Read a card without registering its agent',
  body: Registration,
  response: { 200: PreviewAnswer },
  refuses: [...wrongUrl, ...unread],
}
const looking = {
  summary: 'One agent, with its card and a report',
  params: OfAgent,
  response: { 200: AgentAnswer },
  refuses: ['agent.unknown', ...unread],
} as const
const removing = {
  summary: 'Remove an agent',
  params: OfAgent,
  response: { 200: Removed },
  refuses: ['agent.unknown', 'agent.seeded'],
} as const

export const agentRoutes: FastifyPluginCallbackZod<Door> = (app, door, done) => {
  const { system } = door
  const read = { permission: 'read' } as const
  const administer = { permission: 'administer' } as const
  app.get('/api/agents', { config: read, schema: listing }, async (request) => ({
    agents: await system.agents.list(viewerOf(request)),
  }))
  app.post('/api/agents', { config: administer, schema: registering }, async (request, reply) => {
    const agent = await system.agents.register(viewerOf(request), request.body.cardUrl)
    return reply.code(201).send({ agent })
  })
  app.post('/api/agents/preview', { config: administer, schema: previewing }, (request) =>
    system.agents.preview(request.body.cardUrl),
  )
  app.get('/api/agents/:agentId', { config: read, schema: looking }, async (request) =>
    system.agents.get(viewerOf(request), localId(request.params.agentId, 'agent.unknown')),
  )
  app.delete('/api/agents/:agentId', { config: administer, schema: removing }, async (request) => {
    await system.agents.remove(viewerOf(request), localId(request.params.agentId, 'agent.unknown'))
    return { removed: true } as const
  })
  app.register(answeringAgentRoutes, door)
  done()
}
