/**
 * The way to a task at its agent: finding who to ask, one look at the task, committing what was seen. What whoever follows a
 * task (subscription.ts) and whoever reconciles it (reconciliation.ts) have in common. Owns no rhythm and no verdict: what a
 * look that failed means is its caller's.
 */
import type { AgentCard } from '../a2a/card.ts'
import { encodeRequest, type AgentError, type WireRequest } from '../a2a/client.ts'
import type { Endpoint } from '../a2a/operations.ts'
import { negotiatedSideband } from '../a2a/extensions/sideband.ts'
import { WireError } from '../a2a/wire.ts'
import type { Source } from '../domain/fact.ts'
import { lostAnswers } from '../domain/lost-answer.ts'
import type { Observation } from '../domain/observation.ts'
import { readAgent } from '../persistence/agents.ts'
import type { ArtifactStore } from '../persistence/artifacts.ts'
import type { Database } from '../persistence/database.ts'
import { aborted } from './loop/bell.ts'
import type { AgentDoor } from './credentials.ts'
import type { Discovery } from './discovery.ts'
import type { Held } from './loop/kinds.ts'
import { tellAhead } from './long-history.ts'
import { limits, type Sent } from './outbound.ts'
import type { ParsedEvent, SeenEvent } from './threads/messages.ts'
import type { ParserPool } from './threads/pool.ts'

export interface LineTools {
  readonly db: Database
  readonly discovery: Discovery
  readonly door: AgentDoor
  readonly pool: ParserPool
  readonly artifacts: ArtifactStore
  readonly sidebandUris: readonly string[]
  readonly newToken: () => string
}

/** An agent's own partition: the names of its tasks mean something only here. */
export interface Scope {
  readonly agentId: string
  readonly tenant: string
}

/** A scope with the way to its agent. */
export interface AgentLine extends Scope {
  readonly endpoint: Endpoint
  readonly streaming: boolean
  /** The card offers push. */
  readonly pushNotifications: boolean
  readonly extensions: readonly string[]
}

/**
 * `gone`: the agent was removed. `missed`: it cannot be found at the moment; `message` is safe to show. `isUntrusted`: it shows a
 * card that may not be used.
 */
export type NoLine =
  | { readonly kind: 'gone' }
  | { readonly kind: 'missed'; readonly message: string; readonly isUntrusted?: boolean }

/** Rejects with the signal's reason when it aborts; the search for the card goes on for whoever else asked for it. */
export async function openLine(
  tools: Pick<LineTools, 'db' | 'discovery' | 'sidebandUris'>,
  { agentId, tenant }: Scope,
  signal: AbortSignal,
): Promise<AgentLine | NoLine> {
  const agent = await readAgent(tools.db.pool, agentId)
  if (!agent?.enabled) return { kind: 'gone' }
  const found = await Promise.race([tools.discovery.forDispatch(agent), aborted(signal)])
  if (found.kind === 'missed')
    return { kind: 'missed', message: found.message, isUntrusted: found.untrusted !== undefined }
  return lineBy(found.card, found.endpoint, { agentId, tenant }, tools.sidebandUris)
}

/** How old a card may be by which an agent is read at a steady rhythm, before it is asked for. */
export const keptAgeMs = 10 * 60_000

/**
 * By the card that the agent showed last, without asking for it: for reads at a steady rhythm. Null where none was kept, or none that
 * can be used. One that is old may have changed although all goes well.
 */
export async function openKeptLine(
  tools: Pick<LineTools, 'db' | 'discovery' | 'sidebandUris'>,
  scope: Scope,
): Promise<{ readonly line: AgentLine; readonly isOld: boolean } | (NoLine & { readonly kind: 'gone' }) | null> {
  const agent = await readAgent(tools.db.pool, scope.agentId)
  if (!agent?.enabled) return { kind: 'gone' }
  const kept = await tools.discovery.kept(agent)
  if (!kept) return null
  const line = lineBy(kept.card, kept.endpoint, scope, tools.sidebandUris)
  return { line, isOld: agent.cardAgeMs !== null && agent.cardAgeMs > keptAgeMs }
}

const lineBy = (
  card: AgentCard,
  endpoint: Endpoint,
  { agentId, tenant }: Scope,
  sidebandUris: readonly string[],
): AgentLine => ({
  agentId,
  tenant,
  endpoint: tenant === '' ? endpoint : { ...endpoint, tenant },
  streaming: card.capabilities.streaming,
  pushNotifications: card.capabilities.pushNotifications,
  extensions: negotiatedSideband(card, sidebandUris),
})

/**
 * `refused`: the agent's own no. `unread`: no answer (`answered` is false), or none that could be read; `message` is safe to
 * show. `oversized`: a limit of ours stood in the way, and will the next time.
 */
