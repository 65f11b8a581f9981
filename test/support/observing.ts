/** What an agent says as it is observed, and its parts as whoever reads them gets them; by JavaScript, not by a statement. */
import type { StreamResponse } from '../../a2a/messages.ts'
import type { FoldedPart, KnownTask } from '../../domain/fold.ts'
import { decodeText, type JsonText } from '../../domain/json-text.ts'
import { observationFrom, type KeepBytes, type Observation } from '../../domain/observation.ts'
import { elsewhere, valueStart, type PartText } from '../../domain/part-text.ts'
import { textDigest } from '../../persistence/text-digest.ts'

/** A task of which nothing is known yet. */
export const unseen: KnownTask = {
  state: 'TASK_STATE_UNSPECIFIED',
  stateAt: null,
  version: 0,
  events: 0,
  messages: new Map(),
  artifacts: new Map(),
}

/** `keepBytes`: what becomes of files; else all of them are one. */
export const observe = (
  event: StreamResponse,
  keepBytes: KeepBytes = () => ({ digest: 'd'.repeat(64), size: 1, href: '' }),
): Observation => observationFrom(event, keepBytes, textDigest)

/** The JSON of a part of which some may stand in its event. */
export function partText(part: PartText, event: JsonText): string {
  if (typeof part === 'string') return part
  return filled(decodeText(part.json), part.place, event)
}

/** The same, once folded: `eventAt` gives an event of its task by its position. */
export function partRowText({ json, value }: FoldedPart, eventAt: (position: number) => JsonText): string {
  return filled(decodeText(json), value, value ? eventAt(value.event) : '')
}

function filled(shell: string, place: { readonly from: number; readonly bytes: number } | null, event: JsonText) {
  if (place === null) return shell
  const value = Buffer.from(decodeText(event))
    .subarray(place.from, place.from + place.bytes)
    .toString()
  const start = elsewhere.length + valueStart
  return shell.slice(elsewhere.length, start) + value + shell.slice(start + '""'.length)
}
