/**
 * Sends that nobody saw the end of, one's own that are under way, and the words of one. Reads only; sending again is an ordinary
 * new command. The queries are persistence/unsettled-sends.ts.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { instruments } from '../actors/system.ts'
import { byKind } from '../domain/needing-words.ts'
import { Refusal } from '../domain/refusal.ts'
import {
  SentWordsAnswer,
  unsettledCountLimit,
  unsettledDays,
  unsettledLimit,
  UnsettledAnswer,
} from '../domain/unsettled-send.ts'
import { UnderWayAnswer, underWayPassed, underWaySearched, underWayShown } from '../domain/under-way.ts'
import { listSendsUnderWay } from '../persistence/sends-under-way.ts'
import { countUnsettledSends, findSend, listUnsettledSends } from '../persistence/unsettled-sends.ts'
import { localId, uuidText, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfCommand = z.object({ commandId: z.string() })
/** Those to one agent. */
const OfAgent = z.object({ agentId: z.optional(uuidText('agentId')) })
const dayMs = 86_400_000

const unsettled = {
  summary: 'Sends that nobody saw the end of',
  querystring: OfAgent,
  response: { 200: UnsettledAnswer },
}
const underWay = {
  summary: "One's own sends that are not delivered yet",
  querystring: OfAgent,
  response: { 200: UnderWayAnswer },
}
const words = {
  summary: 'What one of them said',
  params: OfCommand,
  response: { 200: SentWordsAnswer },
  refuses: ['command.unknown'],
} as const

export const sendRoutes: FastifyPluginCallbackZod<Door> = (app, { db }, done) => {
  const config = { permission: 'read' } as const
  app.get('/api/sends/unsettled', { config, schema: unsettled }, async (request): Promise<UnsettledAnswer> => {
    const since = new Date(instruments.now().getTime() - unsettledDays * dayMs).toISOString()
    const viewer = viewerOf(request)
    const { agentId = null } = request.query
    // One more than is shown tells whether there are more: only then are they counted.
    const sends = await listUnsettledSends(db.pool, viewer, since, unsettledLimit + 1, agentId)
    if (sends.length <= unsettledLimit) return { sends: [...sends], more: false, count: byKind(sends) }
    const { messages, cancels } = await countUnsettledSends(db.pool, viewer, since, unsettledCountLimit, agentId)
    const count = { messages, cancels, isWhole: messages + cancels < unsettledCountLimit }
    return { sends: sends.slice(0, unsettledLimit), more: true, count }
  })
  app.get('/api/sends/under-way', { config, schema: underWay }, async (request): Promise<UnderWayAnswer> => {
    const at = instruments.now().toISOString()
    const found = await listSendsUnderWay(db.pool, viewerOf(request), {
      agentId: request.query.agentId ?? null,
      searched: underWaySearched,
      passed: underWayPassed,
      limit: underWayShown,
    })
    return { at, ...found, sends: [...found.sends] }
  })
  app.get('/api/sends/:commandId', { config, schema: words }, async (request): Promise<SentWordsAnswer> => {
    const id = localId(request.params.commandId, 'command.unknown')
    const send = await findSend(db.pool, viewerOf(request), id)
    if (!send) throw new Refusal('command.unknown')
    return { send: { ...send, reopenings: [...send.reopenings] } }
  })
  done()
}
