/**
 * Folding what an agent said into what is known of a task. Pure, and safe to repeat: what arrives twice, late or out of
 * order changes nothing, and a finished task never reopens. Does not read or write rows (persistence/tasks.ts).
 */
import type { Source } from './fact.ts'
import type { JsonText } from './json-text.ts'
import { beforeEvent, placed, placedAsSent, placesAmong, placesFor } from './message-order.ts'
import type { Observation, ObservedArtifact, ObservedMessage } from './observation.ts'
import { nothingPassedOver, passedOver, toldBit, type Answer, type PassedOver, type Standing } from './overtaken.ts'
import { comparedBy, type PartText, type ValuePlace } from './part-text.ts'
import { knownAs, nameFor, type KnownMessage } from './same-id.ts'
import { isTerminal, isWaiting } from './task.ts'

export interface KnownArtifact {
  readonly position: number
  readonly name: string | null
  readonly description: string | null
  readonly extensions: readonly string[]
  readonly complete: boolean
  readonly updateCount: number
  readonly partCount: number
  /** Chain of digests over the parts in order: equal chains mean equal content, however it was chunked into updates. */
  readonly partsDigest: string
}

/** What is known of a task before a report is folded in; only what the report touches needs to be there. */
export interface KnownTask {
  readonly state: string
  /** The agent's own time of that state, ISO 8601; null when it gave none. */
  readonly stateAt: string | null
  readonly version: number
  readonly events: number
  readonly messages: ReadonlyMap<string, KnownMessage>
  readonly artifacts: ReadonlyMap<string, KnownArtifact>
}

export interface FoldedMessage {
  readonly id: string
  readonly position: number
  readonly role: 'user' | 'agent'
  readonly parts: JsonText
  readonly saidAt: string
  readonly fromStatus: boolean
}

/** A part as it is kept: a StoredPart, or one whose value stands in an event of its task. */
export interface FoldedPart {
  readonly json: JsonText
  readonly value: (Pick<ValuePlace, 'from' | 'bytes'> & { readonly event: number }) | null
}

export interface FoldedArtifact extends KnownArtifact {
  /** New parts by position; those at or beyond `partCount` came and went within one report. */
  readonly newParts: ReadonlyMap<number, FoldedPart>
  /** It had more parts before: what is stored at or beyond `partCount` is to be removed. */
  readonly isShorter: boolean
}

export interface FoldedEvent {
  readonly position: number
  readonly source: Source
  readonly event: JsonText
  /** Its status counted although its time is before the one that was known. */
  readonly isPresent: boolean
  /** What of it did not count, for more had been heard since it was asked for; null where all did. */
  readonly passedOver: PassedOver | null
}

/** What folding changed; empty where the agent said nothing new. */
export interface Folded {
  readonly state: string
  readonly stateAt: string | null
  readonly version: number
  readonly eventCount: number
  readonly changed: boolean
  readonly events: readonly FoldedEvent[]
  readonly messages: readonly FoldedMessage[]
  readonly artifacts: ReadonlyMap<string, FoldedArtifact>
  readonly transitions: readonly { readonly position: number; readonly state: string; readonly at: string }[]
  /** Sizes in bytes of what the new parts refer to, by digest. */
  readonly stored: ReadonlyMap<string, number>
}

/** A digest of a digest and of what the next part is compared by, in pieces; the empty chain is ''. */
export type Chain = (previous: string, ...part: readonly (string | Uint8Array)[]) => string

/**
 * Parts of one artifact that a view shows. What an agent sends beyond is kept in its events and counts for what the artifact
 * is, and one part says so in its place. A token a part, these are some sixty pages; without a bound one artifact that grows
 * for ever makes every view of its task grow with it.
 */
export const partsLimit = 20_000
const partsCut: FoldedPart = {
  json: JSON.stringify({
    kind: 'unknown',
    value: `The artifact has more than ${partsLimit} parts. The others are kept in the task's events and are not shown.`,
    mediaType: 'text/plain',
  }),
  value: null,
}

/**
 * Some agents put the present time on whatever they show. Seen once a minute it is enough of a clock to tell late words from new ones;
 * each look would be an event, and events are kept for ever.
 */
const stampPauseMs = 60_000

interface Saying {
  readonly counts: boolean
  readonly since: number | null
}

