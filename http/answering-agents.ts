/**
 * `GET /api/answering-agents`: the agents by what is kept of them, at once, and then each as it answers: for a page, which one that
 * hangs is not to keep empty. Whoever wants them all in one answer has `/api/agents` (agents.ts). Does not ask anybody
 * (actors/agents.ts).
 */
import type { FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import type { AgentListing } from '../actors/agents.ts'
import { media } from './answers.ts'
import type { Door } from './door.ts'
import { frame, sendEvents } from './event-stream.ts'
import { viewerOf } from './guard.ts'
import { logged } from './refusals.ts'
import { goneSignal, patienceMs } from './watch.ts'

/** Never throws: what fails here is said as `error`, for the answer has begun. Without `end` it is not whole. */
async function* frames(
  { kept, answers }: AgentListing,
  request: FastifyRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  yield frame('kept', { agents: kept })
  try {
    for await (const answered of answers(signal)) yield frame('answered', answered)
    if (!signal.aborted) yield frame('end', {})
  } catch (error) {
    const { status, message } = logged(error, request)
    yield frame('error', { status, message })
  }
}

const schema = {
  summary: 'Agents by what is kept of them, and each as it answers',
  response: {
    200: media(
      ['text/event-stream'],
      'For some 5 s: `kept` (the agents without their cards), `answered` for each (its `id`, and `agent` as `/api/agents` has it, or null), `error`, `end`.',
    ),
  },
}

export const answeringAgentRoutes: FastifyPluginCallbackZod<Door> = (app, { system, drain }, done) => {
  app.get('/api/answering-agents', { config: { permission: 'read' }, schema }, async (request, reply) => {
    const listing = await system.agents.listing(viewerOf(request))
    const limit = { windowMs: patienceMs, until: [goneSignal(reply), drain] }
    return sendEvents(request, reply, limit, (signal) => frames(listing, request, signal))
  })
  done()
}
