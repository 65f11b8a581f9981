/**
 * Side events: what an agent says about its own working (thinking, tools, usage) beside the task. Owns finding them in A2A events,
 * for negotiated extension URIs only, and giving them one shape. Malformed or over-limit content is no event and no
 * error. Does not own dropping duplicates across events (the caller keeps `key`) or traces (trace.ts).
 */
import type { AgentCard } from '../card.ts'
import { isObject } from '../proto-json.ts'
import type { JsonObject } from '../proto-json.ts'
import { WireError } from '../wire.ts'
import type { Artifact, Message, Part, StreamResponse } from '../messages.ts'
import { readPart } from '../wire.ts'
import { describeAgentEvent, describeTrace, titleOf, traceUri } from './trace.ts'

export const sidebandUri = 'urn:agent-observability:sideband-events:v1'
export const builtInSidebandUris: readonly string[] = [sidebandUri, traceUri]

/** What a card advertises and we understand: the built-in URIs and those a deployment adds. In card order. */
export function negotiatedSideband(card: Pick<AgentCard, 'capabilities'>, configured: readonly string[]): string[] {
  const understood = new Set([...builtInSidebandUris, ...configured])
  return card.capabilities.extensions.map(({ uri }) => uri).filter((uri) => understood.has(uri))
}

export type SidebandLevel = 'debug' | 'info' | 'warning' | 'error'

export interface SidebandEvent {
  readonly id: string
  /** As the agent said it, ISO 8601 UTC; null when it did not. */
  readonly timestamp: string | null
  readonly extensionUri: string
  readonly type: string
  readonly title: string
  readonly level: SidebandLevel
  readonly parts: readonly Part[]
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly taskId?: string
  readonly contextId?: string
  /** Equal for duplicates: URI, id and parts. */
  readonly key: string
}

/** Per A2A event; what is more is ordinary content. */
export const sidebandLimits = { events: 100, parts: 32, id: 512, type: 128, title: 300, partsCharacters: 64 * 1024 }

interface Origin {
  readonly taskId: string | undefined
  readonly contextId: string | undefined
  /** Makes an id for an event without one: stable, so that a replay is recognised. */
  readonly name: string
  readonly timestamp: string | undefined
}

/** The side events that one A2A event carries, in order, without duplicates. Never throws. */
export function decodeSideband(event: StreamResponse, negotiated: readonly string[]): SidebandEvent[] {
  if (negotiated.length === 0) return []
  const found = new Map<string, SidebandEvent>()
  for (const candidate of candidates(event, negotiated)) {
    if (found.size >= sidebandLimits.events) break
    if (candidate && !found.has(candidate.key)) found.set(candidate.key, candidate)
  }
  return [...found.values()]
}

function* candidates(event: StreamResponse, negotiated: readonly string[]): Generator<SidebandEvent | null> {
  if ('message' in event) {
    yield* fromMessage(event.message, event.message, negotiated)
  } else if ('statusUpdate' in event) {
    const { statusUpdate } = event
    const { status } = statusUpdate
    const name = `${statusUpdate.taskId}#${status.timestamp ?? status.state}`
    yield* fromMetadata(
      statusUpdate.metadata,
      { ...whose(statusUpdate), name, timestamp: status.timestamp },
      negotiated,
    )
    if (status.message) yield* fromMessage(status.message, statusUpdate, negotiated, status.timestamp)
  } else if ('artifactUpdate' in event) {
    yield fromArtifact(event.artifactUpdate.artifact, event.artifactUpdate, negotiated)
  } else {
    const { task } = event
    const owner = { taskId: task.id, contextId: task.contextId }
    for (const message of task.history ?? []) yield* fromMessage(message, owner, negotiated)
    if (task.status.message) yield* fromMessage(task.status.message, owner, negotiated, task.status.timestamp)
    for (const artifact of task.artifacts ?? []) yield fromArtifact(artifact, owner, negotiated)
  }
}

type Owner = { readonly taskId?: string | undefined; readonly contextId?: string | undefined }
const whose = (owner: Owner): Pick<Origin, 'taskId' | 'contextId'> => ({
  taskId: owner.taskId,
  contextId: owner.contextId,
})

function* fromMessage(
  message: Message,
  owner: Owner,
  negotiated: readonly string[],
  timestamp?: string,
): Generator<SidebandEvent | null> {
  // What a person sent is an echo, not the agent's account of itself.
  if (message.role === 'ROLE_USER') return
  yield* fromMetadata(message.metadata, { ...whose(owner), name: message.messageId, timestamp }, negotiated)
}

function* fromMetadata(
  metadata: Readonly<Record<string, unknown>> | undefined,
  origin: Origin,
  negotiated: readonly string[],
): Generator<SidebandEvent | null> {
  if (!metadata) return
  for (const uri of negotiated)
    for (const key of [uri, `${uri}/events`, `${uri}/sideband`])
      if (Object.hasOwn(metadata, key))
        yield* fromEntry(metadata[key], { ...origin, name: `${origin.name}#${key}` }, uri)
  const assumed = negotiated.includes(sidebandUri) ? sidebandUri : negotiated[0]
  for (const key of ['sideband', 'sidebandEvents'])
    if (Object.hasOwn(metadata, key))
      for (const [index, item] of listOf(metadata[key]).entries()) {
        const named = text(item, 'extensionUri') ?? text(item, 'uri')
        const uri = named === undefined ? assumed : negotiated.find((known) => known === named)
        yield uri === undefined ? null : fromRecord(item, { ...origin, name: `${origin.name}#${key}#${index}` }, uri)
      }
}

