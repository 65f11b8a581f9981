/**
 * Parts of artifacts as JSON text, and the event that says them. Most of what a heavy stream brings is one long value: it is kept in
 * its event, and its part only says where it stands there, for written twice it costs threads, sockets and the database twice. Owns
 * what is long and both texts; does not own a part's shape (observation.ts) or how it is put together again (persistence/part-rows.ts).
 */
import { decodeText, type JsonText } from './json-text.ts'
import type { Part } from './task.ts'

/** A part without its id: the id is its place, given when it is read. */
export type StoredPart = Omit<Part, 'id'>

/** Where a value's JSON stands in the text of its event: in bytes of UTF-8, and for those who have it as a string in UTF-16 code units. */
export interface ValuePlace {
  readonly from: number
  readonly bytes: number
  readonly units: { readonly from: number; readonly length: number }
}

export interface LongPart {
  /** StoredPart; where `place` says where its value stands, a space and the part with `""` in its place. */
  readonly json: JsonText
  /** Of the whole part where that is large: what it is compared by. */
  readonly digest: string | null
  readonly place: ValuePlace | null
}

/** StoredPart. A string is neither large nor is its value elsewhere. */
export type PartText = string | LongPart

/** Of texts one after the other. */
export type DigestOf = (...pieces: readonly string[]) => string

/** Characters of a value's JSON. Shorter ones are cheap to write, and cheaper to read where they are. */
export const longValue = 8 * 1024

/** Characters of a part; hashing shorter ones where they are folded costs less than a few milliseconds. */
const largePart = 1024 * 1024

/** Where `""` stands in the text of a part whose value stands elsewhere: `kind` and `value` come first, and both kinds are as long. */
export const valueStart = '{"kind":"text","value":'.length
const valueEnd = valueStart + '""'.length
/**
 * Before the text of such a part. No other begins like this, also none that a server writes over it which knows nothing of values that
 * stand elsewhere; and it is JSON all the same.
 */
export const elsewhere = ' '

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

function wholeText(draft: Draft, digestOf: DigestOf): PartText {
  const json = typeof draft === 'string' ? draft : filled(draft.shell, draft.value).join('')
  return json.length < largePart ? json : { json, digest: digestOf(json), place: null }
}

/** Of an event whose text is not ours to write: nothing is said to stand there. */
export const wholeTexts = (parts: readonly StoredPart[], digestOf: DigestOf): PartText[] =>
  parts.map((part) => wholeText(draftOf(part), digestOf))

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
  const around = places.size === 0 ? [] : write(hole, places).split(holeJson)
  const whole = (draft: Draft): PartText => wholeText(draft, digestOf)
  if (places.size === 0 || around.length !== places.size + 1)
    return { event: write(hole, new Set()), parts: drafts.map(whole) }
  const values = drafts.flatMap((draft) => (typeof draft === 'string' ? [] : [draft.value]))
  const event = around.flatMap((piece, i) => [piece, values[i] ?? '']).join('')
  const at = { bytes: 0, units: 0 }
  let passed = 0
  const texts = drafts.map((draft): PartText => {
    if (typeof draft === 'string') return whole(draft)
    const { shell, value } = draft
    const before = around[passed++] ?? ''
    const [from, start] = [at.bytes + bytesOf(before), at.units + before.length]
    const place = { from, bytes: bytesOf(value), units: { from: start, length: value.length } }
    at.bytes = from + place.bytes
    at.units = start + value.length
    // Whoever reads the part reads the event: what is less than half of it would be dear to read, and there may be many.
    if (value.length * 2 < event.length) return whole(draft)
    const isLarge = shell.length - '""'.length + value.length >= largePart
    const digest = isLarge ? digestOf(...filled(shell, value)) : null
    return { json: elsewhere + shell, digest, place }
  })
  return { event, parts: texts }
}

/** What a part is compared by, in pieces: its digest, or its text, of which the value may stand in `event`. */
export function comparedBy(part: PartText, event: JsonText): readonly (string | Uint8Array)[] {
  if (typeof part === 'string') return [part]
  if (part.digest !== null) return [part.digest]
  const shell = decodeText(part.json)
  if (part.place === null) return [shell]
  const { from, bytes, units } = part.place
  const value =
    typeof event === 'string'
      ? event.slice(units.from, units.from + units.length)
      : event.utf8.subarray(from, from + bytes)
  const start = elsewhere.length + valueStart
  return [shell.slice(elsewhere.length, start), value, shell.slice(start + '""'.length)]
}

const encoder = new TextEncoder()
const bytesOf = (text: string): number => encoder.encode(text).length
