/**
 * Reading ProtoJSON: the rules that hold for every A2A message, whatever its version. Owns names in both spellings, `null` as
 * unset, enums by name or number, base64 in both alphabets, timestamps, and the limits that keep a hostile value from
 * becoming our stack overflow. Does not own any message's shape (a2a/messages.ts).
 *
 * Hand-checked rather than a zod schema: events reach 25 MiB, and a decoder that never copies a string reads 75 KB in
 * microseconds while still naming the place of a fault.
 */

export type JsonObject = Record<string, unknown>

/** Characters of an id that an agent gives. Ids become keys of rows and parts of URLs; ours to it may be as long (domain/command-body.ts). */
export const idLimit = 512

/**
 * Levels of nesting inside `data` and `metadata`. ProtoJSON parsers stop at 100; JSON.stringify overflows V8's stack at some
 * thousands, which would kill whoever stores the event, so depth is refused here and nowhere else.
 */
export const depthLimit = 256

/** What was wrong with a message, and where: `path` is a JSON path such as `task.artifacts[0].parts[1].raw`. */
export class WireError extends Error {
  readonly path: string
  constructor(path: string, problem: string) {
    super(`${path === '' ? 'The message' : path} ${problem}`)
    this.name = 'WireError'
    this.path = path
  }
}

export const at = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

const snakeNames = new Map<string, string>()
function snakeName(name: string): string {
  let snake = snakeNames.get(name)
  if (snake === undefined) {
    snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    // Only field names of the protocol come here, so the map stays as small as the protocol.
    snakeNames.set(name, snake)
  }
  return snake
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function object(value: unknown, path: string): JsonObject {
  if (!isObject(value)) throw new WireError(path, 'must be an object')
  return value
}

/** A field under its lowerCamelCase or snake_case name; `null` and absent are the same. Own fields only. */
export function field(json: JsonObject, name: string): unknown {
  const value = Object.hasOwn(json, name) ? json[name] : undefined
  if (value !== undefined && value !== null) return value
  const snake = snakeName(name)
  return snake !== name && Object.hasOwn(json, snake) ? (json[snake] ?? undefined) : undefined
}

/** A string field; the empty string is kept, because `text: ""` is content. */
export function string(json: JsonObject, name: string, path: string): string | undefined {
  const value = field(json, name)
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw new WireError(at(path, name), 'must be a string')
  return value
}

/** A string field in which the proto default, the empty string, means unset. */
export const label = (json: JsonObject, name: string, path: string): string | undefined =>
  string(json, name, path) || undefined

export function optionalId(json: JsonObject, name: string, path: string): string | undefined {
  const value = label(json, name, path)
  return value === undefined ? undefined : checkedId(value, at(path, name))
}

export function id(json: JsonObject, name: string, path: string): string {
  const value = optionalId(json, name, path)
  if (value === undefined) throw new WireError(at(path, name), 'is required')
  return value
}

export function checkedId(value: string, path: string): string {
  if (value.length > idLimit) throw new WireError(path, `is longer than ${idLimit} characters`)
  if (value.includes('\0')) throw new WireError(path, 'contains a NUL character')
  // A lone surrogate has no UTF-8 form: stored and sent back it would name something else.
  if (!value.isWellFormed()) throw new WireError(path, 'is not well-formed Unicode')
  return value
}

export function boolean(json: JsonObject, name: string, path: string): boolean | undefined {
  const value = field(json, name)
  if (value === undefined) return undefined
  if (typeof value !== 'boolean') throw new WireError(at(path, name), 'must be true or false')
  return value
}

/** A 32-bit integer, as a number or (ProtoJSON) as a decimal string. */
export function integer(json: JsonObject, name: string, path: string): number | undefined {
  const value = field(json, name)
  if (value === undefined) return undefined
  const number = typeof value === 'string' && /^-?\d{1,10}$/.test(value) ? Number(value) : value
  if (typeof number !== 'number' || (number | 0) !== number) throw new WireError(at(path, name), 'must be an integer')
  return number
}

export function list<T>(
  json: JsonObject,
  name: string,
  path: string,
  read: (item: unknown, path: string) => T,
): T[] | undefined {
  const value = field(json, name)
  if (value === undefined) return undefined
  if (!Array.isArray(value)) throw new WireError(at(path, name), 'must be an array')
  const base = at(path, name)
  return value.map((item, index) => read(item, `${base}[${index}]`))
}

export const strings = (json: JsonObject, name: string, path: string): string[] | undefined =>
  list(json, name, path, (item, place) => {
    if (typeof item !== 'string') throw new WireError(place, 'must be a string')
    return item
  })

/** Any JSON value, kept as it is, unless it is nested too deep to be written again. */
export function open(value: unknown, path: string): unknown {
  let level = isNested(value) ? [value] : []
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthLimit) throw new WireError(path, `is nested deeper than ${depthLimit} levels`)
    const next: Nested[] = []
    for (const item of level) {
      // Without Object.values: of thousands of records its arrays cost as much as everything else of this.
      if (isList(item)) {
        for (const child of item) if (isNested(child)) next.push(child)
      } else {
        for (const key in item) {
          const child = item[key]
          if (isNested(child)) next.push(child)
        }
      }
    }
    level = next
  }
  return value
}

