/**
 * An agent's words on their way from a parsing thread: middling texts travel as one long string, of which each is a slice. V8 copies
 * every string of less than 128 KiB that outlives a scavenge, and the event loop stands still meanwhile; a longer one has pages of its own
 * and stays where it is, and a slice is a few words. Of 75 KB events two thirds of the young space outlived each scavenge before. Does
 * not parse (stream-parser.ts) and does not know which thread runs what (pool.ts).
 */
import type { Observation } from '../../domain/observation.ts'
import type { ParsedEvent } from './messages.ts'

/** Characters. A shorter one is cheaper to copy than to keep a batch alive for. */
const packedFrom = 1024
/** Characters; at this length a string has pages of its own wherever it stands, and joining would only copy it. */
const packedBelow = 128 * 1024

export interface Packed {
  /** Without the texts that are packed. */
  readonly events: readonly ParsedEvent[]
  readonly texts: string
  /** Where each ends in `texts`, in the order in which `mapTexts` comes by them; null for one that stands in its event. */
  readonly ends: readonly (number | null)[]
}

export function packed(events: readonly ParsedEvent[]): Packed {
  const texts: string[] = []
  const ends: (number | null)[] = []
  let end = 0
  const without = mapTexts(events, (text) => {
    const isPacked = text.length >= packedFrom && text.length < packedBelow
    ends.push(isPacked ? (end += text.length) : null)
    if (!isPacked) return text
    texts.push(text)
    return ''
  })
  return { events: without, texts: texts.join(''), ends }
}

export function unpacked({ events, texts, ends }: Packed): ParsedEvent[] {
  if (texts === '') return [...events]
  let place = 0
  let start = 0
  return mapTexts(events, (text) => {
    const end = ends[place++] ?? null
    if (end === null) return text
    const slice = texts.slice(start, end)
    start = end
    return slice
  })
}

function mapTexts(events: readonly ParsedEvent[], map: (text: string) => string): ParsedEvent[] {
  return events.map((event) =>
    event.kind === 'observation' ? { ...event, observation: observationWith(event.observation, map) } : event,
  )
}

const observationWith = (observation: Observation, map: (text: string) => string): Observation => ({
  ...observation,
  event: map(observation.event),
  messages: observation.messages.map((message) => ({ ...message, parts: map(message.parts) })),
  artifacts: observation.artifacts.map((artifact) => ({ ...artifact, parts: artifact.parts.map(map) })),
})
