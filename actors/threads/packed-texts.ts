/**
 * An agent's words on their way from a parsing thread: middling texts travel as one long string, of which each is a slice. V8 copies
 * every string of less than 128 KiB that outlives a scavenge, and the event loop stands still meanwhile; a longer one has pages of its own
 * and stays where it is, and a slice is a few words. Of 75 KB events two thirds of the young space outlived each scavenge before. Texts
 * of one byte a character and of two travel apart: one dash among them would make all of them twice as large. Does not parse
 * (stream-parser.ts) and does not know which thread runs what (pool.ts).
 */
import type { Observation } from '../../domain/observation.ts'
import type { ParsedEvent } from './messages.ts'

/** Characters. A shorter one is cheaper to copy than to keep a batch alive for. */
const packedFrom = 1024
/** Bytes; a string of this size has pages of its own wherever it stands, and joining would only copy it. */
const ownPagesBytes = 128 * 1024

type Width = 'narrow' | 'wide'
const notLatin1 = /[\u0100-\uffff]/

/** In which pack a text travels; null for one that stands in its event. */
function packOf(text: string): Width | null {
  if (text.length < packedFrom || text.length >= ownPagesBytes) return null
  if (!notLatin1.test(text)) return 'narrow'
  return text.length < ownPagesBytes / 2 ? 'wide' : null
}

export interface Packed {
  /** Without the texts that are packed. */
  readonly events: readonly ParsedEvent[]
  readonly packs: Readonly<Record<Width, string>>
  /** Which pack each text is in, and how long it is, in the order in which `mapTexts` comes by them; null for one that stands in its event. */
  readonly places: readonly (readonly [Width, number] | null)[]
}

export function packed(events: readonly ParsedEvent[]): Packed {
  const texts: Record<Width, string[]> = { narrow: [], wide: [] }
  const places: ([Width, number] | null)[] = []
  const without = mapTexts(events, (text) => {
    const pack = packOf(text)
    places.push(pack === null ? null : [pack, text.length])
    if (pack === null) return text
    texts[pack].push(text)
    return ''
  })
  return { events: without, packs: { narrow: texts.narrow.join(''), wide: texts.wide.join('') }, places }
}

export function unpacked({ events, packs, places }: Packed): ParsedEvent[] {
  if (packs.narrow === '' && packs.wide === '') return [...events]
  const starts: Record<Width, number> = { narrow: 0, wide: 0 }
  let next = 0
  return mapTexts(events, (text) => {
    const place = places[next++] ?? null
    if (place === null) return text
    const [pack, length] = place
    const start = starts[pack]
    starts[pack] += length
    return packs[pack].slice(start, start + length)
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