type ObservedStatus = NonNullable<Observation['status']>

export class Fold {
  readonly #chain: Chain
  readonly #at: string
  #state: string
  #stateAt: string | null
  #events: number
  #version: number
  readonly #known: Map<string, KnownMessage>
  readonly #artifacts: Map<string, KnownArtifact>
  readonly #foldedArtifacts = new Map<string, FoldedArtifact & { readonly newParts: Map<number, FoldedPart> }>()
  readonly #foldedEvents: FoldedEvent[] = []
  readonly #told = new Set<string>()
  readonly #messages: FoldedMessage[] = []
  readonly #transitions: Folded['transitions'][number][] = []
  readonly #stored = new Map<string, number>()

  /** `at`: the instant of the commit, ISO 8601, for whatever the agent gave no time. */
  constructor(known: KnownTask, at: string, chain: Chain) {
    this.#chain = chain
    this.#at = at
    this.#state = known.state
    this.#stateAt = known.stateAt
    this.#events = known.events
    this.#version = known.version
    this.#known = new Map(known.messages)
    this.#artifacts = new Map(known.artifacts)
  }

  get state(): string {
    return this.#state
  }

  get version(): number {
    return this.#version
  }

  /** Artifacts of which bits were folded in here. */
  get told(): ReadonlySet<string> {
    return this.#told
  }

