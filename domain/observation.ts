/**
 * An observation: one thing we saw an agent say, reduced to what it changes. Owns the translation from an A2A event to
 * changes of a task; does not own folding them in (persistence/tasks.ts) or fetching them. Payloads are JSON **text**,
 * ready to insert: an agent's text may hold NUL or lone surrogates, which jsonb refuses and which escaped text carries.
 */
import type { Artifact, Message, Part as WirePart, StreamResponse, Task, TaskStatus } from '../a2a/messages.ts'
import type { JsonText } from './json-text.ts'
import { isTerminal, stateSaid, type Part, type StoredBytes } from './task.ts'

/** A part without its id: the id is its place, given when it is read. */
type StoredPart = Omit<Part, 'id'>

export interface ObservedMessage {
  readonly id: string
  readonly role: 'user' | 'agent'
  /** StoredPart[]. */
  readonly parts: JsonText
  readonly timestamp: string | null
  readonly fromStatus: boolean
}

export interface ObservedArtifact {
  readonly artifactId: string
  readonly name: string | null
  readonly description: string | null
  /** URIs of the extensions it belongs to: a trace is not something a person asked for. */
  readonly extensions: readonly string[]
  /** One StoredPart each. */
  readonly parts: readonly JsonText[]
  /** Digests of large parts by their place, where whoever parsed them has made them. */
  readonly partDigests?: ReadonlyMap<number, string>
  /** Adds to the artifact of that id; otherwise replaces it. */
  readonly append: boolean
  readonly complete: boolean
}

export interface Observation {
  readonly kind: 'task' | 'message' | 'statusUpdate' | 'artifactUpdate'
  /** The agent's own ids. */
  readonly taskId: string | null
  readonly contextId: string | null
  /** The event in its 1.0 shape, bytes replaced by references. */
  readonly event: JsonText
  readonly status: { readonly state: string; readonly timestamp: string | null } | null
  readonly messages: readonly ObservedMessage[]
  readonly artifacts: readonly ObservedArtifact[]
  /** Bytes that the parts refer to; they must be on disk before this is committed. */
  readonly stored: readonly StoredBytes[]
}

/** Bytes that may not be kept; the sentence is the specification's and stands in their place. */
export interface RefusedBytes {
  readonly refused: string
}

/** Turns the base64 of a `raw` part into a reference, or into why it is not kept; throws when it is not base64. */
export type KeepBytes = (base64: string) => StoredBytes | RefusedBytes

/** Reduces one event of an agent. Throws only what `keepBytes` throws. */
export function observationFrom(event: StreamResponse, keepBytes: KeepBytes): Observation {
  // Bytes are moved out once, so that the stored event and the normalised parts name the same reference.
  const slim = mapParts(event, (part): SlimPart => {
    if (part.raw === undefined) return part
    const { raw, ...rest } = part
    const kept = keepBytes(raw)
    return 'refused' in kept ? { ...rest, refused: kept.refused } : { ...rest, stored: kept }
  })
  return { ...changesOf(slim), event: JSON.stringify(slim), stored: referencesOf(slim) }
}

/** Reads a stored event back, as it was observed: projections are rebuilt from it. */
export function observationOf(event: string): Observation {
  // We wrote it, from a checked event.
  const slim = JSON.parse(event) as StreamResponse
  return { ...changesOf(slim), event, stored: referencesOf(slim) }
}

/** The observation with every text of the agent's in another form. */
export const withTexts = (observation: Observation, form: (text: JsonText) => JsonText): Observation => ({
  ...observation,
  event: form(observation.event),
  messages: observation.messages.map((message) => ({ ...message, parts: form(message.parts) })),
  artifacts: observation.artifacts.map((artifact) => ({ ...artifact, parts: artifact.parts.map(form) })),
})

function referencesOf(slim: StreamResponse): StoredBytes[] {
  const stored: StoredBytes[] = []
  mapParts(slim, (part: SlimPart) => {
    if (part.stored !== undefined) stored.push(part.stored)
    return part
  })
  return stored
}

type Changes = Omit<Observation, 'event' | 'stored'>

function changesOf(event: StreamResponse): Changes {
  if ('task' in event) return ofTask(event.task)
  if ('message' in event) {
    const { taskId, contextId } = event.message
    return {
      ...nothing('message', taskId, contextId),
      messages: [ofMessage(event.message, null, false)],
    }
  }
  if ('statusUpdate' in event) {
    const { taskId, contextId, status } = event.statusUpdate
    return { ...nothing('statusUpdate', taskId, contextId), status: ofStatus(status), messages: statusMessage(status) }
  }
  const { taskId, contextId, artifact, append, lastChunk } = event.artifactUpdate
  return {
    ...nothing('artifactUpdate', taskId, contextId),
    artifacts: [ofArtifact(artifact, append === true, lastChunk === true)],
  }
}

