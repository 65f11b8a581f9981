/**
 * Parts of artifacts as JSON text, and the event that says them. Most of what a heavy stream brings is one long value: it is kept in
 * its event, and its part only says where it stands there, for written twice it costs threads, sockets and the database twice. Owns
 * what is long and both texts; does not own a part's shape (observation.ts) or how it is put together again (persistence/part-rows.ts).
 */
import type { JsonText } from './json-text.ts'
import type { Part } from './task.ts'

/** A part without its id: the id is its place, given when it is read. */
export type StoredPart = Omit<Part, 'id'>

/** Where a value's JSON stands in the text of its event, in bytes of UTF-8. */
export interface ValuePlace {
  readonly from: number
  readonly bytes: number
}

export interface LongPart {
  /** StoredPart, with `""` for its value where `place` says where that stands. */
  readonly json: JsonText
  /** Of the whole part, its value included: what it is compared by. */
  readonly digest: string
  readonly place: ValuePlace | null
}

/** StoredPart. A string is short. */
export type PartText = string | LongPart

/** Of texts one after the other. */
export type DigestOf = (...pieces: readonly string[]) => string

/** Characters of a value's JSON. Shorter ones are cheap to write, and cheaper to read where they are. */
export const longValue = 8 * 1024

/** Where `""` stands in the text of a part whose value stands elsewhere: `kind` and `value` come first, and both kinds are as long. */
export const valueStart = '{"kind":"text","value":'.length
const valueEnd = valueStart + '""'.length

/** A part's text on its way: all of it, or what is around a long value. */
type Draft = string | { readonly shell: string; readonly value: string }

function draftOf(part: StoredPart): Draft {
  const { kind, value } = part
  if (kind !== 'data' && (kind !== 'text' || String(value).length < longValue)) return JSON.stringify(part)
  const text = JSON.stringify(value)
  const shell = JSON.stringify({ ...part, value: '' })
  return text.length < longValue ? filled(shell, text).join('') : { shell, value: text }
}

const filled = (shell: string, value: string): readonly string[] => [
  shell.slice(0, valueStart),
  value,
  shell.slice(valueEnd),
]

/** What stands in a long value's place while its event is written. An agent may say it, too: then nothing is said to stand there. */
const hole = '\0a long value'
const holeJson = JSON.stringify(hole)

/** Of one event: `parts` are those of its artifacts, in the order in which the event names them. */
export interface EventTexts {
  readonly event: string
  readonly parts: readonly PartText[]
}

/** `write(hole, places)`: the event as JSON with `hole` for the value of each part whose place among `parts` is in `places`. */
export function writeEvent(
  parts: readonly StoredPart[],
  write: (hole: string, places: ReadonlySet<number>) => string,
  digestOf: DigestOf,
): EventTexts {
  const drafts = parts.map(draftOf)
  const places = new Set(drafts.flatMap((draft, place) => (typeof draft === 'string' ? [] : [place])))
  const whole = (draft: Draft): PartText => {
    if (typeof draft === 'string') return draft
    const pieces = filled(draft.shell, draft.value)
    return { json: pieces.join(''), digest: digestOf(...pieces), place: null }
  }
  const around = places.size === 0 ? [] : write(hole, places).split(holeJson)
  if (around.length !== places.size + 1) return { event: write(hole, new Set()), parts: drafts.map(whole) }
  const values = drafts.flatMap((draft) => (typeof draft === 'string' ? [] : [draft.value]))
  const event = around.flatMap((piece, i) => [piece, values[i] ?? '']).join('')
  let from = 0
  let passed = 0
  const texts = drafts.map((draft): PartText => {
    if (typeof draft === 'string') return draft
    from += bytesOf(around[passed++] ?? '')
    const place = { from, bytes: bytesOf(draft.value) }
    from += place.bytes
    // Whoever reads the part reads the event: what is less than half of it would be dear to read, and there may be many.
    if (draft.value.length * 2 < event.length) return whole(draft)
    return { json: draft.shell, digest: digestOf(...filled(draft.shell, draft.value)), place }
  })
  return { event, parts: texts }
}

const encoder = new TextEncoder()
const bytesOf = (text: string): number => encoder.encode(text).length