export type Look =
  | { readonly kind: 'seen'; readonly event: SeenEvent }
  | { readonly kind: 'refused'; readonly error: AgentError }
  | { readonly kind: 'unread'; readonly answered: boolean; readonly message: string; readonly oversized?: true }

export interface LookOptions {
  readonly historyLength?: number
  readonly deadlineMs: number
  /** Those of any answer where it is not said. */
  readonly maxBytes?: number
  /** `kept` where it is not said: a read may be repeated, and is repeated often. */
  readonly connection?: 'fresh' | 'kept'
  /** Told when the agent's answer is there, or that there is none: what it takes to read and to keep it is not the agent's doing. */
  readonly heard?: (isAnswer: boolean) => void
  /** Aborts once nothing of it can be kept: an answer that waits for its turn leaves. The request's own where it is not said. */
  readonly lease?: AbortSignal
  /** Commits what was seen, where it is to be: here, while a large answer has its turn (threads/heavy-turns.ts). */
  readonly keep?: (event: SeenEvent) => Promise<void>
}

/** Reads the task once, whole. Commits nothing by itself; rejects where `keep` does, and where a large answer is read when `lease` aborts. */
export async function lookAt(
  tools: Pick<LineTools, 'door' | 'pool' | 'newToken'>,
  line: AgentLine,
  remoteId: string,
  signal: AbortSignal,
  options: LookOptions = { deadlineMs: limits.answer.deadlineMs },
): Promise<Look> {
  const { historyLength, deadlineMs, maxBytes = limits.answer.maxBytes, heard, keep, lease = signal } = options
  const requestId = tools.newToken()
  const params = { id: remoteId, ...(historyLength === undefined ? {} : { historyLength }) }
  const request = encoded(() => encodeRequest(line.endpoint, 'get', params, { requestId, extensions: line.extensions }))
  if (request instanceof WireError) return { kind: 'unread', answered: true, message: request.message }
  const bounds = { ...limits.answer, deadlineMs, maxBytes, connection: options.connection ?? 'kept' }
  const sent = await tools.door.exchange(line.agentId, request, bounds, signal)
  heard?.(isAnswer(sent))
  if (sent.kind !== 'answered') return unread(false, sent.message, sent.code === 'too-large')
  const text = { bytes: sent.body.length, agentId: line.agentId, signal: lease }
  return tools.pool.heavy.take(text, async (isHeavy) => {
    const event = await tools.pool.parseReply(line.endpoint, 'get', sent, requestId, isHeavy ? lease : undefined)
    if (event.kind === 'refused') return event
    if (event.kind === 'invalid') return unread(true, event.message, event.oversized === true)
    if (event.observation.taskId !== remoteId) return unread(true, lostAnswers.another, false)
    await keep?.(event)
    return { kind: 'seen', event }
  })
}

/** What is too large to be read is the agent's answer all the same. */
export const isAnswer = (sent: Sent): boolean => sent.kind === 'answered' || sent.code === 'too-large'

const unread = (answered: boolean, message: string, oversized: boolean): Look => ({
  kind: 'unread',
  answered,
  message,
  ...(oversized ? { oversized } : {}),
})

/** A name that no URL or header can carry is the agent's own, and says only that it cannot be asked for. */
export function encoded(encode: () => WireRequest): WireRequest | WireError {
  try {
    return encode()
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
}

/** What a look knew of its task before it asked, as reports carry it. */
interface Seeing {
  /** The task's version. */
  readonly asked?: number
  readonly overrules?: number | null
  readonly isSeenAgain?: boolean
}

/** Commits observations of one task under the lease; bytes are on disk before the rows that name them. */
export async function commitSeen(
  { artifacts }: Pick<LineTools, 'artifacts'>,
  task: Scope & { readonly remoteId: string },
  source: Source,
  events: readonly ParsedEvent[],
  held: Held,
  { asked, overrules = null, isSeenAgain = false }: Seeing = {},
): Promise<void> {
  const { agentId, tenant, remoteId } = task
  const report = { agentId, tenant, source, command: null, remoteTaskId: remoteId }
  const observations: Observation[] = []
  let known = asked
  for (const event of events) {
    if (event.kind !== 'observation') continue
    await artifacts.putAll(event.blobs)
    if (event.long && observations.length > 0) await held.record({ ...report, observations: observations.splice(0) })
    known = await tellAhead(event, known, (piece) => held.record({ ...report, ...piece }))
    observations.push(event.observation)
  }
  if (observations.length === 0) return
  const present = overrules === asked ? known : overrules
  const standing = {
    ...(known !== undefined && { asked: known }),
    ...(typeof present === 'number' && { overrules: present }),
  }
  await held.record({ ...report, observations, ...standing, ...(isSeenAgain && { isSeenAgain }) })
}
