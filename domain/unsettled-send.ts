/**
 * A send that ended failed or uncertain, as a list shows it, and what it said. Shapes that the browser checks with. Does not
 * own a command's life (machines/command.ts) or its words (domain/command-explanation.ts).
 */
import * as z from 'zod/mini'
import { CommandStatus } from './command.ts'
import { CommandEvidence } from './evidence.ts'
import { Reopening, Settlement } from './settlement.ts'

const ended = {
  id: z.string(),
  agentId: z.string(),
  agentName: z.string(),
  action: z.enum(['send', 'cancelTask']),
  status: CommandStatus,
  error: z.nullable(z.string()),
  /** The task it continued or was to cancel; null for the first send of a task, which made none. */
  localId: z.nullable(z.string()),
  createdAt: z.string(),
  /** Its first words, or its task's title. */
  title: z.string(),
  /** Whoever looks may settle it. */
  operable: z.boolean(),
}

export const UnsettledSend = z.object({
  ...ended,
  updatedAt: z.string(),
  /** What a look at the agent showed since; null where nobody looks. */
  evidence: z.nullable(CommandEvidence),
})
export type UnsettledSend = z.infer<typeof UnsettledSend>

/**
 * The list goes back so far: what nobody settled for a week is history. It stays on the Actors page until somebody does, or until retention
 * forgets what has finished (30 days unless told otherwise); the command itself stays after that.
 */
export const unsettledDays = 7
export const unsettledLimit = 20
/** Beyond this nobody counts. */
export const unsettledCountLimit = 1_000

/**
 * `GET /api/sends/unsettled`: the newest of the last week that nobody has settled. `more`: there are older ones than these; `count`: of
 * all, by kind, or of the newest thousand where it is not whole.
 */
export const UnsettledAnswer = z.object({
  sends: z.array(UnsettledSend),
  more: z.boolean(),
  count: z.object({ messages: z.number(), cancels: z.number(), isWhole: z.boolean() }),
})
export type UnsettledAnswer = z.infer<typeof UnsettledAnswer>

/** `GET /api/sends/{commandId}`: what was sent, to be sent again by a person as a command of its own. */
export const SentWords = z.object({
  ...ended,
  /** The two names by which whoever runs the agent can look for it: the message's and, where it named one, the task's. */
  messageId: z.string(),
  taskId: z.nullable(z.string()),
  tenant: z.string(),
  /** The skill that it is restricted to; null: none. */
  skillId: z.nullable(z.string()),
  text: z.string(),
  /** Parts besides the words, which cannot be written into a field: files, data. */
  otherParts: z.number(),
  /** What a person decided about it; null while nobody has. */
  settlement: z.nullable(Settlement),
  /** Decisions about it that were taken back, the newest first, `reopeningsShown` at most. */
  reopenings: z.array(Reopening),
  /** The earlier send in whose place this one was sent; null where there is none to see. */
  replaces: z.nullable(z.string()),
})
export type SentWords = z.infer<typeof SentWords>
export const SentWordsAnswer = z.object({ send: SentWords })
export type SentWordsAnswer = z.infer<typeof SentWordsAnswer>
