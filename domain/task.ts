/**
 * A task as the console knows it: what an agent said about its work, normalised. Owns the state vocabulary and
 * the shapes that `/api/tasks` answers with. Does not own A2A's wire shapes (a2a/messages.ts) or assignment (domain/ownership.ts).
 */
import * as z from 'zod/mini'

/** Wire states of A2A 1.0 [a2a.proto TaskState] and our own for a direct reply that made no task. */
export const taskStates = [
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
  'MESSAGE_ONLY',
] as const
export const TaskState = z.enum(taskStates)
export type TaskState = z.infer<typeof TaskState>

const agentsStates: ReadonlySet<string> = new Set(taskStates.filter((state) => state !== 'MESSAGE_ONLY'))

/**
 * What an agent's word for a state means here. A2A's enumeration is open, and a word that it does not have (a later version's,
 * an agent's own, or ours for a reply without a task) says as little of the state as `TASK_STATE_UNSPECIFIED`: what was
 * known stays known. The event keeps the word as it was said.
 */
export const stateSaid = (word: string): string => (agentsStates.has(word) ? word : 'TASK_STATE_UNSPECIFIED')

const terminal: ReadonlySet<string> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
  'MESSAGE_ONLY',
])
const waiting: ReadonlySet<string> = new Set(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'])

/** The agent will do no more work on it; a console never reopens such a task. */
export const isTerminal = (state: string): boolean => terminal.has(state)
/** The agent waits for a person, so nothing more will arrive by itself. */
export const isWaiting = (state: string): boolean => waiting.has(state)
/** Nothing more will arrive without a new message: a stream to the browser may end here. */
export const isSettled = (state: string): boolean => isTerminal(state) || isWaiting(state)

export const taskFilters = ['all', 'active', 'needs-input', 'done', 'mine', 'overdue', 'unassigned'] as const
export type TaskFilter = (typeof taskFilters)[number]

/** Stored bytes of a `raw` part: never inline, fetched from `/api/artifacts/{digest}`. Size in bytes. */
export const StoredBytes = z.object({ digest: z.string(), size: z.number(), href: z.string() })
export type StoredBytes = z.infer<typeof StoredBytes>

/** A part of a message or artifact. `value`: text → string, data → any JSON, url → string (never loaded), raw → StoredBytes. */
export const Part = z.object({
  id: z.string(),
  kind: z.enum(['text', 'data', 'url', 'raw', 'unknown']),
  value: z.unknown(),
  mediaType: z.string(),
  filename: z.optional(z.string()),
  metadata: z.optional(z.record(z.string(), z.unknown())),
})
export type Part = z.infer<typeof Part>

export const TaskMessage = z.object({
  /** Whoever said it named it so; other words under a name that was used before have `#` and a digest behind it (same-id.ts). */
  id: z.string(),
  role: z.enum(['user', 'agent']),
  parts: z.array(Part),
  timestamp: z.string(),
  /** It came as the message of a status: the agent's question or closing words. */
  fromStatus: z.boolean(),
})
export type TaskMessage = z.infer<typeof TaskMessage>

export const TaskArtifact = z.object({
  artifactId: z.string(),
  name: z.optional(z.string()),
  description: z.optional(z.string()),
  /** URIs of the extensions it belongs to, where there are any. */
  extensions: z.optional(z.array(z.string())),
  parts: z.array(Part),
  complete: z.boolean(),
  updateCount: z.number(),
})
export type TaskArtifact = z.infer<typeof TaskArtifact>

export const Transition = z.object({ state: z.string(), timestamp: z.string() })
export type Transition = z.infer<typeof Transition>

/** Who owns a task, as a list row shows it; null where nobody does and no due time is set. */
export const WorkflowSummary = z.object({
  assigneeMembershipId: z.nullable(z.string()),
  assigneeName: z.nullable(z.string()),
  dueAt: z.nullable(z.string()),
  escalationLevel: z.number(),
})
export type WorkflowSummary = z.infer<typeof WorkflowSummary>

const row = {
  localId: z.string(),
  /** The agent's own id; null for a direct reply, which has no task. */
  taskId: z.nullable(z.string()),
  tenant: z.string(),
  agentId: z.string(),
  agentName: z.string(),
  state: z.string(),
  kind: z.enum(['task', 'message']),
  title: z.string(),
  contextId: z.nullable(z.string()),
  createdAt: z.string(),
  updatedAt: z.string(),
  referenceLinks: z.array(z.object({ taskId: z.string(), localId: z.nullable(z.string()) })),
  workflow: z.nullable(WorkflowSummary),
}

/** A row of `GET /api/tasks`: its `messages` and `artifacts` are always empty, the view has them. */
export const TaskRow = z.object({ ...row, messages: z.array(TaskMessage), artifacts: z.array(TaskArtifact) })
export type TaskRow = z.infer<typeof TaskRow>

/** `GET /api/tasks/{localId}` and the `snapshot` event. `version` grows by one with every committed change. */
export const TaskView = z.object({
  ...row,
  skillId: z.nullable(z.string()),
  messages: z.array(TaskMessage),
  artifacts: z.array(TaskArtifact),
  transitions: z.array(Transition),
  version: z.number(),
})
export type TaskView = z.infer<typeof TaskView>

export const titleLimit = 120
/** The first line of what a person asked, for a list row; null when they sent no words. */
export function titleFrom(text: string): string | null {
  const line = text
    .split(/\r?\n/)
    .map((s) => s.trim())
    .find((s) => s !== '')
  if (!line) return null
  return line.length <= titleLimit ? line : `${line.slice(0, titleLimit - 1).trimEnd()}…`
}
