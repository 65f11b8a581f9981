/**
 * Evidence about a command whose outcome nobody knows: what a look at the agent's tasks showed afterwards. It is for a
 * person to judge; nothing here, and nothing that reads it, changes a command. Owns the shape, the rhythm and the words.
 */
import * as z from 'zod/mini'

/**
 * `pending`: nobody has looked yet. `found`: for a send, a task's history has a message with our message id; for a cancel,
 * the task is canceled. `absent`: it was looked for and not seen, which proves nothing: an agent may still be at it.
 * `unreadable`: the agent gave no answer that could be read. `unsearchable`: there is nothing in which to look,
 * or nothing that would be this command's alone.
 */
export const EvidenceOutcome = z.enum(['pending', 'found', 'absent', 'unreadable', 'unsearchable'])
export type EvidenceOutcome = z.infer<typeof EvidenceOutcome>

export const CommandEvidence = z.object({
  outcome: EvidenceOutcome,
  /** How often somebody looked; five times at most. */
  looks: z.number(),
  /** ISO 8601; null before the first look. */
  lookedAt: z.nullable(z.string()),
  /** ISO 8601; null when nobody will look again. */
  nextLookAt: z.nullable(z.string()),
  /** Whether everything was seen that may hold the message. An agent may have more tasks or a longer history. */
  isWhole: z.boolean(),
  /** The agent's id of the task that holds the message, or that was to be canceled; null where there is none. */
  taskId: z.nullable(z.string()),
  /** Ours of the same task; null where it is not known here. */
  localId: z.nullable(z.string()),
  /** What the agent said of the task's state at the last look. */
  taskState: z.nullable(z.string()),
  /** How the same task stands here now; null where it is not known here. */
  localState: z.nullable(z.string()),
  /** The message that was looked for: the command's own. */
  messageId: z.string(),
  /** One sentence for a person. */
  sentence: z.string(),
})
export type CommandEvidence = z.infer<typeof CommandEvidence>

/** What one look showed. `reason`: why nothing could be read, or why not everything. */
export interface EvidenceLook {
  readonly outcome: Exclude<EvidenceOutcome, 'pending'>
  readonly isWhole: boolean
  readonly taskId: string | null
  readonly taskState: string | null
  readonly reason: string | null
}

/** A look, told with the pass that made it. */
export interface LookedFor extends EvidenceLook {
  readonly commandId: string
  /** How many looks there had been before: a look that is told twice counts once. */
  readonly looksBefore: number
}

const minuteMs = 60_000
/**
 * How long after the doubt arose the looks are: at once, for whoever sees the doubt wants to know; then until a slow agent has
 * surely stored what it got.
 */
const looksAfterMs = [0, 15_000, minuteMs, 5 * minuteMs, 60 * minuteMs] as const
/** Looks that are late (the agent or we were away) do not follow each other at once. */
const betweenLooksMs = 15_000

/** When to look again after so many looks: milliseconds since the doubt arose; null when it was looked often enough. */
export function nextLook(looks: number, sinceMs: number, nowMs: number): number | null {
  const after = looksAfterMs[looks]
  if (after === undefined) return null
  return looks === 0 ? sinceMs + after : Math.max(sinceMs + after, nowMs + betweenLooksMs)
}

/** Whether one more look could tell more. */
export const isConclusive = (look: EvidenceLook): boolean => look.outcome === 'found'

export interface EvidenceSubject {
  readonly action: 'send' | 'cancelTask'
  readonly outcome: EvidenceOutcome
  readonly isWhole: boolean
  readonly taskId: string | null
  readonly taskState: string | null
  /** Ours of the same task: what it is now is told from there, and not from an old look. */
  readonly localState: string | null
  readonly reason: string | null
}

/** What a person reads. It says what was seen, and never what to do. */
export function evidenceSentence(subject: EvidenceSubject): string {
  const { action, outcome, isWhole, taskId, taskState, localState, reason } = subject
  const because = reason === null ? '' : ` ${reason}`
  if (outcome === 'pending') return 'Nobody has looked at the agent since.'
  if (outcome === 'unreadable') return `The agent could not be read.${because}`
  if (outcome === 'unsearchable') return `There is nothing in which to look for it.${because}`
  if (action === 'cancelTask') {
    if (outcome === 'found') return 'The agent says that the task is canceled.'
    return taskState === null
      ? `The agent does not say how the task stands.${because}`
      : `At that look the agent said that the task was ${plainState(taskState)}, not canceled.`
  }
  if (outcome === 'found') {
    const state = localState === null ? `, which was ${plainState(taskState ?? '')} at that look` : ''
    return `The agent has the message: it stands in the history of task ${taskId ?? 'unknown'}${state}.`
  }
  const bound = isWhole ? '' : ' Not everything could be looked at.'
  return `The message was not found at the agent, which does not prove that it never arrived.${bound}${because}`
}

/** `TASK_STATE_INPUT_REQUIRED` → `input required`. */
export const plainState = (state: string): string =>
  state === ''
    ? 'in an unknown state'
    : state
        .replace(/^TASK_STATE_/, '')
        .replaceAll('_', ' ')
        .toLowerCase()
