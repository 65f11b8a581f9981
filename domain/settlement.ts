/**
 * A settlement: a person has looked at a send that failed or is uncertain, and says what they decided. Owns the decisions, their
 * plain words and the shape that the browser checks with. Changes nothing of the command: what the specification says of its
 * status stays so (machines/command.ts).
 */
import * as z from 'zod/mini'
import type { CommandStatus } from './command.ts'
import { isolated } from './isolation.ts'

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

/** A decision that somebody took back, and what they said of it. */
export const Reopening = z.object({
  settlement: Settlement,
  note: z.nullable(z.string()),
  by: z.object({ id: z.string(), name: z.string() }),
  /** ISO 8601. */
  at: z.string(),
})
export type Reopening = z.infer<typeof Reopening>

/** The newest are enough to see why; each is in the audit trail. */
export const reopeningsShown = 5

/** `POST /api/sends/{commandId}/settle`. */
export const SettlementAnswer = z.object({ settlement: Settlement })
export type SettlementAnswer = z.infer<typeof SettlementAnswer>

/** `POST /api/sends/{commandId}/reopen`: the decision that was taken back, and by whom. */
export const ReopenedAnswer = z.object({ reopened: Settlement, reopening: Reopening })
export type ReopenedAnswer = z.infer<typeof ReopenedAnswer>

/** The API's sentences of its refusals, by which a page tells two of one status apart. domain/refusal.ts takes them from here. */
export const settlementRefusals = {
  taken: 'This send is already settled.',
  early: 'Only a send that failed or is uncertain can be settled.',
  open: 'This send is not settled.',
  successor:
    'successorId must name another command with the same action to the same agent, tenant and skill, and no earlier one.',
  replaces: 'replaces must name a command with the same action to the same agent, tenant and skill.',
} as const

/** The same to a person who looks at a page. */
const refusedWords: Readonly<Record<string, string>> = {
  [settlementRefusals.taken]: 'Somebody has settled it already.',
  [settlementRefusals.early]: 'It has not ended in failure or in doubt, so there is nothing to settle.',
  [settlementRefusals.open]: 'It is open already: somebody else was quicker.',
  [settlementRefusals.successor]:
    'That is not a later message of the same kind, to the same agent and skill, which could take its place.',
  [settlementRefusals.replaces]:
    'The earlier message was for another tenant or skill, so this one cannot take its place. Dismiss what is said of it to send this by itself.',
}

/** Why a message was not accepted, in a page's words where it has some. */
export const whyNotAccepted = (message: string): string => refusedWords[message] ?? message

const statusWords: Readonly<Record<number, string>> = {
  403: 'You may look at it here. Settling needs the permission to send to this agent.',
  404: 'It is not here any more, or no longer yours to see.',
}

/** Why it could not be settled or reopened; what no page knows words for is said as the console said it. */
export const whyNotSettled = ({ status, message }: { readonly status: number; readonly message: string }): string =>
  refusedWords[message] ?? statusWords[status] ?? message

/** To be read by itself: who decided, and what. */
export const settledBy = ({ by, decision }: Settlement): string =>
  `${isolated(by.name)} settled it: ${decisionWords[decision]}`

/** The same of who took a decision back. */
export const reopenedBy = ({ by }: Reopening): string => `${isolated(by.name)} reopened it`

/** How a command may end that nobody but a person can say more of. It stays so. */
export const endsForPerson = ['failed', 'uncertain'] as const satisfies readonly CommandStatus[]
/** What a send that nobody has settled waits for: a person. */
export const needsPerson = (status: CommandStatus): boolean => endsForPerson.some((end) => end === status)

/** What a command asks, and of whom. */
export interface Asking {
  readonly action: 'send' | 'cancelTask'
  readonly agentId: string
  readonly tenant: string
  readonly skillId: string | null
  /** The agent's name of the task that it continues or is to cancel. */
  readonly remoteTaskId: string | null
}

/**
 * Whether one may take the place of the other, as far as that is in what they ask: the same of the same agent, tenant and skill, so that
 * whoever may see one may see the other, and neither the answer nor the trail names what is not theirs. A cancel is one of its task.
 */
export const asksTheSame = (one: Asking, other: Asking): boolean =>
  one.action === other.action &&
  one.agentId === other.agentId &&
  one.tenant === other.tenant &&
  one.skillId === other.skillId &&
  (one.action === 'send' || one.remoteTaskId === other.remoteTaskId)

/** Clocks of replicas are seldom further apart. Where they are, a later command may be refused for seeming older: nothing is lost by that. */
const clocksApartMs = 60_000

interface Dated {
  /** ISO 8601. */
  readonly createdAt: string
}

/** Each replica dates what it accepts by its own clock, so what is later may seem a little older. */
export const isLater = (one: Dated, than: Dated): boolean =>
  Date.parse(one.createdAt) > Date.parse(than.createdAt) - clocksApartMs

/** To be read after "settled:", of a message and of a cancel alike. */
export const decisionWords: Readonly<Record<SettleDecision, string>> = {
  arrived: 'the agent has it',
  'not-arrived': 'the agent does not have it',
  'sent-again': 'it was sent again',
  'no-matter': 'it no longer matters',
}
