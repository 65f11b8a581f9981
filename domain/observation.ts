/**
 * An observation: one thing we saw an agent say, reduced to what it changes. Owns the translation from an A2A event to
 * changes of a task; does not own folding them in (fold.ts) or fetching them. Payloads are JSON **text**,
 * ready to insert: an agent's text may hold NUL or lone surrogates, which jsonb refuses and which escaped text carries.
 */
import type { Artifact, Message, Part as WirePart, StreamResponse, Task, TaskStatus } from '../a2a/messages.ts'
import type { JsonText } from './json-text.ts'
import { wholeTexts, writeEvent, type DigestOf, type PartText, type StoredPart } from './part-text.ts'
import { storable } from './storable.ts'
import { isTerminal, stateSaid, type StoredBytes } from './task.ts'

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
  readonly parts: readonly PartText[]
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
export function observationFrom(event: StreamResponse, keepBytes: KeepBytes, digestOf: DigestOf): Observation {
  // Bytes are moved out once, so that the stored event and the normalised parts name the same reference.
  const slim = mapParts(event, (part): SlimPart => {
    const { raw, unreadable, ...rest } = part
    if (unreadable !== undefined) return { refused: unreadable }
    if (raw === undefined) return part
    const kept = keepBytes(raw)
    return 'refused' in kept ? { ...rest, refused: kept.refused } : { ...rest, stored: kept }
  })
  return observed(slim, digestOf)
}

/** Reads a stored event back, as it was observed: projections are rebuilt from it. */
export function observationOf(event: string, digestOf: DigestOf): Observation {
  const slim = slimOf(event)
  const again = observed(slim, digestOf)
  // Places are in the text that is stored: one that we would write differently now has none.
  return again.event === event ? again : observed(slim, digestOf, event)
}

const slimOf = (event: string): StreamResponse => JSON.parse(event) as StreamResponse

function observed(slim: StreamResponse, digestOf: DigestOf, stored?: string): Observation {
  const made = artifactsOf(slim).flatMap((artifact) => artifact.parts.map(normalise))
  const write = (hole: string, places: ReadonlySet<number>): string =>
    JSON.stringify(places.size === 0 ? slim : withHoles(slim, hole, places))
  const { event, parts } =
    stored === undefined ? writeEvent(made, write, digestOf) : { event: stored, parts: wholeTexts(made, digestOf) }
  return { ...changesOf(slim, parts), event, stored: referencesOf(slim) }
}

/** The observation with every text of the agent's in another form. */
export const withTexts = (observation: Observation, form: (text: JsonText) => JsonText): Observation => ({
  ...observation,
  event: form(observation.event),
  messages: observation.messages.map((message) => ({ ...message, parts: form(message.parts) })),
  artifacts: observation.artifacts.map((artifact) => ({
    ...artifact,
    parts: artifact.parts.map((part) => (typeof part === 'string' ? part : { ...part, json: form(part.json) })),
  })),
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

/** `parts`: the texts of its artifacts' parts, in their order. */
function changesOf(event: StreamResponse, parts: readonly PartText[]): Changes {
  if ('task' in event) return ofTask(event.task, parts)
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
    artifacts: [ofArtifact(artifact, parts, append === true, lastChunk === true)],
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

function ofTask(task: Task, parts: readonly PartText[]): Changes {
  const told = (task.history ?? []).map((message) => ofMessage(message, null, false))
  const said = statusMessage(task.status)
  const asked = new Set(said.map((m) => m.id))
  const isWhole = isTerminal(stateSaid(task.status.state))
  let from = 0
  const made = (task.artifacts ?? []).map((artifact) => {
    const upTo = from + artifact.parts.length
    const whole = ofArtifact(artifact, parts.slice(from, upTo), false, isWhole)
    from = upTo
    return whole
  })
  return {
    ...nothing('task', task.id, task.contextId),
    status: ofStatus(task.status),
    // A status's message may stand in the history too: it is one message, and it came from the status.
    messages: [...told.filter((m) => !asked.has(m.id)), ...said],
    artifacts: made,
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

const ofArtifact = (
  artifact: Artifact,
  parts: readonly PartText[],
  append: boolean,
  complete: boolean,
): ObservedArtifact => ({
  artifactId: artifact.artifactId,
  name: clipped(artifact.name),
  description: clipped(artifact.description),
  extensions: fitting(artifact.extensions ?? []),
  parts,
  append,
  complete,
})

/** Characters of what a view shows beside an artifact's parts. Whoever says more is kept word for word in the event. */
const besideLimit = 16 * 1024

const clipped = (text: string | undefined): string | null =>
  text === undefined ? null : storable(text.slice(0, besideLimit))

function fitting(uris: readonly string[]): readonly string[] {
  let characters = 0
  return uris.filter((uri) => (characters += uri.length) <= besideLimit)
}

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

const artifactsOf = (event: StreamResponse): readonly Artifact[] => {
  if ('task' in event) return event.task.artifacts ?? []
  return 'artifactUpdate' in event ? [event.artifactUpdate.artifact] : []
}

/** The event with another value in some parts of its artifacts: `places` counts over all of them. */
function withHoles(event: StreamResponse, hole: string, places: ReadonlySet<number>): StreamResponse {
  let place = 0
  const holed = (artifact: Artifact): Artifact => ({
    ...artifact,
    parts: artifact.parts.map((part) => {
      if (!places.has(place++)) return part
      return part.text === undefined ? { ...part, data: hole } : { ...part, text: hole }
    }),
  })
  if ('artifactUpdate' in event)
    return { artifactUpdate: { ...event.artifactUpdate, artifact: holed(event.artifactUpdate.artifact) } }
  if (!('task' in event)) return event
  return { task: { ...event.task, artifacts: (event.task.artifacts ?? []).map(holed) } }
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
