/**
 * A command: one send or cancel that a person asked for, durable from the moment it is accepted. Owns the record's shape and the
 * sentences a person reads about it. Does not own what may be asked (command-body.ts) or its life (machines/command.ts).
 */
import * as z from 'zod/mini'
import { CommandEvidence } from './evidence.ts'

export const commandStatuses = ['pending', 'dispatching', 'succeeded', 'failed', 'uncertain'] as const
export const CommandStatus = z.enum(commandStatuses)
export type CommandStatus = z.infer<typeof CommandStatus>
export const isFinished = (status: CommandStatus): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'uncertain'

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
/** Beyond the specification, which has no word for it. */
export const discoveryInterrupted =
  'Agent discovery was interrupted before dispatch ten times, by the end of whoever looked.'
