/**
 * Sends that nobody saw the end of: the list above the tasks, and the words of one. Reads only; sending again is an ordinary
 * new command. The queries are persistence/unsettled-sends.ts.
 */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { instruments } from '../actors/system.ts'
import { Refusal } from '../domain/refusal.ts'
import { unsettledDays, unsettledLimit, type SentWordsAnswer, type UnsettledAnswer } from '../domain/unsettled-send.ts'
import { findSend, listUnsettledSends } from '../persistence/unsettled-sends.ts'
import { localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfCommand = z.object({ commandId: z.string() })
const dayMs = 86_400_000

export const sendRoutes: FastifyPluginCallbackZod<Door> = (app, { db }, done) => {
  const config = { permission: 'read' } as const
  app.get('/api/sends/unsettled', { config }, async (request): Promise<UnsettledAnswer> => {
    const { organizationId } = viewerOf(request)
    const since = new Date(instruments.now().getTime() - unsettledDays * dayMs).toISOString()
    // One more than is shown tells whether there are more.
    const sends = await listUnsettledSends(db.pool, organizationId, since, unsettledLimit + 1)
    return { sends: sends.slice(0, unsettledLimit), more: sends.length > unsettledLimit }
  })
  app.get(
    '/api/sends/:commandId',
    { config, schema: { params: OfCommand } },
    async (request): Promise<SentWordsAnswer> => {
      const id = localId(request.params.commandId, 'command.unknown')
      const send = await findSend(db.pool, viewerOf(request).organizationId, id)
      if (!send) throw new Refusal('command.unknown')
      return { send }
    },
  )
  done()
}