type Nested = readonly unknown[] | Readonly<Record<string, unknown>>
const isList = (value: Nested): value is readonly unknown[] => Array.isArray(value)
const isNested = (value: unknown): value is Nested => typeof value === 'object' && value !== null

export function metadata(json: JsonObject, path: string): JsonObject | undefined {
  const value = field(json, 'metadata')
  if (value === undefined) return undefined
  const place = at(path, 'metadata')
  open(object(value, place), place)
  return value as JsonObject
}

/**
 * Base64 of either alphabet, padded or not, as standard padded base64. A string that already is so is searched once and not copied.
 * Line breaks, which encoders of mail put in, say nothing [RFC 2045 §6.8].
 */
export function base64(value: string, path: string): string {
  const foreign = /[^A-Za-z0-9+/=]/
  let standard = value
  if (foreign.test(value)) {
    standard = value
      .replaceAll('-', '+')
      .replaceAll('_', '/')
      .replaceAll(/[\r\n]+/g, '')
    if (foreign.test(standard)) throw new WireError(path, 'must be base64')
  }
  const padding = standard.indexOf('=')
  const digits = padding === -1 ? standard.length : padding
  const missing = (4 - (digits % 4)) % 4
  const tail = '='.repeat(missing)
  if (missing === 3 || (padding !== -1 && standard.slice(padding, padding + 4) !== tail))
    throw new WireError(path, 'must be base64')
  return padding === -1 ? standard + tail : standard
}

const rfc3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})?$/

/**
 * A timestamp as `YYYY-MM-DDTHH:mm:ss.sssZ`. Peers send micro- and nanoseconds, offsets, and (naive Python clocks) no zone
 * at all, which is read as UTC. One that says no moment is unset: nothing that happened should be lost for its date.
 */
export function timestamp(json: JsonObject, name: string): string | undefined {
  const value = field(json, name)
  if (typeof value !== 'string' || value.length > 40) return undefined
  const match = rfc3339.exec(value)
  if (!match) return undefined
  const instant = Date.parse(match[2] === undefined ? `${value.replace(' ', 'T')}Z` : value.replace(' ', 'T'))
  return Number.isNaN(instant) ? undefined : new Date(instant).toISOString()
}

/** Fields that may be undefined become fields that may be absent. */
export type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** The same object without the fields that are undefined: what JSON and `exactOptionalPropertyTypes` both mean by unset. */
export function present<T extends object>(fields: T): Present<T> {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) kept[name] = value
  return kept as Present<T>
}
