/**
 * The body of a send or cancel as the door takes it: the domain's rules, and what a row or a blob could not hold. Does not
 * own the rules themselves (domain/command-body.ts).
 */
import * as z from 'zod/mini'
import { AgentsId, CommandBody } from '../domain/command-body.ts'

/** A binary part, decoded, bytes. */
const partLimitBytes = 16 * 1024 * 1024
const base64 = /^[A-Za-z0-9+/]*={0,2}$/
const names = ['tenant', 'taskId', 'contextId', 'messageId', 'skillId'] as const

/** PostgreSQL text holds neither NUL nor half a surrogate pair, and a name that is changed on the way is another name. */
export const isStorable = (name: string): boolean => !name.includes('\0') && name.isWellFormed()

/** Null when the part's bytes can be stored, else what is wrong. Node's decoder would skip what it cannot read. */
function faultOfBytes(raw: string): string | null {
  if (raw.length % 4 !== 0 || !base64.test(raw)) return 'A raw part must be standard base64.'
  const padding = raw.endsWith('==') ? 2 : Number(raw.endsWith('='))
  return (raw.length / 4) * 3 - padding > partLimitBytes ? 'Artifact exceeds the 16 MB persistence limit.' : null
}

export const CommandRequest = CommandBody.check((context) => {
  const body = context.value
  const refuse = (message: string, input: unknown): void => void context.issues.push({ code: 'custom', message, input })
  for (const name of names)
    if (body[name] !== undefined && !isStorable(body[name]))
      refuse(`${name} holds characters that cannot be stored.`, body)
  if (body.config?.referenceTaskIds?.some((id) => !isStorable(id)))
    refuse('config.referenceTaskIds holds characters that cannot be stored.', body)
  for (const part of body.parts ?? []) {
    const fault = part.raw === undefined ? null : faultOfBytes(part.raw)
    if (fault !== null) refuse(fault, part)
  }
})

/**
 * Follows a task that exists, by the agent's own name for it. Beyond the specification: `position`, the first of its stored events to be
 * told, for whoever has seen those before it; a `meta` event names each one's.
 */
const Resubscribe = z.strictObject({
  resubscribe: z.literal(true),
  taskId: AgentsId.check(z.refine(isStorable)),
  tenant: z._default(z.string().check(z.maxLength(255), z.refine(isStorable)), ''),
  position: z.optional(z.int().check(z.nonnegative())),
})
export type StreamRequest = z.infer<typeof Resubscribe> | z.infer<typeof CommandRequest>

/** The same in the words of a document. */
export const ShownStreamRequest = z.union([CommandRequest, Resubscribe])

const asksAgain = (body: unknown): boolean => typeof body === 'object' && body !== null && 'resubscribe' in body

/** Chosen by hand: a union's own complaint names neither of its halves. */
export const StreamRequest = z.pipe(
  z.unknown(),
  z.transform((body, context): StreamRequest => {
    const result = (asksAgain(body) ? Resubscribe : CommandRequest).safeParse(body)
    if (result.success) return result.data
    // Issues that were found carry what zod needs of them; only their type differs from raw ones.
    for (const { message, path } of result.error.issues)
      context.issues.push({ code: 'custom', message, path, input: body })
    return z.NEVER
  }),
)
