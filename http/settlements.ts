/** Settling a send, and reopening it: what a person decided about one that failed or is uncertain. Does not own the decision (actors/settlement.ts). */
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import * as z from 'zod/mini'
import { ReopenedAnswer, SettleDecision, settleNoteLimit, SettlementAnswer } from '../domain/settlement.ts'
import { isStorable } from './command-body.ts'
import { localId, type Door } from './door.ts'
import { isUuid } from '../domain/uuid.ts'
import { viewerOf } from './guard.ts'

const OfCommand = z.object({ commandId: z.string() })

const tooLong = `note must be at most ${settleNoteLimit} characters.`
const Note = z.optional(
  z
    .string()
    .check(
      z.trim(),
      z.maxLength(settleNoteLimit, { error: tooLong }),
      z.refine(isStorable, { error: 'note holds characters that cannot be stored.' }),
    ),
)
const Body = z
  .strictObject({
    decision: SettleDecision,
    note: Note,
    successorId: z.optional(z.string().check(z.refine(isUuid, { error: 'successorId must be a UUID.' }))),
  })
  .check(
    z.refine(({ decision, successorId }) => (decision === 'sent-again') === (successorId !== undefined), {
      error: 'successorId belongs to the decision "sent-again", and to no other.',
    }),
  )

const ReopenBody = z.strictObject({ note: Note })

const noteOf = (note: string | undefined): string | null => (note === undefined || note === '' ? null : note)

const settling = {
  summary: 'Settle a send that failed or is uncertain',
  params: OfCommand,
  body: Body,
  response: { 200: SettlementAnswer },
  refuses: ['command.unknown', 'settlement.successor', 'settlement.early', 'settlement.taken'],
} as const

const reopening = {
  summary: 'Take back what was decided about a send',
  params: OfCommand,
  body: ReopenBody,
  response: { 200: ReopenedAnswer },
  refuses: ['command.unknown', 'settlement.open'],
} as const

export const settlementRoutes: FastifyPluginCallbackZod<Door> = (app, { system }, done) => {
  const config = { permission: 'operate' } as const
  app.post('/api/sends/:commandId/settle', { config, schema: settling }, async (request): Promise<SettlementAnswer> => {
    const id = localId(request.params.commandId, 'command.unknown')
    const { decision, note, successorId } = request.body
    const settlement = await system.settlements.settle(viewerOf(request), id, {
      decision,
      note: noteOf(note),
      successorId: successorId?.toLowerCase() ?? null,
    })
    return { settlement }
  })
  app.post('/api/sends/:commandId/reopen', { config, schema: reopening }, async (request): Promise<ReopenedAnswer> => {
    const id = localId(request.params.commandId, 'command.unknown')
    const reopening = await system.settlements.reopen(viewerOf(request), id, noteOf(request.body.note))
    return { reopened: reopening.settlement, reopening }
  })
  done()
}
