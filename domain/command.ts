/**
 * A command: one send or cancel that a person asked for, durable from the moment it is accepted. Owns the body's rules,
 * the record's shape and the sentences a person reads about it. Does not own its life (machines/command.ts).
 */
import * as z from 'zod/mini'
import { CommandEvidence } from './evidence.ts'

export const commandStatuses = ['pending', 'dispatching', 'succeeded', 'failed', 'uncertain'] as const
export const CommandStatus = z.enum(commandStatuses)
export type CommandStatus = z.infer<typeof CommandStatus>
export const isFinished = (status: CommandStatus): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'uncertain'

const text255 = z.string().check(z.minLength(1), z.maxLength(255))

/** A part as a caller writes it: A2A 1.0's shape, exactly one of text, data, url and raw (base64). */
const BodyPart = z
  .strictObject({
    text: z.optional(z.string()),
    data: z.optional(z.unknown()),
    url: z.optional(z.string()),
    raw: z.optional(z.string()),
    mediaType: z.optional(z.string()),
    filename: z.optional(z.string()),
    metadata: z.optional(z.record(z.string(), z.unknown())),
  })
  .check(
    z.refine((part) => ['text', 'data', 'url', 'raw'].filter((key) => Object.hasOwn(part, key)).length === 1, {
      error: 'A part holds exactly one of text, data, url and raw.',
    }),
  )

const CommandConfig = z.strictObject({
  /** Accepted for compatibility and overruled: the console always asks the agent to return at once. */
  returnImmediately: z.optional(z.boolean()),
  historyLength: z.optional(z.number().check(z.int(), z.minimum(0), z.maximum(1000))),
  acceptedOutputModes: z.optional(z.array(z.string()).check(z.maxLength(100))),
  referenceTaskIds: z.optional(z.array(text255).check(z.maxLength(100))),
  extensions: z.optional(z.array(z.string().check(z.minLength(1), z.maxLength(1024))).check(z.maxLength(100))),
  metadata: z.optional(z.record(z.string(), z.unknown())),
  requestMetadata: z.optional(z.record(z.string(), z.unknown())),
})

/** The body of send, commands, messages and stream. Strict: an unknown key is refused. */
export const CommandBody = z
  .strictObject({
    action: z._default(z.enum(['send', 'cancelTask']), 'send'),
    text: z.optional(z.string()),
    parts: z.optional(z.array(BodyPart).check(z.maxLength(1000))),
    taskId: z.optional(text255),
    contextId: z.optional(text255),
    tenant: z._default(z.string().check(z.maxLength(255)), ''),
    messageId: z.optional(text255),
    skillId: z.optional(text255),
    config: z.optional(CommandConfig),
  })
  .check(
    z.refine((body) => body.action !== 'send' || (body.text ?? '') !== '' || (body.parts ?? []).length > 0, {
      error: 'A send needs non-empty text or at least one part.',
    }),
    z.refine((body) => body.action !== 'cancelTask' || body.taskId !== undefined, {
      error: 'taskId is required to cancel a task.',
    }),
  )
export type CommandBody = z.infer<typeof CommandBody>

/** The words of a send: its text, or its first part that is text. */
export const wordsOf = (body: CommandBody): string =>
  body.text || (body.parts?.find((part) => typeof part.text === 'string')?.text ?? '')

/** What a succeeded command brought back. `event` is the agent's reply in its 1.0 shape: `{task}` or `{message}`. */
export const CommandResult = z.object({
  event: z.unknown(),
  localId: z.string(),
  taskId: z.nullable(z.string()),
  tenant: z.string(),
})
export type CommandResult = z.infer<typeof CommandResult>

export const Command = z.object({
  id: z.string(),
  agentId: z.string(),
  tenant: z.string(),
  action: z.enum(['send', 'cancelTask']),
  messageId: z.string(),
  status: CommandStatus,
  result: z.nullable(CommandResult),
  error: z.nullable(z.string()),
  createdAt: z.string(),
  updatedAt: z.string(),
  /** Beyond the specification, and only on an uncertain command: what was seen of it at the agent since. Changes nothing. */
  evidence: z.optional(CommandEvidence),
})
export type Command = z.infer<typeof Command>

/** The sentences of the specification's command table; a person reads them, tests match them. */
export const commandErrors = {
  discovery: 'Agent discovery failed before dispatch after three attempts.',
  unavailable: 'Command could not dispatch: unavailable agent or input archive.',
  uncertain: 'Remote outcome is uncertain. Automatic resend is disabled; check the task before submitting new work.',
  leaseExpired: 'A previous dispatch lease expired. Remote outcome requires reconciliation.',
} as const