const nothing = (kind: Observation['kind'], taskId?: string, contextId?: string): Changes => ({
  kind,
  taskId: taskId ?? null,
  contextId: contextId ?? null,
  status: null,
  messages: [],
  artifacts: [],
})

function ofTask(task: Task): Changes {
  const told = (task.history ?? []).map((message) => ofMessage(message, null, false))
  const said = statusMessage(task.status)
  const asked = new Set(said.map((m) => m.id))
  return {
    ...nothing('task', task.id, task.contextId),
    status: ofStatus(task.status),
    // A status's message may stand in the history too: it is one message, and it came from the status.
    messages: [...told.filter((m) => !asked.has(m.id)), ...said],
    artifacts: (task.artifacts ?? []).map((artifact) =>
      ofArtifact(artifact, false, isTerminal(stateSaid(task.status.state))),
    ),
  }
}

const ofStatus = (status: TaskStatus): Changes['status'] => ({
  state: stateSaid(status.state),
  timestamp: status.timestamp ?? null,
})

const statusMessage = (status: TaskStatus): ObservedMessage[] =>
  status.message ? [ofMessage(status.message, status.timestamp ?? null, true)] : []

const ofMessage = (message: Message, timestamp: string | null, fromStatus: boolean): ObservedMessage => ({
  id: message.messageId,
  role: message.role === 'ROLE_USER' ? 'user' : 'agent',
  parts: JSON.stringify(message.parts.map(normalise)),
  timestamp,
  fromStatus,
})

const ofArtifact = (artifact: Artifact, append: boolean, complete: boolean): ObservedArtifact => ({
  artifactId: artifact.artifactId,
  name: artifact.name ?? null,
  description: artifact.description ?? null,
  extensions: artifact.extensions ?? [],
  parts: artifact.parts.map((part) => JSON.stringify(normalise(part))),
  append,
  complete,
})

/** A part with its bytes moved out carries one of these in place of `raw`; a reader of the wire never makes them. */
type SlimPart = Omit<WirePart, 'raw'> & { stored?: StoredBytes } & Partial<RefusedBytes>

/** Gives every kind of part one shape. A part without any content stays visible as `unknown`. */
export function normalise(part: SlimPart): StoredPart {
  const rest = {
    ...(part.filename === undefined ? {} : { filename: part.filename }),
    ...(part.metadata === undefined ? {} : { metadata: part.metadata }),
  }
  if (part.text !== undefined)
    return { kind: 'text', value: part.text, mediaType: part.mediaType ?? 'text/plain', ...rest }
  if (part.stored !== undefined)
    return { kind: 'raw', value: part.stored, mediaType: part.mediaType ?? 'application/octet-stream', ...rest }
  // Visible where the file would be: a person reads why it is missing.
  if (part.refused !== undefined)
    return { kind: 'unknown', value: part.refused, mediaType: part.mediaType ?? 'application/octet-stream', ...rest }
  if (part.url !== undefined)
    return { kind: 'url', value: part.url, mediaType: part.mediaType ?? 'application/octet-stream', ...rest }
  if (Object.hasOwn(part, 'data'))
    return { kind: 'data', value: part.data, mediaType: part.mediaType ?? 'application/json', ...rest }
  return { kind: 'unknown', value: null, mediaType: part.mediaType ?? 'application/octet-stream', ...rest }
}

/** The event with every part of it mapped. */
function mapParts(event: StreamResponse, slimPart: (part: WirePart) => SlimPart): StreamResponse {
  const slimParts = <T extends { parts: WirePart[] }>(owner: T): T => ({ ...owner, parts: owner.parts.map(slimPart) })
  const slimStatus = (status: TaskStatus): TaskStatus =>
    status.message ? { ...status, message: slimParts(status.message) } : status
  if ('message' in event) return { message: slimParts(event.message) }
  if ('statusUpdate' in event)
    return { statusUpdate: { ...event.statusUpdate, status: slimStatus(event.statusUpdate.status) } }
  if ('artifactUpdate' in event)
    return { artifactUpdate: { ...event.artifactUpdate, artifact: slimParts(event.artifactUpdate.artifact) } }
  const { task } = event
  return {
    task: {
      ...task,
      status: slimStatus(task.status),
      ...(task.history ? { history: task.history.map(slimParts) } : {}),
      ...(task.artifacts ? { artifacts: task.artifacts.map(slimParts) } : {}),
    },
  }
}
