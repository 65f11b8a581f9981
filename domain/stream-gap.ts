/**
 * What an agent said between two of its streams. An agent need not begin a stream with its task (before A2A 1.0 none had to: specification
 * 0.3, "tasks/resubscribe"), and such a stream goes on behind what nobody heard. A look at the task shows all of it, and perhaps more: what the
 * stream is about to tell. Owns how much of a look may be taken, so that nothing stands there twice; pure. Does not look (actors/gap-looks.ts).
 */
import type { StreamResponse, Task } from '../a2a/messages.ts'
import { normalise, observationOf, type Observation } from './observation.ts'
import type { DigestOf } from './part-text.ts'

/** By the agent's name of each artifact: its parts, as JSON of StoredPart, in their order. */
export type ArtifactParts = ReadonlyMap<string, readonly string[]>

/** Parts by which a place is looked for, before all are compared. */
const probeParts = 8
/** Of what was told last: where something is missing more than once, the rest stands nowhere as a whole. */
const tailParts = 32
/** Places that look alike: what repeats itself so often says nothing of where it stands. */
const placesLimit = 16

/**
 * How many parts of `shown` end with the last that was told, where some are missing in the middle of what was told, or stand there twice: those
 * behind are the stream's to tell. Null where it is all there, where the look is behind the stream, and where it cannot be said which.
 */
export function toldWithin(shown: readonly string[], told: readonly string[]): number | null {
  const known = commonStart(shown, told)
  if (known === told.length || known === shown.length) return null
  const rest = told.slice(known)
  const whole = endOf(rest, shown, known)
  return whole === null && rest.length > tailParts ? endOf(rest.slice(-tailParts), shown, known) : whole
}

/** Where `rest` ends in `shown`, if it stands there once, and beyond what is known: also where its beginning was known before it was told. */
function endOf(rest: readonly string[], shown: readonly string[], known: number): number | null {
  const [place, other] = placesOf(rest, shown)
  if (place === undefined || other !== undefined) return null
  return place + rest.length > known ? place + rest.length : null
}

/** Places in `shown` at which all of `rest` stands, two at the most; none where too many look like one. */
function placesOf(rest: readonly string[], shown: readonly string[]): readonly number[] {
  const probe = rest.slice(0, probeParts)
  const places: number[] = []
  for (let at = 0, alike = 0; at + rest.length <= shown.length && places.length < 2; at += 1) {
    if (!stands(probe, shown, at)) continue
    alike += 1
    if (alike > placesLimit) return []
    if (stands(rest, shown, at)) places.push(at)
  }
  return places
}

const stands = (parts: readonly string[], shown: readonly string[], at: number): boolean =>
  parts.every((part, i) => shown[at + i] === part)

function commonStart(a: readonly string[], b: readonly string[]): number {
  const length = Math.min(a.length, b.length)
  let same = 0
  while (same < length && a[same] === b[same]) same += 1
  return same
}

/** A look had more of an artifact than was told of it: either it was on its way, or it is missing. */
interface Ahead {
  readonly parts: readonly string[]
  readonly told: number
  /** Monotonic milliseconds. */
  readonly sinceMs: number
}

/** What is on its way has come by then. */
const onItsWayMs = 10_000

/** The looks beside one stream, one after the other. */
export class StreamGaps {
  readonly #ahead = new Map<string, Ahead>()

  /**
   * How many parts of each artifact of a look are to be taken, where it shows some that the stream will not tell. `told`: what is known of
   * them, while the stream is held back; one that is missing there is left as it is. `nowMs`: monotonic.
   */
  taken(shown: ArtifactParts, told: ArtifactParts, nowMs: number): ReadonlyMap<string, number> {
    // Of the look before alone: no more is held than a look may be.
    for (const id of this.#ahead.keys()) if (!shown.has(id)) this.#ahead.delete(id)
    const taken = new Map<string, number>()
    for (const [id, parts] of shown) {
      const known = told.get(id)
      if (!known) continue
      const upTo = toldWithin(parts, known) ?? this.#untold(id, parts, known, nowMs)
      if (upTo === null) continue
      taken.set(id, upTo)
      this.#ahead.delete(id)
    }
    return taken
  }

  /** What was shown long enough ago, and nothing was told of the artifact since. */
  #untold(id: string, shown: readonly string[], told: readonly string[], nowMs: number): number | null {
    const before = this.#ahead.get(id)
    const isAhead = shown.length > told.length && commonStart(shown, told) === told.length
    // Of an artifact that was begun anew meanwhile as many may have been told.
    if (isAhead && before?.told === told.length && stands(before.parts, shown, told.length))
      return nowMs - before.sinceMs >= onItsWayMs ? told.length + before.parts.length : null
    this.#ahead.delete(id)
    if (isAhead) this.#ahead.set(id, { parts: shown.slice(told.length), told: told.length, sinceMs: nowMs })
    return null
  }
}

/** Of an event that shows one, as it is kept; null for any other. */
export function shownTask(event: string): Task | null {
  const read = JSON.parse(event) as StreamResponse
  return 'task' in read ? read.task : null
}

export const shownParts = ({ artifacts = [] }: Task): ArtifactParts =>
  new Map(artifacts.map(({ artifactId, parts }) => [artifactId, parts.map((part) => JSON.stringify(normalise(part)))]))

/**
 * The look without what the stream is to tell: it says nothing of the task's state, all its messages, and so many parts of artifacts.
 * An event of its own, so that whoever folds, keeps and rebuilds it needs to know of no other (as domain/long-history.ts).
 */
export function cutLook(task: Task, taken: ReadonlyMap<string, number>, digestOf: DigestOf): Observation {
  const artifacts = (task.artifacts ?? []).flatMap((artifact) => {
    const upTo = taken.get(artifact.artifactId)
    return upTo === undefined ? [] : [{ ...artifact, parts: artifact.parts.slice(0, upTo) }]
  })
  // Nor its time, by which all of it would be old where the stream stamps what it tells.
  const { message } = task.status
  const status = { state: 'TASK_STATE_UNSPECIFIED', ...(message && { message }) }
  const cut: Task = { ...task, status, artifacts }
  return observationOf(JSON.stringify({ task: cut }), digestOf)
}