function* fromEntry(entry: unknown, origin: Origin, uri: string): Generator<SidebandEvent | null> {
  for (const [index, item] of listOf(entry).entries())
    yield fromRecord(item, { ...origin, name: `${origin.name}#${index}` }, uri)
}

/** One event, a list of them, or `{events: […]}`. */
function listOf(entry: unknown): readonly JsonObject[] {
  const inner = isObject(entry) && Array.isArray(entry['events']) ? entry['events'] : entry
  const items: readonly unknown[] = Array.isArray(inner) ? inner.slice(0, sidebandLimits.events) : [inner]
  return items.filter(isObject)
}

const text = (json: JsonObject, name: string): string | undefined => {
  const value = json[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

const levels: readonly string[] = ['debug', 'info', 'warning', 'error'] satisfies SidebandLevel[]
const isLevel = (value: unknown): value is SidebandLevel => typeof value === 'string' && levels.includes(value)

/** The console's own record, or the wrapper's AgentEvent (`eventId`, `eventType`, `data`). */
function fromRecord(json: JsonObject, origin: Origin, extensionUri: string): SidebandEvent | null {
  const agentEvent = text(json, 'eventType')
  const data = isObject(json['data']) ? json['data'] : undefined
  const described = agentEvent === undefined ? undefined : describeAgentEvent(agentEvent, data ?? {})
  const type = described?.type ?? text(json, 'type')
  if (type === undefined) return null
  return assemble({
    id: text(json, 'id') ?? text(json, 'eventId') ?? origin.name,
    timestamp: instant(json['timestamp']) ?? origin.timestamp ?? null,
    extensionUri,
    type,
    title: text(json, 'title') ?? described?.title ?? titleOf(type),
    level: isLevel(json['level']) ? json['level'] : (described?.level ?? 'info'),
    parts: Array.isArray(json['parts']) ? json['parts'] : data ? [{ data, mediaType: 'application/json' }] : [],
    metadata: isObject(json['metadata']) ? json['metadata'] : undefined,
    ...whose(origin),
  })
}

function fromArtifact(artifact: Artifact, owner: Owner, negotiated: readonly string[]): SidebandEvent | null {
  const extensionUri = artifact.extensions?.find((uri) => negotiated.includes(uri))
  if (extensionUri === undefined) return null
  const metadata = artifact.metadata ?? {}
  const data = artifact.parts.map((part) => part.data).find(isObject) ?? {}
  const name = text(metadata, 'traceType') ?? text(metadata, 'type') ?? artifact.name ?? 'artifact'
  const described =
    extensionUri === traceUri
      ? describeTrace(name, { ...data, ...metadata })
      : { type: name, title: artifact.name ?? titleOf(name), level: 'info' as const }
  return assemble({
    id: artifact.artifactId,
    timestamp: instant(metadata['timestamp']) ?? instant(data['timestamp']) ?? null,
    extensionUri,
    ...described,
    level: isLevel(metadata['level']) ? metadata['level'] : described.level,
    parts: artifact.parts,
    metadata: artifact.metadata,
    ...whose(owner),
  })
}

interface Draft extends Omit<SidebandEvent, 'key' | 'parts' | 'metadata' | 'taskId' | 'contextId'> {
  readonly parts: readonly unknown[]
  readonly metadata: Readonly<Record<string, unknown>> | undefined
  readonly taskId: string | undefined
  readonly contextId: string | undefined
}

function assemble({ metadata, taskId, contextId, ...draft }: Draft): SidebandEvent | null {
  if (draft.id.length > sidebandLimits.id || draft.parts.length > sidebandLimits.parts) return null
  const parts = readParts(draft.parts)
  if (!parts) return null
  const written = JSON.stringify([draft.extensionUri, draft.id, parts])
  const size = written.length + (metadata ? JSON.stringify(metadata).length : 0)
  if (size > sidebandLimits.partsCharacters) return null
  return {
    ...draft,
    type: draft.type.slice(0, sidebandLimits.type),
    title: draft.title.slice(0, sidebandLimits.title),
    parts,
    ...(metadata ? { metadata } : {}),
    ...(taskId === undefined ? {} : { taskId }),
    ...(contextId === undefined ? {} : { contextId }),
    key: written,
  }
}

function readParts(parts: readonly unknown[]): Part[] | null {
  try {
    return parts.map((part, index) => readPart(part, `parts[${index}]`))
  } catch (error) {
    if (error instanceof WireError) return null
    throw error
  }
}

/** An ISO text or epoch milliseconds as ISO 8601 UTC. */
function instant(value: unknown): string | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  const date = new Date(value)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