  /**
   * Folds one observation in. Returns whether it said anything new; only then is the event kept.
   */
  add(observation: Observation, source: Source, standing: Standing = {}): boolean {
    const position = this.#events
    const { status } = observation
    const { isPresent = false, passedOver: passed = this.#passedOver(observation, source, standing.answer) } = standing
    const overrules = isPresent && isSaid(status) && isBefore(status, this.#state, this.#stateAt)
    // Asked before its status is folded: what was made by then stands, and a late word only adds what nobody had seen.
    const late = !overrules && this.#isLate(observation)
    const saysNews = !passed.status && this.#saysNews(observation, source)
    const since = source === 'sent' ? (passed.since ?? position) : null
    const said = this.#addMessages(observation, position, { counts: overrules || saysNews, since })
    const made = this.#addArtifacts(observation, position, source, { late, passed: passed.artifacts })
    const isShown = observation.kind === 'task' && source !== 'reply'
    const pauseMs = isShown && !said && !made ? stampPauseMs : 0
    const stands = passed.status
      ? 'as it was'
      : overrules
        ? this.#takeStatus(status, position)
        : this.#addStatus(observation, position, pauseMs)
    if (!said && !made && stands === 'as it was') return false
    const isWhole = said || made || stands === 'moved'
    if (isWhole) for (const { digest, size } of observation.stored) this.#stored.set(digest, size)
    const event = isWhole ? observation.event : stampOf(observation)
    const less = passed.status || passed.artifacts.length > 0 || passed.since !== undefined ? passed : null
    this.#foldedEvents.push({ position, source, event, isPresent: overrules, passedOver: less })
    const bit = toldBit(observation, source)
    if (bit !== null) this.#told.add(bit)
    this.#events = position + 1
    this.#version += 1
    return true
  }

  result(): Folded {
    return {
      state: this.#state,
      stateAt: this.#stateAt,
      version: this.#version,
      eventCount: this.#events,
      changed: this.#foldedEvents.length > 0,
      events: this.#foldedEvents,
      messages: this.#messages,
      artifacts: this.#foldedArtifacts,
      transitions: this.#transitions,
      stored: this.#stored,
    }
  }

  #passedOver(observation: Observation, source: Source, answer: Answer | undefined): PassedOver {
    if (!answer) return nothingPassedOver
    const { status } = observation
    const isPlaced = this.#stateAt !== null && instant(status?.timestamp ?? null) !== null
    return passedOver(observation, source, answer, status !== null && status.state !== this.#state && !isPlaced)
  }

  /** A time that alone is new counts from `pauseMs` on. */
  #addStatus({ status }: Observation, position: number, pauseMs: number): 'moved' | 'stamped' | 'as it was' {
    if (!isSaid(status) || isTerminal(this.#state)) return 'as it was'
    if (isBefore(status, this.#state, this.#stateAt)) return 'as it was'
    const at = instant(status.timestamp)
    if (status.state === this.#state && (at === null || !isLater(at, this.#stateAt, pauseMs))) return 'as it was'
    return this.#takeStatus(status, position)
  }

  #takeStatus(status: ObservedStatus, position: number): 'moved' | 'stamped' {
    const at = instant(status.timestamp)
    if (at !== null) this.#stateAt = at
    if (status.state === this.#state) return 'stamped'
    this.#state = status.state
    this.#transitions.push({ position, state: status.state, at: at ?? this.#at })
    return 'moved'
  }

  /** It shows the task as it was before what is known: behind its end, or behind a newer status. */
  #isLate({ status }: Observation): boolean {
    if (isTerminal(this.#state)) return status === null || !isTerminal(status.state)
    return isBefore(status, this.#state, this.#stateAt)
  }

  /**
   * Whether the words of its status are of now: the task moves with it, or waits for a person anew. Of a task at work they are repeated
   * and grow, under one name.
   */
  #saysNews({ status }: Observation, source: Source): boolean {
    if (!isSaid(status) || isTerminal(this.#state) || isBefore(status, this.#state, this.#stateAt)) return false
    if (status.state !== this.#state) return true
    const at = instant(status.timestamp)
    return isWaiting(this.#state) && (isOrdered(source) || (at !== null && isLater(at, this.#stateAt)))
  }

  /** `since`: of our own words, the event that came next when they left; null of all else. */
  #addMessages({ messages, status }: Observation, event: number, { counts, since }: Saying): boolean {
    const nameOf = (message: ObservedMessage): string | null => {
      const isNews = ({ position }: KnownMessage): boolean =>
        since === null ? message.fromStatus && counts : position < beforeEvent(since)
      return nameFor(message, this.#known, isNews, this.#chain)
    }
    const told = messages.map((message) => {
      const { role, fromStatus } = message
      // Other words under an id that is known are new.
      const stands = nameOf(message) === null ? knownAs(message, this.#known, this.#chain) : undefined
      return { role, fromStatus, place: stands?.position ?? null }
    })
    const asks = status !== null && isWaiting(status.state)
    const places = since === null ? placesFor(event, told, asks) : [placedAsSent(since, event)]
    let news = false
    messages.forEach((message, index) => {
      const id = nameOf(message)
      if (id === null) return
      const position = places[index] ?? placed(event, index)
      this.#known.set(id, { ...message, position })
      this.#messages.push({
        id,
        position,
        role: message.role,
        parts: message.parts,
        saidAt: instant(message.timestamp) ?? this.#at,
        fromStatus: message.fromStatus,
      })
      news = true
    })
    return news
  }

  #addArtifacts(
    observation: Observation,
    position: number,
    source: Source,
    { late, passed }: { readonly late: boolean; readonly passed: readonly string[] },
  ): boolean {
    const ordered = isOrdered(source)
    const toldAt = observation.artifacts.map(({ artifactId }) => this.#artifacts.get(artifactId)?.position ?? null)
    const places = placesAmong(position, toldAt)
    let news = false
    observation.artifacts.forEach((artifact, index) => {
      if (passed.includes(artifact.artifactId)) return
      // A push may tell of the end before the stream has told of its last chunks: those still count, until the whole was seen.
      const known = this.#artifacts.get(artifact.artifactId)
      if (late && known && (source !== 'stream' || known.complete)) return
      if (artifact.append && !ordered) return
      if (source === 'push' && this.#isPieceOfKnown(artifact)) return
      const isBegun = ordered && observation.kind === 'artifactUpdate' && !artifact.append
      const place = places[index] ?? placed(position, index)
      if (this.#addArtifact(artifact, { position, text: observation.event }, place, isBegun)) news = true
    })
    return news
  }

  /**
   * Pushes come in any order, and beside a stream that is followed: one may bring an artifact that is not known, or the
   * whole of one that was not, but none grows bit by bit. An early piece that comes late would shrink it, and a piece that
   * comes before the stream's own would stand there twice.
   */
  #isPieceOfKnown(seen: ObservedArtifact): boolean {
    const known = this.#artifacts.get(seen.artifactId)
    return known !== undefined && (known.complete || !seen.complete)
  }

  /** `isBegun`: what was complete is begun anew, and is complete when that is said again. */
  #addArtifact(
    seen: ObservedArtifact,
    event: { position: number; text: JsonText },
    place: number,
    isBegun: boolean,
  ): boolean {
    const known = this.#artifacts.get(seen.artifactId)
    const start = seen.append && known ? known : { partCount: 0, partsDigest: '' }
    const after: KnownArtifact = {
      position: known?.position ?? place,
      name: seen.name ?? known?.name ?? null,
      description: seen.description ?? known?.description ?? null,
      extensions: seen.extensions.length > 0 ? seen.extensions : (known?.extensions ?? []),
      complete: seen.complete || (!isBegun && (known?.complete ?? false)),
      updateCount: (known?.updateCount ?? 0) + 1,
      // The part that says that others are left out is one more; behind it nothing is added.
      partCount: Math.min(start.partCount + seen.parts.length, partsLimit + 1),
      partsDigest: this.#chained(start.partsDigest, seen, event.text),
    }
    if (known && !seen.append && isSame(after, known)) return false
    const earlier = this.#foldedArtifacts.get(seen.artifactId)
    // Grown in place: copied for each of a report's events, a thousand small ones cost a second in a hundred megabytes.
    const newParts = (seen.append ? earlier?.newParts : undefined) ?? new Map<number, FoldedPart>()
    const room = Math.max(0, partsLimit - start.partCount)
    seen.parts.slice(0, room).forEach((part, i) => newParts.set(start.partCount + i, foldedPart(part, event.position)))
    if (after.partCount > partsLimit) newParts.set(partsLimit, partsCut)
    this.#artifacts.set(seen.artifactId, after)
    const isShorter = earlier?.isShorter === true || after.partCount < (known?.partCount ?? 0)
    this.#foldedArtifacts.set(seen.artifactId, { ...after, newParts, isShorter })
    return true
  }

  /** Over all parts, those that are not shown included. */
  #chained(from: string, { parts }: ObservedArtifact, event: JsonText): string {
    return parts.reduce((digest: string, part) => this.#chain(digest, ...comparedBy(part, event)), from)
  }
}

/** Where it is shown as it is: how often it was told does not show. */
const isSame = (a: KnownArtifact, b: KnownArtifact): boolean =>
  a.partsDigest === b.partsDigest &&
  a.complete === b.complete &&
  a.name === b.name &&
  a.description === b.description &&
  // In any order: replicas differ in that, and each look would be kept.
  a.extensions.toSorted().join(' ') === b.extensions.toSorted().join(' ')

/** What comes as it was said: only there does an update without an id add to what is known. */
const isOrdered = (source: Source): boolean => source === 'stream' || source === 'reply'

/** Whether it is a state that A2A has. */
export const isSaid = (status: ObservedStatus | null): status is ObservedStatus =>
  status !== null && status.state !== 'TASK_STATE_UNSPECIFIED'

/**
 * Whether a status of an unfinished task is older than the one that is known, by the agent's own clock. An end is an end, whatever the
 * clocks of an agent's replicas say, and so is what was made by then.
 */
export function isBefore(status: ObservedStatus | null, knownState: string, knownAt: string | null): boolean {
  if (!status || isTerminal(status.state) || isTerminal(knownState)) return false
  const at = instant(status.timestamp)
  const known = instant(knownAt)
  return at !== null && known !== null && at < known
}

const foldedPart = (part: PartText, event: number): FoldedPart =>
  typeof part === 'string'
    ? { json: part, value: null }
    : { json: part.json, value: part.place && { from: part.place.from, bytes: part.place.bytes, event } }

/** Another instant, by so much. */
export const isLater = (at: string, than: string | null, byMs = 0): boolean =>
  than === null || (at !== than && Date.parse(at) - Date.parse(than) >= byMs)

/** The time alone, for an event that brings nothing else: whole, one artifact would be kept again with every look at its task. */
const stampOf = ({ taskId, contextId, status }: Observation): string =>
  JSON.stringify({ statusUpdate: { taskId, ...(contextId === null ? {} : { contextId }), status } })

/** An agent's timestamp as a sortable instant; null where it gave none or nonsense. */
function instant(timestamp: string | null): string | null {
  if (timestamp === null) return null
  const ms = Date.parse(timestamp)
  return Number.isFinite(ms) && Math.abs(ms) < 4e13 ? new Date(ms).toISOString() : null
}
