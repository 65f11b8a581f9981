/** Settling a send: what a person decided about one that failed or is uncertain. Does not own the decision (actors/settlement.ts). */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { SettleDecision, settleNoteLimit, SettlementAnswer } from '../domain/settlement.ts'
import { isStorable } from './command-body.ts'
import { isUuid, localId, type Door } from './door.ts'
import { viewerOf } from './guard.ts'

const OfCommand = z.object({ commandId: z.string() })

const tooLong = `note must be at most ${settleNoteLimit} characters.`
const Body = z
  .strictObject({
    decision: SettleDecision,
    note: z.optional(
      z
        .string()
        .check(
          z.trim(),
          z.maxLength(settleNoteLimit, { error: tooLong }),
          z.refine(isStorable, { error: 'note holds characters that cannot be stored.' }),
        ),
    ),
    successorId: z.optional(z.string().check(z.refine(isUuid, { error: 'successorId must be a UUID.' }))),
  })
  .check(
    z.refine(({ decision, successorId }) => (decision === 'sent-again') === (successorId !== undefined), {
      error: 'successorId belongs to the decision "sent-again", and to no other.',
    }),
  )

const settling = {
  summary: 'Settle a send that failed or is uncertain',
  params: OfCommand,
  body: Body,
  response: { 200: SettlementAnswer },
  refuses: ['command.unknown', 'settlement.successor', 'settlement.early', 'settlement.taken'],
} as const

export const settlementRoutes: FastifyPluginCallbackZod<Door> = (app, { system }, done) => {
  const config = { permission: 'operate' } as const
  app.post('/api/sends/:commandId/settle', { config, schema: settling }, async (request): Promise<SettlementAnswer> => {
    const id = localId(request.params.commandId, 'command.unknown')
    const { decision, note = '', successorId } = request.body
    const settlement = await system.settlements.settle(viewerOf(request), id, {
      decision,
      note: note === '' ? null : note,
      successorId: successorId?.toLowerCase() ?? null,
    })
    return { settlement }
  })
  done()
}
