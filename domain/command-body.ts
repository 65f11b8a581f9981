/**
 * What a caller asks with a command. Owns the rules of send, commands, messages and stream [console-http-api.md]; what a row or a blob
 * could not hold is the door's (http/command-body.ts). Apart from the record, for the console's first page reads records only.
 */
import * as z from 'zod/mini'
import { idLimit } from '../a2a/proto-json.ts'
import { isUuid } from './uuid.ts'

/** A name that we choose, or a caller does. */
const text255 = z.string().check(z.minLength(1), z.maxLength(255))
/** A name that an agent gave: whatever is taken from it can be said to it. */
export const AgentsId = z.string().check(z.minLength(1), z.maxLength(idLimit))

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
  referenceTaskIds: z.optional(z.array(AgentsId).check(z.maxLength(100))),
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
    taskId: z.optional(AgentsId),
    contextId: z.optional(AgentsId),
    tenant: z._default(z.string().check(z.maxLength(255)), ''),
    messageId: z.optional(text255),
    skillId: z.optional(text255),
    config: z.optional(CommandConfig),
    /** Id of a command that failed or is uncertain, in whose place this one goes: it is settled by the commit that accepts this one. */
    replaces: z.optional(z.string().check(z.refine(isUuid, { error: 'replaces must be a UUID.' }), z.toLowerCase())),
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
