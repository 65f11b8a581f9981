/**
 * A settlement: a person has looked at a send that failed or is uncertain, and says what they decided. Owns the decisions, their
 * plain words and the shape that the browser checks with. Changes nothing of the command: what the specification says of its
 * status stays so (machines/command.ts).
 */
import * as z from 'zod/mini'
import type { CommandStatus } from './command.ts'

/** `sent-again` names the command that took its place; the others are a person's word for what they found, or do not want to know. */
export const SettleDecision = z.enum(['arrived', 'not-arrived', 'sent-again', 'no-matter'])
export type SettleDecision = z.infer<typeof SettleDecision>

/** A note is a remark and no report, characters. */
export const settleNoteLimit = 500

export const Settlement = z.object({
  decision: SettleDecision,
  note: z.nullable(z.string()),
  by: z.object({ id: z.string(), name: z.string() }),
  /** ISO 8601. */
  at: z.string(),
  /** The command that was sent in its place; null where there is none, or where it is not the reader's to see. */
  successorId: z.nullable(z.string()),
})
export type Settlement = z.infer<typeof Settlement>

/** `POST /api/sends/{commandId}/settle`. */
export const SettlementAnswer = z.object({ settlement: Settlement })
export type SettlementAnswer = z.infer<typeof SettlementAnswer>

/** `POST /api/sends/{commandId}/reopen`: the decision that was taken back. */
export const ReopenedAnswer = z.object({ reopened: Settlement })
export type ReopenedAnswer = z.infer<typeof ReopenedAnswer>

/** Sentences of the API, by which a page knows why it was refused: two of them have one status. */
export const settlementRefusals = {
  taken: 'This send is already settled.',
  early: 'Only a send that failed or is uncertain can be settled.',
  open: 'This send is not settled.',
  successor:
    'successorId must name another command with the same action to the same agent, tenant and skill, and no earlier one.',
} as const

/** What a send that nobody has settled waits for: a person. */
export const needsPerson = (status: CommandStatus): boolean => status === 'failed' || status === 'uncertain'

/** To be read after "settled:", of a message and of a cancel alike. */
export const decisionWords: Readonly<Record<SettleDecision, string>> = {
  arrived: 'the agent has it',
  'not-arrived': 'the agent does not have it',
  'sent-again': 'it was sent again',
  'no-matter': 'it no longer matters',
}
